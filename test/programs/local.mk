# test/programs

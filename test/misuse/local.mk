# test/misuse

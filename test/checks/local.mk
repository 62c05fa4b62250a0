# test/checks

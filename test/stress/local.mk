# test/stress

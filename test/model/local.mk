# test/model

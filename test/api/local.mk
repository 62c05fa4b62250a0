# test/api

# Wrong programs: each case is a child that must die with its own line.

noinst_HEADERS += test/misuse/wrong.h

misuse_programs = \
	test/misuse/by_threads \
	test/misuse/double_frees \
	test/misuse/handlers \
	test/misuse/pointers \
	test/misuse/survivors

if !SANITIZED
check_PROGRAMS += $(misuse_programs)
TESTS += $(misuse_programs:=-linked.t) $(misuse_programs:=-verified.t) test/misuse/pointers-preloaded.t \
	test/misuse/by_threads-page64.t test/misuse/pointers-page16.t test/misuse/pointers-page64.t
endif

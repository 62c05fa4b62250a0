# Checks of the tree and of the built libraries. They say nothing about instrumented code, so they stay out of that.

if !SANITIZED
check_scripts = \
	test/checks/floors \
	test/checks/header \
	test/checks/symbols \
	test/checks/compatibility \
	test/checks/life \
	test/checks/self_calls \
	test/checks/state \
	test/checks/source \
	test/checks/format \
	test/checks/dist \
	test/checks/packages \
	test/checks/manual \
	test/checks/prose
dist_check_SCRIPTS += $(check_scripts)
TESTS += $(check_scripts)
endif

EXTRA_DIST += test/checks/lib.sh test/checks/state.list

# Debuggers and tools on programs that have the library.

tools_scripts = \
	test/tools/core.sh \
	test/tools/gdb.sh \
	test/tools/heaptrack.sh \
	test/tools/ltrace.sh \
	test/tools/perf.sh \
	test/tools/sanitizers.sh \
	test/tools/valgrind.sh
dist_check_SCRIPTS += $(tools_scripts)
EXTRA_DIST += test/tools/known.c test/tools/names.c test/tools/planted.cc
if !SANITIZED
TESTS += $(tools_scripts)
endif

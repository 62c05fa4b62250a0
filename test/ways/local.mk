# Ways by which a program comes to the library, each proved by a program that frees a block twice.

dist_sbin_SCRIPTS = tools/pamalloc-preload

ways_scripts = \
	test/ways/linked.sh \
	test/ways/preloaded.sh \
	test/ways/privileges.sh \
	test/ways/static.sh \
	test/ways/system_wide.sh
dist_check_SCRIPTS += $(ways_scripts)
EXTRA_DIST += test/ways/lib.sh
if !SANITIZED
TESTS += $(ways_scripts)
endif

# Real programs, each run twice: without the library and with it. `make check-programs` runs them and the wide set.

programs_scripts = \
	test/programs/harness.sh \
	test/programs/awk.sh \
	test/programs/bash.sh \
	test/programs/clang.sh \
	test/programs/coreutils.sh \
	test/programs/cxx.sh \
	test/programs/gdb.sh \
	test/programs/git.sh \
	test/programs/java.sh \
	test/programs/make.sh \
	test/programs/nginx.sh \
	test/programs/node.sh \
	test/programs/openssl.sh \
	test/programs/perl.sh \
	test/programs/php.sh \
	test/programs/postgresql.sh \
	test/programs/python.sh \
	test/programs/redis.sh \
	test/programs/ruby.sh \
	test/programs/sqlite.sh \
	test/programs/tar.sh \
	test/programs/xz.sh

EXTRA_DIST += \
	test/programs/lib.sh \
	test/programs/Threads.java \
	test/programs/everything.cc \
	test/programs/nginx.py \
	test/programs/node.js \
	test/programs/perl.pl \
	test/programs/python.py

# A sanitizer has a malloc of its own: such a build makes no library to preload.
dist_check_SCRIPTS += $(programs_scripts)
if !SANITIZED
TESTS += $(programs_scripts)
endif

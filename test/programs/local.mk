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

programs_wide = \
	test/programs/wide/blender.sh \
	test/programs/wide/cargo.sh \
	test/programs/wide/chromium.sh \
	test/programs/wide/clang-project.sh \
	test/programs/wide/erlang.sh \
	test/programs/wide/ffmpeg.sh \
	test/programs/wide/firefox.sh \
	test/programs/wide/gimp.sh \
	test/programs/wide/gpg.sh \
	test/programs/wide/imagemagick.sh \
	test/programs/wide/inkscape.sh \
	test/programs/wide/libreoffice.sh \
	test/programs/wide/mariadb.sh \
	test/programs/wide/memcached.sh \
	test/programs/wide/php-modules.sh \
	test/programs/wide/rsync.sh \
	test/programs/wide/systemd.sh \
	test/programs/wide/tree.sh

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

# Everything, with what it needs installed by apt-get; the table and the counts are at the end of its output.
dist_noinst_SCRIPTS += test/programs/run-wide $(programs_wide)
CLEANFILES += programs-*.log

.PHONY: check-programs
check-programs: all
	$(AM_V_at)$(AM_TESTS_ENVIRONMENT) $(srcdir)/test/programs/run-wide

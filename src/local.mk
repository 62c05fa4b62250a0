# The libraries. Five sets of objects: the core and the entry points, each in the release and in the test build, and
# the entry points of the test build under their internal names.

pam_core_sources = \
	src/base.h src/tune.h \
	src/fatal.c src/fatal.h src/kernel.h src/os.c src/os.h src/lock.c src/lock.h \
	src/random.c src/random.h \
	src/region.c src/region.h src/meta.c src/meta.h src/run.h src/pagemap.c src/pagemap.h \
	src/runlist.c src/runlist.h src/shard.c src/shard.h src/purge.c src/purge.h src/pageheap.c src/pageheap.h \
	src/class.c src/class.h src/slab.c src/slab.h src/supply.c src/supply.h src/huge.c src/huge.h src/large.c src/large.h \
	src/remote.c src/remote.h src/arena.c src/arena.h src/rest.c src/rest.h src/thread.c src/thread.h \
	src/parse.c src/parse.h src/options.c src/options.h src/options.def src/stats.c src/stats.h \
	src/sanitizer.h src/init.c src/init.h src/background.c src/background.h \
	src/verify.c src/verify.h src/report.c src/report.h src/judge.c src/judge.h

pam_entry_sources = \
	src/alloc.c src/alloc.h src/sized.c src/sized.h src/checker.h \
	src/malloc.c src/malloc.h src/extra.c src/extra.h src/operators.c src/operators.h src/cxx.c src/cxx.h \
	src/loader.c src/loader.h

# Where options.c looks for the system's choice.
pam_conf_cppflags = -DPMA_CONF_FILE='"$(sysconfdir)/pamalloc.conf"'

pam_all_sources = $(pam_core_sources) $(pam_entry_sources)

EXTRA_DIST += src/floors src/pamalloc.sym

# The release build: what is installed.
pam_release_cppflags = $(AM_CPPFLAGS) -DPMA_TEST=$(PMA_DEBUG)

noinst_LTLIBRARIES += libpamcore.la
libpamcore_la_SOURCES = $(pam_core_sources)
libpamcore_la_CPPFLAGS = $(pam_release_cppflags) $(pam_conf_cppflags) -DPMA_PUBLIC=0
libpamcore_la_CFLAGS = $(AM_CFLAGS) $(ONE_OBJECT)

# The names of src/pamalloc.sym, as this port's C++ has them.
exported.sym: $(srcdir)/src/pamalloc.sym Makefile
	$(AM_V_GEN)sed '$(PORT_SYMBOLS)' $(srcdir)/src/pamalloc.sym >$@.new && mv $@.new $@
CLEANFILES += exported.sym

pam_public_ldflags = -no-undefined $(MALLOC_LDFLAGS) -export-symbols exported.sym

lib_LTLIBRARIES += libpamalloc.la
libpamalloc_la_SOURCES = $(pam_entry_sources)
libpamalloc_la_CPPFLAGS = $(pam_release_cppflags) -DPMA_PUBLIC=1
libpamalloc_la_LDFLAGS = $(pam_public_ldflags) -version-info $(PMA_LT_VERSION)
libpamalloc_la_LIBADD = libpamcore.la
libpamalloc_la_DEPENDENCIES = libpamcore.la exported.sym

# The test build under internal names, for programs whose malloc is the C library's.
pam_test_cppflags = $(AM_CPPFLAGS) -DPMA_TEST=1

check_LTLIBRARIES += libpamcoretest.la libpamprivate.la
libpamcoretest_la_SOURCES = $(pam_core_sources)
libpamcoretest_la_CPPFLAGS = $(pam_test_cppflags) $(pam_conf_cppflags) -DPMA_PUBLIC=0
libpamcoretest_la_CFLAGS = $(AM_CFLAGS) $(SANITIZER_CFLAGS) $(ONE_OBJECT)

libpamprivate_la_SOURCES = $(pam_entry_sources)
libpamprivate_la_CPPFLAGS = $(pam_test_cppflags) -DPMA_PUBLIC=0
libpamprivate_la_CFLAGS = $(AM_CFLAGS) $(SANITIZER_CFLAGS) $(ONE_OBJECT)
libpamprivate_la_LIBADD = libpamcoretest.la

# The test build under public names, to be preloaded. Never instrumented: a sanitizer has a malloc of its own.
if !SANITIZED
check_LTLIBRARIES += libpamtest.la
libpamtest_la_SOURCES = $(pam_entry_sources)
libpamtest_la_CPPFLAGS = $(pam_test_cppflags) -DPMA_PUBLIC=1
libpamtest_la_CFLAGS = $(AM_CFLAGS) $(ONE_OBJECT)
libpamtest_la_LDFLAGS = $(pam_public_ldflags) -rpath /nowhere -avoid-version
libpamtest_la_LIBADD = libpamcoretest.la
libpamtest_la_DEPENDENCIES = libpamcoretest.la exported.sym
endif

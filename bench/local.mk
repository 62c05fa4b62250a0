# Benches: nothing of this is built by "make" or installed. What each one measures stands at its head.

bench_programs += bench/engel bench/glibc_simple bench/glibc_thread bench/pagewaste bench/schipper

# These a test needs too (test/stress/instructions.sh, few_calls.sh, limits.sh).
bench_checked = bench/measure bench/micro bench/fewcalls bench/limits
check_PROGRAMS += $(bench_checked)

# Of speed alone.
bench_programs += bench/sizes bench/tail bench/threads
bench_sizes_SOURCES = bench/sizes.c bench/bench.h
bench_sizes_CFLAGS = $(BENCH_CFLAGS)
bench_tail_SOURCES = bench/tail.c bench/bench.h
bench_tail_CFLAGS = $(BENCH_CFLAGS)
bench_threads_SOURCES = bench/threads.c bench/bench.h
bench_threads_CFLAGS = $(BENCH_CFLAGS)
dist_noinst_SCRIPTS += bench/placement bench/sweep

bench_engel_SOURCES = bench/engel.c bench/bench.h
bench_engel_CFLAGS = $(BENCH_CFLAGS)
bench_glibc_simple_SOURCES = bench/glibc_simple.c bench/bench.h
bench_glibc_simple_CFLAGS = $(BENCH_CFLAGS)
bench_glibc_thread_SOURCES = bench/glibc_thread.c bench/bench.h
bench_glibc_thread_CFLAGS = $(BENCH_CFLAGS)
bench_measure_SOURCES = bench/measure.c bench/bench.h
bench_measure_CFLAGS = $(BENCH_CFLAGS)
bench_micro_SOURCES = bench/micro.c bench/bench.h
bench_micro_CFLAGS = $(BENCH_CFLAGS)
bench_pagewaste_SOURCES = bench/pagewaste.c bench/bench.h
bench_pagewaste_CFLAGS = $(BENCH_CFLAGS)
bench_schipper_SOURCES = bench/schipper.c bench/bench.h
bench_schipper_CFLAGS = $(BENCH_CFLAGS)

# What memory costs, and when it comes back.
bench_programs += bench/comingdown bench/hugepages bench/stayingdown
bench_comingdown_SOURCES = bench/comingdown.c bench/bench.h
bench_comingdown_CFLAGS = $(BENCH_CFLAGS)
bench_fewcalls_SOURCES = bench/fewcalls.c bench/bench.h
bench_fewcalls_CFLAGS = $(BENCH_CFLAGS)
bench_hugepages_SOURCES = bench/hugepages.c bench/bench.h
bench_hugepages_CFLAGS = $(BENCH_CFLAGS)
bench_limits_SOURCES = bench/limits.c bench/bench.h
bench_limits_CFLAGS = $(BENCH_CFLAGS)
bench_stayingdown_SOURCES = bench/stayingdown.c bench/bench.h
bench_stayingdown_CFLAGS = $(BENCH_CFLAGS)

# What the nibble saves is seen against this variant of the release build, which takes a whole byte of the stream for
# every draw. It is for bench/schipper and nothing else. The other one draws nothing: it is for bench/placement.
pam_variant_cppflags = $(AM_CPPFLAGS) $(pam_conf_cppflags) -DPMA_TEST=0 -DPMA_PUBLIC=1
pam_variant_ldflags = $(pam_public_ldflags) -rpath /nowhere -avoid-version
EXTRA_LTLIBRARIES += libpambyte.la libpamfixed.la
libpambyte_la_SOURCES = $(pam_all_sources)
libpambyte_la_CPPFLAGS = $(pam_variant_cppflags) -DPMA_BENCH_BYTE_DRAWS=1
libpambyte_la_CFLAGS = $(AM_CFLAGS) $(ONE_OBJECT)
libpambyte_la_LDFLAGS = $(pam_variant_ldflags)
libpambyte_la_DEPENDENCIES = exported.sym
libpamfixed_la_SOURCES = $(pam_all_sources)
libpamfixed_la_CPPFLAGS = $(pam_variant_cppflags) -DPMA_BENCH_FIXED_DRAWS=1
libpamfixed_la_CFLAGS = $(AM_CFLAGS) $(ONE_OBJECT)
libpamfixed_la_LDFLAGS = $(pam_variant_ldflags)
libpamfixed_la_DEPENDENCIES = exported.sym

dist_noinst_SCRIPTS += bench/compare bench/count bench/programs bench/report bench/run
EXTRA_DIST += bench/README bench/allocators.py

CLEANFILES += $(bench_programs) libpambyte.la libpamfixed.la bench/results.jsonl bench/machine.json bench/table.txt bench/table.md \
	bench/pages.svg bench/threads.svg bench/speed.svg bench/peak.svg bench/comingdown-calls.svg \
	bench/comingdown-idle.svg bench/stayingdown.svg

# A run against Debian's peers, into bench/ of the build folder. BENCH_FLAGS adds options and NAME=LIBRARY words.
BENCH_FLAGS =
bench_run = $(srcdir)/bench/run --bin bench --out bench --lib .libs/libpamalloc.so --bytes .libs/libpambyte.so

.PHONY: bench bench-quick bench-memory bench-speed bench-count bench-placement bench-programs bench-sweep

bench-programs: $(bench_programs) $(bench_checked)

bench: libpamalloc.la libpambyte.la $(bench_programs) $(bench_checked)
	$(AM_V_at)$(bench_run) $(BENCH_FLAGS)

bench-quick: libpamalloc.la libpambyte.la $(bench_programs) $(bench_checked)
	$(AM_V_at)$(bench_run) --quick $(BENCH_FLAGS)

bench-memory: libpamalloc.la libpambyte.la $(bench_programs) $(bench_checked)
	$(AM_V_at)$(bench_run) --only memory $(BENCH_FLAGS)

bench-speed: libpamalloc.la libpambyte.la $(bench_programs) $(bench_checked)
	$(AM_V_at)$(bench_run) --only speed $(BENCH_FLAGS)

bench-count: libpamalloc.la $(bench_checked)
	$(AM_V_at)$(srcdir)/bench/count --bin bench pamalloc=.libs/libpamalloc.so

bench-placement: libpamalloc.la libpamfixed.la $(bench_checked)
	$(AM_V_at)$(srcdir)/bench/placement --bin bench pamalloc=.libs/libpamalloc.so drawless=.libs/libpamfixed.so

bench-sweep: libpamalloc.la $(bench_programs) $(bench_checked)
	$(AM_V_at)PAMALLOC_LIB=.libs/libpamalloc.so $(srcdir)/bench/sweep --bin bench

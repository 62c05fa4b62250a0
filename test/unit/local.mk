# Unit tests: one for each module, named after it, and more where a module has two subjects to test.

noinst_HEADERS += test/harness.h test/figures.h test/unit/probe.h test/unit/census.h test/unit/limits.h \
	test/unit/blocks.h test/unit/arenas.h

unit_programs = test/unit/fatal test/unit/os test/unit/os_refused test/unit/lock test/unit/random

check_PROGRAMS += $(unit_programs)
TESTS += $(unit_programs)
# The others ask the kernel about pages that are not there, which memcheck takes for errors.
valgrind_tests += test/unit/fatal test/unit/lock test/unit/random

test_unit_fatal_SOURCES = test/unit/fatal.c
test_unit_fatal_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_fatal_CFLAGS = $(UNIT_CFLAGS)
test_unit_fatal_LDFLAGS = $(UNIT_LINK)
test_unit_fatal_LDADD = $(UNIT_LIBS)

test_unit_os_SOURCES = test/unit/os.c
test_unit_os_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_os_CFLAGS = $(UNIT_CFLAGS)
test_unit_os_LDFLAGS = $(UNIT_LINK)
test_unit_os_LDADD = $(UNIT_LIBS)

test_unit_os_refused_SOURCES = test/unit/os_refused.c
test_unit_os_refused_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_os_refused_CFLAGS = $(UNIT_CFLAGS)
test_unit_os_refused_LDFLAGS = $(UNIT_LINK)
test_unit_os_refused_LDADD = $(UNIT_LIBS)

test_unit_lock_SOURCES = test/unit/lock.c
test_unit_lock_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_lock_CFLAGS = $(UNIT_CFLAGS)
test_unit_lock_LDFLAGS = $(UNIT_LINK)
test_unit_lock_LDADD = $(UNIT_LIBS)

test_unit_random_SOURCES = test/unit/random.c
test_unit_random_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_random_CFLAGS = $(UNIT_CFLAGS)
test_unit_random_LDFLAGS = $(UNIT_LINK)
test_unit_random_LDADD = $(UNIT_LIBS)

# From the page heap upwards.
heap_programs = \
	test/unit/runlist \
	test/unit/class \
	test/unit/slab \
	test/unit/shard \
	test/unit/pagemap \
	test/unit/meta \
	test/unit/region \
	test/unit/pageheap \
	test/unit/purge \
	test/unit/huge \
	test/unit/large \
	test/unit/remote \
	test/unit/supply \
	test/unit/arena \
	test/unit/rest \
	test/unit/thread \
	test/unit/parse \
	test/unit/options \
	test/unit/init \
	test/unit/background \
	test/unit/stats \
	test/unit/report \
	test/unit/verify \
	test/unit/judge \
	test/unit/alloc \
	test/unit/malloc \
	test/unit/extra \
	test/unit/operators \
	test/unit/cxx \
	test/unit/cxx_alone

check_PROGRAMS += $(heap_programs)
TESTS += $(heap_programs)

# These ask about pages that are not there, or let mappings grow, which memcheck 3.19 does not follow; background leaves
# a process no memory for a thread, nor for memcheck.
unwatched_programs = test/unit/alloc test/unit/background test/unit/huge test/unit/meta test/unit/purge test/unit/region
valgrind_tests += $(filter-out $(unwatched_programs),$(heap_programs))

# All of them once more with larger pages; a sanitizer would only say the same again.
dist_check_SCRIPTS += test/unit/larger_pages.sh
if !SANITIZED
TESTS += test/unit/larger_pages.sh
endif

test_unit_runlist_SOURCES = test/unit/runlist.c
test_unit_runlist_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_runlist_CFLAGS = $(UNIT_CFLAGS)
test_unit_runlist_LDFLAGS = $(UNIT_LINK)
test_unit_runlist_LDADD = $(UNIT_LIBS)

test_unit_class_SOURCES = test/unit/class.c
test_unit_class_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_class_CFLAGS = $(UNIT_CFLAGS)
test_unit_class_LDFLAGS = $(UNIT_LINK)
test_unit_class_LDADD = $(UNIT_LIBS)

test_unit_slab_SOURCES = test/unit/slab.c
test_unit_slab_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_slab_CFLAGS = $(UNIT_CFLAGS)
test_unit_slab_LDFLAGS = $(UNIT_LINK)
test_unit_slab_LDADD = $(UNIT_LIBS)

test_unit_shard_SOURCES = test/unit/shard.c
test_unit_shard_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_shard_CFLAGS = $(UNIT_CFLAGS)
test_unit_shard_LDFLAGS = $(UNIT_LINK)
test_unit_shard_LDADD = $(UNIT_LIBS)

test_unit_pagemap_SOURCES = test/unit/pagemap.c
test_unit_pagemap_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_pagemap_CFLAGS = $(UNIT_CFLAGS)
test_unit_pagemap_LDFLAGS = $(UNIT_LINK)
test_unit_pagemap_LDADD = $(UNIT_LIBS)

test_unit_meta_SOURCES = test/unit/meta.c
test_unit_meta_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_meta_CFLAGS = $(UNIT_CFLAGS)
test_unit_meta_LDFLAGS = $(UNIT_LINK)
test_unit_meta_LDADD = $(UNIT_LIBS)

test_unit_region_SOURCES = test/unit/region.c
test_unit_region_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_region_CFLAGS = $(UNIT_CFLAGS)
test_unit_region_LDFLAGS = $(UNIT_LINK)
test_unit_region_LDADD = $(UNIT_LIBS)

test_unit_pageheap_SOURCES = test/unit/pageheap.c
test_unit_pageheap_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_pageheap_CFLAGS = $(UNIT_CFLAGS)
# It refuses descriptors while pages can be had.
test_unit_pageheap_LDFLAGS = $(UNIT_LINK) -Wl,--wrap=pma_meta_take
test_unit_pageheap_LDADD = $(UNIT_LIBS)

test_unit_purge_SOURCES = test/unit/purge.c
test_unit_purge_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_purge_CFLAGS = $(UNIT_CFLAGS)
test_unit_purge_LDFLAGS = $(UNIT_LINK)
test_unit_purge_LDADD = $(UNIT_LIBS)

test_unit_huge_SOURCES = test/unit/huge.c
test_unit_huge_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_huge_CFLAGS = $(UNIT_CFLAGS)
test_unit_huge_LDFLAGS = $(UNIT_LINK)
test_unit_huge_LDADD = $(UNIT_LIBS)

test_unit_large_SOURCES = test/unit/large.c
test_unit_large_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_large_CFLAGS = $(UNIT_CFLAGS)
test_unit_large_LDFLAGS = $(UNIT_LINK)
test_unit_large_LDADD = $(UNIT_LIBS)

test_unit_remote_SOURCES = test/unit/remote.c
test_unit_remote_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_remote_CFLAGS = $(UNIT_CFLAGS)
test_unit_remote_LDFLAGS = $(UNIT_LINK)
test_unit_remote_LDADD = $(UNIT_LIBS)

test_unit_supply_SOURCES = test/unit/supply.c
test_unit_supply_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_supply_CFLAGS = $(UNIT_CFLAGS)
# It refuses large pieces.
test_unit_supply_LDFLAGS = $(UNIT_LINK) -Wl,--wrap=pma_meta_take
test_unit_supply_LDADD = $(UNIT_LIBS)

test_unit_arena_SOURCES = test/unit/arena.c
test_unit_arena_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_arena_CFLAGS = $(UNIT_CFLAGS)
test_unit_arena_LDFLAGS = $(UNIT_LINK)
test_unit_arena_LDADD = $(UNIT_LIBS)

test_unit_rest_SOURCES = test/unit/rest.c
test_unit_rest_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_rest_CFLAGS = $(UNIT_CFLAGS)
test_unit_rest_LDFLAGS = $(UNIT_LINK)
test_unit_rest_LDADD = $(UNIT_LIBS)

test_unit_thread_SOURCES = test/unit/thread.c
test_unit_thread_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_thread_CFLAGS = $(UNIT_CFLAGS)
test_unit_thread_LDFLAGS = $(UNIT_LINK)
test_unit_thread_LDADD = $(UNIT_LIBS)

test_unit_parse_SOURCES = test/unit/parse.c
test_unit_parse_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_parse_CFLAGS = $(UNIT_CFLAGS)
test_unit_parse_LDFLAGS = $(UNIT_LINK)
test_unit_parse_LDADD = $(UNIT_LIBS)

test_unit_options_SOURCES = test/unit/options.c
test_unit_options_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_options_CFLAGS = $(UNIT_CFLAGS)
# It tells the library that the program has more rights than its caller.
test_unit_options_LDFLAGS = $(UNIT_LINK) -Wl,--wrap=getauxval
test_unit_options_LDADD = $(UNIT_LIBS)

test_unit_init_SOURCES = test/unit/init.c
test_unit_init_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_init_CFLAGS = $(UNIT_CFLAGS)
test_unit_init_LDFLAGS = $(UNIT_LINK)
test_unit_init_LDADD = $(UNIT_LIBS)

test_unit_stats_SOURCES = test/unit/stats.c
test_unit_stats_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_stats_CFLAGS = $(UNIT_CFLAGS)
test_unit_stats_LDFLAGS = $(UNIT_LINK)
test_unit_stats_LDADD = $(UNIT_LIBS)

test_unit_report_SOURCES = test/unit/report.c
test_unit_report_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_report_CFLAGS = $(UNIT_CFLAGS)
test_unit_report_LDFLAGS = $(UNIT_LINK)
test_unit_report_LDADD = $(UNIT_LIBS)

test_unit_verify_SOURCES = test/unit/verify.c
test_unit_verify_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_verify_CFLAGS = $(UNIT_CFLAGS)
test_unit_verify_LDFLAGS = $(UNIT_LINK)
test_unit_verify_LDADD = $(UNIT_LIBS)

test_unit_judge_SOURCES = test/unit/judge.c
test_unit_judge_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_judge_CFLAGS = $(UNIT_CFLAGS)
test_unit_judge_LDFLAGS = $(UNIT_LINK)
test_unit_judge_LDADD = $(UNIT_LIBS)

test_unit_alloc_SOURCES = test/unit/alloc.c
test_unit_alloc_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_alloc_CFLAGS = $(UNIT_CFLAGS)
test_unit_alloc_LDFLAGS = $(UNIT_LINK)
test_unit_alloc_LDADD = $(UNIT_LIBS)

test_unit_malloc_SOURCES = test/unit/malloc.c
test_unit_malloc_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_malloc_CFLAGS = $(UNIT_CFLAGS)
test_unit_malloc_LDFLAGS = $(UNIT_LINK)
test_unit_malloc_LDADD = $(UNIT_LIBS)

test_unit_operators_SOURCES = test/unit/operators.c
test_unit_operators_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_operators_CFLAGS = $(UNIT_CFLAGS)
test_unit_operators_LDFLAGS = $(UNIT_LINK)
test_unit_operators_LDADD = $(UNIT_LIBS)

test_unit_extra_SOURCES = test/unit/extra.c
test_unit_extra_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_extra_CFLAGS = $(UNIT_CFLAGS)
test_unit_extra_LDFLAGS = $(UNIT_LINK)
test_unit_extra_LDADD = $(UNIT_LIBS)

test_unit_cxx_SOURCES = test/unit/cxx.c
test_unit_cxx_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_cxx_CFLAGS = $(UNIT_CFLAGS)
test_unit_cxx_LDFLAGS = $(UNIT_LINK)
test_unit_cxx_LDADD = $(UNIT_LIBS)

test_unit_cxx_alone_SOURCES = test/unit/cxx_alone.c
test_unit_cxx_alone_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_cxx_alone_CFLAGS = $(UNIT_CFLAGS)
test_unit_cxx_alone_LDFLAGS = $(UNIT_LINK)
test_unit_cxx_alone_LDADD = $(UNIT_LIBS)

test_unit_background_SOURCES = test/unit/background.c
test_unit_background_CPPFLAGS = $(UNIT_CPPFLAGS)
test_unit_background_CFLAGS = $(UNIT_CFLAGS)
test_unit_background_LDFLAGS = $(UNIT_LINK)
test_unit_background_LDADD = $(UNIT_LIBS)

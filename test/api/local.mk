# Tests of the exported names. A program is compiled once, plain, and meets the library in some ways: linked with it,
# with its release or test build preloaded, with larger pages. test/run tells the way by the end of the name.

TEST_EXTENSIONS = .t
T_LOG_COMPILER = $(top_srcdir)/test/run
dist_noinst_SCRIPTS += test/run

noinst_HEADERS += test/work.h test/api/conformance.h test/api/entry.h test/api/sandbox.h

api_programs = \
	test/api/addresses_in_range \
	test/api/alignment_holds \
	test/api/background \
	test/api/bsd_calls \
	test/api/calloc_is_zero \
	test/api/conformance \
	test/api/early \
	test/api/errno_kept \
	test/api/fortified \
	test/api/huge_pages \
	test/api/late \
	test/api/libc_blocks \
	test/api/limits_usable \
	test/api/locked_memory \
	test/api/overflow_refused \
	test/api/process_unchanged \
	test/api/processors_change \
	test/api/profiler \
	test/api/realloc_keeps \
	test/api/sandboxed \
	test/api/silent \
	test/api/statistics_beside_load \
	test/api/statistics_tell \
	test/api/strings_at_the_end \
	test/api/usable_size_holds \
	test/api/zero_sizes

if HAVE_CXX
api_cxx_programs = test/api/conformance_new test/api/loader_locks test/api/operators test/api/operators_replaced
endif

AM_CXXFLAGS = -std=c++17 -fsized-deallocation $(API_CXXFLAGS) $(WARN_CFLAGS) $(WERROR_CFLAGS)
test_api_conformance_new_SOURCES = test/api/conformance_new.cc
test_api_loader_locks_SOURCES = test/api/loader_locks.cc
test_api_operators_SOURCES = test/api/operators.cc
test_api_operators_replaced_SOURCES = test/api/operators_replaced.cc

# What is run again as if the page were larger.
api_page_programs = \
	test/api/alignment_holds \
	test/api/calloc_is_zero \
	test/api/conformance \
	test/api/early \
	test/api/errno_kept \
	test/api/late \
	test/api/realloc_keeps \
	test/api/usable_size_holds \
	test/api/zero_sizes

# The same operators as the next standard has them.
if HAVE_CXX
api_cxx20_programs = test/api/operators20
endif
test_api_operators20_SOURCES = test/api/operators.cc
test_api_operators20_CXXFLAGS = $(AM_CXXFLAGS) -std=c++20

# Programs with a malloc of their own export it, so that a preloaded library sees it.
api_own_programs = test/api/own_malloc test/api/own_malloc_partial
test_api_own_malloc_SOURCES = test/api/own_malloc.c
test_api_own_malloc_LDFLAGS = -rdynamic
test_api_own_malloc_partial_SOURCES = test/api/own_malloc.c
test_api_own_malloc_partial_CPPFLAGS = $(AM_CPPFLAGS) -DPARTIAL
test_api_own_malloc_partial_LDFLAGS = -rdynamic

# Programs that choose options by a string of their own: it is exported, so that a preloaded library sees it too.
api_choosing_programs = test/api/realloc_zero_keeps test/api/sized_strict
test_api_realloc_zero_keeps_SOURCES = test/api/realloc_zero_keeps.c
test_api_realloc_zero_keeps_LDFLAGS = -rdynamic
test_api_sized_strict_SOURCES = test/api/sized_strict.c
test_api_sized_strict_LDFLAGS = -rdynamic

EXTRA_PROGRAMS += test/api/conformance_new test/api/loader_locks test/api/operators test/api/operators20 \
	test/api/operators_replaced

# What is run by scripts: programs and modules for them to load.
api_scripts = test/api/archive_links.sh test/api/cxx_libraries.sh test/api/loaded_with_others.sh test/api/options_act.sh \
	test/api/options_come.sh
dist_check_SCRIPTS += $(api_scripts)
EXTRA_DIST += test/api/lib.sh test/api/modules/audit.c test/api/modules/hooks.c \
	test/api/modules/throws.cc test/api/modules/user.c
api_modules = test/api/modules/audit.so test/api/modules/hooks.so test/api/modules/user.so
check_DATA = $(api_modules) test/api/modules/plugin.so test/api/placed-linked

$(api_modules): test/api/modules/%.so: test/api/modules/%.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) $(API_CFLAGS) $(CFLAGS) -shared -fPIC $(LDFLAGS) -o $@ $<

# The same library that user.so is, but one that brings the heap along.
test/api/modules/plugin.so: test/api/modules/user.c libpamalloc.la
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) $(API_CFLAGS) $(CFLAGS) -shared -fPIC $(LDFLAGS) -o $@ \
		$(srcdir)/test/api/modules/user.c -L.libs -lpamalloc -Wl,-rpath,$(abs_builddir)/.libs

if !SANITIZED
plain_programs = $(api_programs) $(api_cxx_programs)
check_PROGRAMS += $(plain_programs) $(api_cxx20_programs) $(api_own_programs) $(api_choosing_programs) test/api/placed test/api/plugins
TESTS += $(api_page_programs:=-page16.t) $(api_page_programs:=-page64.t)
TESTS += $(plain_programs:=-linked.t) $(plain_programs:=-preloaded.t) $(api_cxx20_programs:=-preloaded.t) \
	$(api_own_programs:=-preloaded.t) $(api_programs:=-verified.t) $(api_scripts) \
	$(api_choosing_programs:=-linked.t) $(api_choosing_programs:=-preloaded.t) \
	$(api_choosing_programs:=-verified.t) $(api_choosing_programs:=-page64.t)
endif

# ---- moments of a process's life: PROGRAM-CASE.t runs one case linked, preloaded, and with the test build

noinst_HEADERS += test/api/life/life.h
life_programs = test/api/life/end test/api/life/forks test/api/life/loading test/api/life/signals test/api/life/start
life_tests = \
	test/api/life/end-after_main.t \
	test/api/life/end-after_the_main_thread.t \
	test/api/life/end-in_a_detached_thread_during_exit.t \
	test/api/life/end-in_destructors_of_keys.t \
	test/api/life/end-in_destructors_of_thread_locals.t \
	test/api/life/end-in_exit_handlers.t \
	test/api/life/end-in_quick_exit_handlers.t \
	test/api/life/forks-beside_open_files.t \
	test/api/life/forks-by__Fork.t \
	test/api/life/forks-by_clone_without_handlers.t \
	test/api/life/forks-by_vfork.t \
	test/api/life/forks-from_threads.t \
	test/api/life/forks-in_a_handler.t \
	test/api/life/forks-whose_child_goes_on_for_long.t \
	test/api/life/forks-with_handlers_that_allocate.t \
	test/api/life/loading-bound_deeply.t \
	test/api/life/loading-in_other_name_spaces.t \
	test/api/life/loading-library_comes_and_goes.t \
	test/api/life/loading-modules_open_from_their_own_path.t \
	test/api/life/loading-users_come_and_go.t \
	test/api/life/signals-abort_in_a_handler.t \
	test/api/life/signals-timer_that_allocates.t \
	test/api/life/start-all_optional_calls_refused.t \
	test/api/life/start-before_constructors.t \
	test/api/life/start-behind_a_wrapping_library.t \
	test/api/life/start-beside_an_auditor.t \
	test/api/life/start-getrandom_refused.t \
	test/api/life/start-in_a_constructor.t \
	test/api/life/start-in_dlsym.t \
	test/api/life/start-madvise_refused.t \
	test/api/life/start-membarrier_refused.t \
	test/api/life/start-mremap_refused.t \
	test/api/life/start-on_a_stack_of_16_kib.t \
	test/api/life/start-prctl_refused.t \
	test/api/life/start-sched_getaffinity_refused.t \
	test/api/life/start-sched_yield_refused.t \
	test/api/life/start-with_closed_streams.t \
	test/api/life/start-without_a_free_descriptor.t \
	test/api/life/start-without_proc.t

life_modules = test/api/modules/handlers.so test/api/modules/opens.so test/api/modules/wraps.so \
	test/api/modules/inner/pamalloc-inner.so
EXTRA_DIST += test/api/modules/handlers.c test/api/modules/opens.c test/api/modules/wraps.c
test/api/modules/handlers.so test/api/modules/wraps.so: test/api/modules/%.so: test/api/modules/%.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) $(API_CFLAGS) $(CFLAGS) -shared -fPIC $(LDFLAGS) -o $@ $<
test/api/modules/opens.so: test/api/modules/opens.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) $(API_CFLAGS) $(CFLAGS) -shared -fPIC $(LDFLAGS) \
		-Wl,-rpath,'$$ORIGIN/inner' -o $@ $<
test/api/modules/inner/pamalloc-inner.so: test/api/modules/opens.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) $(API_CFLAGS) $(CFLAGS) -shared -fPIC $(LDFLAGS) \
		-Wl,-soname,pamalloc-inner.so -o $@ $<

if !SANITIZED
check_PROGRAMS += $(life_programs)
check_DATA += $(life_modules)
TESTS += $(life_tests)
endif
$(life_tests): $(life_programs) $(life_programs:=-linked) $(life_modules) libpamalloc.la libpamtest.la
	@$(MKDIR_P) $(@D) && : >$@

# ---- how every test of test/api, test/misuse and test/stress comes to its ways

%-linked: %.$(OBJEXT) libpamalloc.la
	$(AM_V_CCLD)$(LIBTOOL) $(AM_V_lt) --tag=CC --mode=link $(CC) $(CFLAGS) $(LDFLAGS) -no-install -o $@ $< \
		libpamalloc.la $(LIBS)
test/api/%-linked: test/api/%.$(OBJEXT) libpamalloc.la
	$(AM_V_CCLD)if test -f $(srcdir)/test/api/$*.cc; then tag=CXX link='$(CXX) $(CXXFLAGS)'; else \
		tag=CC link='$(CC) $(CFLAGS)'; fi; $(LIBTOOL) $(AM_V_lt) --tag=$$tag --mode=link $$link $(LDFLAGS) \
		-no-install -o $@ $< libpamalloc.la $(LIBS)

%-linked.t: %-linked
	@: >$@
%-preloaded.t: %$(EXEEXT) libpamalloc.la
	@: >$@
%-verified.t: %$(EXEEXT) libpamtest.la
	@: >$@
%-page16.t: %$(EXEEXT) libpamtest.la
	@: >$@
%-page64.t: %$(EXEEXT) libpamtest.la
	@: >$@

.PRECIOUS: %-linked test/api/%-linked
CLEANFILES += test/api/modules/*.so test/api/modules/inner/*.so test/*/*-linked test/*/*.t test/api/life/*-linked \
	test/api/life/*.t

# Long loads, storms, and figures that must not run away.

noinst_HEADERS += test/stress/shadow.h

stress_programs = \
	test/stress/cliffs \
	test/stress/forks \
	test/stress/growth \
	test/stress/mappings \
	test/stress/model \
	test/stress/placement \
	test/stress/retained \
	test/stress/sleeper \
	test/stress/threads

# Storms run over the test build as well; time and memory are those of the release build alone.
stress_verified = test/stress/forks test/stress/model test/stress/threads

if !SANITIZED
check_PROGRAMS += $(stress_programs)
TESTS += $(stress_programs:=-preloaded.t) $(stress_verified:=-verified.t) test/stress/model-linked.t \
	test/stress/model-page16.t test/stress/model-page64.t test/stress/forks-page64.t
endif

# Of the release build, exactly, where there are figures for the compiler.
dist_check_SCRIPTS += test/stress/instructions.sh
EXTRA_DIST += test/stress/instructions/gcc-12-x86_64
if !SANITIZED
TESTS += test/stress/instructions.sh
endif

# Of the release build too: programs of bench/ whose figures are bounds.
dist_check_SCRIPTS += test/stress/few_calls.sh test/stress/limits.sh
if !SANITIZED
TESTS += test/stress/few_calls.sh test/stress/limits.sh
endif

# Under the internal names: counted and refused kernel calls, and the model for the sanitizers.
private_programs = test/stress/calls test/stress/inject test/stress/model_private test/stress/refused_frees
check_PROGRAMS += $(private_programs)

test_stress_calls_SOURCES = test/stress/calls.c
test_stress_calls_CPPFLAGS = $(UNIT_CPPFLAGS)
test_stress_calls_CFLAGS = $(UNIT_CFLAGS)
test_stress_calls_LDFLAGS = $(UNIT_LINK)
test_stress_calls_LDADD = $(UNIT_LIBS)

test_stress_inject_SOURCES = test/stress/inject.c
test_stress_inject_CPPFLAGS = $(UNIT_CPPFLAGS)
test_stress_inject_CFLAGS = $(UNIT_CFLAGS)
test_stress_inject_LDFLAGS = $(UNIT_LINK)
test_stress_inject_LDADD = $(UNIT_LIBS)

test_stress_refused_frees_SOURCES = test/stress/refused_frees.c
test_stress_refused_frees_CPPFLAGS = $(UNIT_CPPFLAGS)
test_stress_refused_frees_CFLAGS = $(UNIT_CFLAGS)
test_stress_refused_frees_LDFLAGS = $(UNIT_LINK)
test_stress_refused_frees_LDADD = $(UNIT_LIBS)

test_stress_model_private_SOURCES = test/stress/model.c
test_stress_model_private_CPPFLAGS = $(UNIT_CPPFLAGS) -DMODEL_PRIVATE=1
test_stress_model_private_CFLAGS = $(UNIT_CFLAGS)
test_stress_model_private_LDFLAGS = $(UNIT_LINK)
test_stress_model_private_LDADD = $(UNIT_LIBS)

# A sanitizer changes how often the kernel is called.
if SANITIZED
TESTS += test/stress/model_private
else
TESTS += $(private_programs)
endif

// The first call of a process, whoever makes it, and poor surroundings.
#include "life.h"
#include "../sandbox.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>

static bool early_is_good;

static bool is_case(int count, char **arguments, const char *name) {
    return count > 1 && strcmp(arguments[1], name) == 0;
}

// The loader allocates for its message.
static bool ask_dlsym(void) {
    return dlsym(RTLD_NEXT, "there is no such symbol") == NULL && dlerror() != NULL;
}

// Before the constructors of every library, the preloaded one's included.
static void first(int count, char **arguments, char **environment) {
    (void)environment;
    if (is_case(count, arguments, "before_constructors")) {
        early_is_good = work_run(1, 2000, 1 << 20) == 0;
    } else if (is_case(count, arguments, "in_dlsym")) {
        early_is_good = ask_dlsym();
    }
}

__attribute__((section(".preinit_array"), used)) static void (*const before)(int, char **,
                                                                             char **) = first;

__attribute__((constructor(101))) static void construct(int count, char **arguments) {
    if (is_case(count, arguments, "in_a_constructor")) {
        early_is_good = work_run(2, 2000, 1 << 20) == 0;
    }
}

static void early(void) {
    CHECK(early_is_good);
    CHECK(work_run(3, 2000, 1 << 20) == 0);
}

static void restart_and_work(void *unused) {
    (void)unused;
    life_restart("work");
}

static void work(void) {
    CHECK(work_run(4, 2000, 1 << 20) == 0);
}

// ---- beside others that are loaded first

static void with_auditor(void *unused) {
    (void)setenv("LD_AUDIT", life_module("audit.so"), 1);
    restart_and_work(unused);
}

static void beside_an_auditor(void) {
    const char *library = getenv("LD_PRELOAD");
    if (library != NULL && strstr(library, "pamtest") != NULL) {
        say("not tested: what the test build notes of each thread leaves the loader no room\n");
        return;
    }
    life_child(with_auditor, NULL, "LD_AUDIT");
}

// Its malloc comes first, finds the next one by dlsym, and counts.
static void with_wrapper(void *unused) {
    static char list[2 * PATH_MAX];
    const char *others = getenv("LD_PRELOAD");
    (void)snprintf(list, sizeof(list), "%s %s", life_module("wraps.so"),
                   others != NULL ? others : "");
    (void)setenv("LD_PRELOAD", list, 1);
    (void)unused;
    life_restart("wrapped");
}

static void wrapped(void) {
    size_t (*calls)(void) = (size_t(*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "wraps_calls");
    REQUIRE(calls != NULL);
    size_t before_work = calls();
    CHECK(work_run(5, 2000, 1 << 20) == 0);
    CHECK(calls() - before_work > 1000);
}

static void behind_a_wrapping_library(void) {
    life_child(with_wrapper, NULL, "a library that wraps malloc");
}

// ---- poor surroundings

static void close_streams(void *unused) {
    (void)unused;
    for (int i = 0; i < 3; i++) {
        (void)close(i);
    }
    life_restart("work");
}

static void with_closed_streams(void) {
    life_child(close_streams, NULL, "closed streams");
}

static void on_a_stack_of_16_kib(void) {
    for (int i = 0; i < 20; i++) {
        work_on_stack(PTHREAD_STACK_MIN);
    }
}

static void take_descriptors_away(void *unused) {
    struct rlimit none = { 0, 0 };
    (void)unused;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
    work_on_stack(1 << 16);
    CHECK(work_run(7, 10000, 4 << 20) == 0);
}

static void without_a_free_descriptor(void) {
    life_child(take_descriptors_away, NULL, "no free descriptor");
}

static void hide_proc(void *unused) {
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    char *arguments[] = { path, (char *)(uintptr_t) "work", NULL };
    (void)unused;
    REQUIRE(length > 0);
    path[length] = 0;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
        mount("none", "/proc", "tmpfs", MS_NOSUID, NULL) != 0) {
        _exit(EXIT_SKIP);
    }
    (void)execv(path, arguments);
    _exit(EXIT_HARD);
}

static void without_proc(void) {
    struct child_end end = run_child(hide_proc, NULL, 20);
    if (WIFEXITED(end.status) && WEXITSTATUS(end.status) == EXIT_SKIP) {
        say("not tested: no mount of one's own here\n");
        return;
    }
    expect_exit(&end, 0, "no /proc");
}

// ---- a kernel that refuses what a program can do without, from the start

struct refusal {
    int call; // none means all of them
    int error;
};

static const int optional[] = { SYS_getrandom,         SYS_madvise, SYS_mremap,
                                SYS_sched_getaffinity, SYS_prctl,   SYS_sched_yield,
                                SYS_membarrier };

static void start_refused(void *argument) {
    const struct refusal *refusal = (const struct refusal *)argument;
    if (refusal->call < 0) {
        refuse_calls(optional, sizeof(optional) / sizeof(optional[0]), refusal->error);
    } else {
        refuse_calls(&refusal->call, 1, refusal->error);
    }
    life_restart("work");
}

static void refuse(int call) {
    struct refusal refusals[] = { { call, EPERM }, { call, ENOSYS }, { call, EINVAL } };
    for (size_t i = 0; i < 3; i++) {
        life_child(start_refused, &refusals[i], strerror(refusals[i].error));
    }
}

#define REFUSED(name, call) \
    static void name##_refused(void) { \
        refuse(call); \
    }

REFUSED(getrandom, SYS_getrandom)
REFUSED(madvise, SYS_madvise)
REFUSED(mremap, SYS_mremap)
REFUSED(sched_getaffinity, SYS_sched_getaffinity)
REFUSED(prctl, SYS_prctl)
REFUSED(sched_yield, SYS_sched_yield)
REFUSED(membarrier, SYS_membarrier)
REFUSED(all_optional_calls, -1)

static const struct life_case cases[] = {
    { "before_constructors", early },
    { "in_a_constructor", early },
    { "in_dlsym", early },
    { "beside_an_auditor", beside_an_auditor },
    { "behind_a_wrapping_library", behind_a_wrapping_library },
    { "with_closed_streams", with_closed_streams },
    { "without_a_free_descriptor", without_a_free_descriptor },
    { "without_proc", without_proc },
    { "on_a_stack_of_16_kib", on_a_stack_of_16_kib },
    { "getrandom_refused", getrandom_refused },
    { "madvise_refused", madvise_refused },
    { "mremap_refused", mremap_refused },
    { "sched_getaffinity_refused", sched_getaffinity_refused },
    { "prctl_refused", prctl_refused },
    { "sched_yield_refused", sched_yield_refused },
    { "membarrier_refused", membarrier_refused },
    { "all_optional_calls_refused", all_optional_calls_refused },
};

int main(int count, char **arguments) {
    // What the cases start anew: a malloc may stand before this library's there.
    if (is_case(count, arguments, "work") || is_case(count, arguments, "wrapped")) {
        test_begin(20);
        (strcmp(arguments[1], "work") == 0 ? work : wrapped)();
        return test_end();
    }
    return life_main(count, arguments, cases, sizeof(cases) / sizeof(cases[0]));
}

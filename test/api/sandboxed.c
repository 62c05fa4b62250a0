// Does the heap work, or refuse in good order, when a sandbox answers kernel calls with errors:
// each optional call in turn from the start of the program, the ones that manage memory later, and
// all but a short list?
#include "../work.h"
#include "sandbox.h"

#include <pthread.h>

// Steps of the load: calloc's zeroes, contents and overlap are checked by it.
enum { STEPS = 10000, FEW_STEPS = 1500 };

static void restart(const char *what) {
    (void)execl("/proc/self/exe", "sandboxed", what, (char *)NULL);
    _exit(EXIT_HARD);
}

struct refusal {
    int calls[8];
    size_t count;
    int error;
};

static void start_refused(void *argument) {
    const struct refusal *refusal = (const struct refusal *)argument;
    refuse_calls(refusal->calls, refusal->count, refusal->error);
    restart("work");
}

// What a program can do without. The loader itself needs mmap, mprotect, munmap and openat.
static void each_optional_call_from_the_start(void) {
    static const int optional[] = { SYS_getrandom,         SYS_madvise, SYS_mremap,
                                    SYS_sched_getaffinity, SYS_prctl,   SYS_sched_yield,
                                    SYS_membarrier };
    static const int errors[] = { EPERM, ENOSYS, EINVAL, EAGAIN, EOPNOTSUPP };
    enum { CALLS = sizeof(optional) / sizeof(optional[0]) };
    for (size_t e = 0; e < sizeof(errors) / sizeof(errors[0]); e++) {
        struct refusal all = { { 0 }, CALLS, errors[e] };
        memcpy(all.calls, optional, sizeof(optional));
        for (size_t i = 0; i < CALLS; i++) {
            struct refusal one = { { optional[i] }, 1, errors[e] };
            struct child_end end = run_child(start_refused, &one, 20);
            if (!expect_exit(&end, 0, "one call refused")) {
                say("call %d, %s\n", optional[i], strerror(errors[e]));
            }
        }
        struct child_end end = run_child(start_refused, &all, 20);
        expect_exit(&end, 0, "all optional calls refused");
    }
}

// Placement may not become the same in each run because the kernel's generator is not to be had.
static void placement_differs_without_getrandom(int error) {
    struct refusal refusal = { { SYS_getrandom }, 1, error };
    char first[4096];
    for (size_t i = 0; i < 4; i++) {
        pid_t child;
        int ends[2];
        REQUIRE(pipe(ends) == 0);
        child = fork();
        if (child == 0) {
            (void)dup2(ends[1], 1);
            refuse_calls(refusal.calls, 1, refusal.error);
            restart("places");
        }
        (void)close(ends[1]);
        char text[4096] = { 0 };
        size_t length = 0;
        for (ssize_t n; (n = read(ends[0], text + length, sizeof(text) - 1 - length)) > 0;) {
            length += (size_t)n;
        }
        (void)close(ends[0]);
        (void)waitpid(child, NULL, 0);
        CHECK(length > 100);
        CHECK_SAY(i == 0 || strcmp(first, text) != 0, "run %zu has the places of run 0", i);
        memcpy(first, i == 0 ? text : first, sizeof(first));
    }
}

// Distances only: where the kernel puts a region is not the library's draw.
static int tell_places(void) {
    char *blocks[64];
    for (size_t i = 0; i < 64; i++) {
        blocks[i] = (char *)malloc(48);
        printf("%td ", blocks[i] - blocks[0]);
    }
    return 0;
}

static void managing_calls_refused_later(void *argument) {
    const struct refusal *refusal = (const struct refusal *)argument;
    CHECK(work_run(1, STEPS, 4 << 20) == 0);
    refuse_calls(refusal->calls, refusal->count, refusal->error);
    (void)work_run(2, STEPS, 4 << 20);
    (void)malloc_trim(0);
    // Small blocks are there from before.
    CHECK(work_run(3, STEPS, 1024) == 0);
}

// No call that gives memory back works: the heap keeps the memory, finds it again, and what it
// keeps is not taken for zeroes.
static void nothing_can_be_given_back(void *argument) {
    const struct refusal *refusal = (const struct refusal *)argument;
    refuse_calls(refusal->calls, refusal->count, refusal->error);
    for (uint64_t i = 0; i < 3; i++) {
        CHECK(work_run(i, STEPS, 1 << 20) == 0);
        (void)malloc_trim(0);
    }
}

static pthread_barrier_t barrier;

static void tell_forbidden(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)context;
    say("forbidden system call %d\n", info->si_syscall);
    _exit(4);
}

static void *work_in_the_sandbox(void *seed) {
    CHECK(work_run((uint64_t)(uintptr_t)seed, STEPS, 4 << 20) == 0);
    (void)pthread_barrier_wait(&barrier);
    (void)pthread_barrier_wait(&barrier);
    CHECK(work_run((uint64_t)(uintptr_t)seed + 10, 20 * STEPS, 100000) == 0);
    return NULL;
}

// What filters written for libc's malloc allow.
static void only_a_short_list_is_allowed(void *unused) {
    static const int allowed[] = { SYS_brk,        SYS_mmap,         SYS_munmap,
                                   SYS_mremap,     SYS_mprotect,     SYS_madvise,
                                   SYS_futex,      SYS_write,        SYS_exit,
                                   SYS_exit_group, SYS_rt_sigreturn, SYS_rt_sigprocmask };
    pthread_t threads[2];
    struct sigaction action;
    (void)unused;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = tell_forbidden;
    action.sa_flags = SA_SIGINFO;
    REQUIRE(sigaction(SIGSYS, &action, NULL) == 0);
    REQUIRE(pthread_barrier_init(&barrier, NULL, 3) == 0);
    for (uintptr_t i = 0; i < 2; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, work_in_the_sandbox, (void *)(i + 1)) == 0);
    }
    (void)pthread_barrier_wait(&barrier);
    // The main thread's filter is every thread's.
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    allow_only(allowed, sizeof(allowed) / sizeof(allowed[0]));
    (void)pthread_barrier_wait(&barrier);
    for (int i = 0; i < 2; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
}

static void expect_good(void (*body)(void *), struct refusal *refusal, const char *name) {
    struct child_end end = run_child(body, refusal, 40);
    expect_exit(&end, 0, name);
    CHECK_SAY(end.length == 0, "%s: %s", name, end.text);
}

int main(int count, char **arguments) {
    if (count > 1) {
        return strcmp(arguments[1], "places") == 0    ? tell_places()
               : work_run(1, FEW_STEPS, 1 << 20) == 0 ? test_end()
                                                      : 1;
    }
    api_begin(120);
    each_optional_call_from_the_start();
    placement_differs_without_getrandom(EAGAIN);
    placement_differs_without_getrandom(ENOSYS);
    placement_differs_without_getrandom(EPERM);
    struct refusal managing = { { SYS_madvise, SYS_mprotect, SYS_mremap }, 3, EPERM };
    expect_good(managing_calls_refused_later, &managing, "EPERM for what manages memory");
    managing.error = ENOMEM;
    expect_good(managing_calls_refused_later, &managing, "ENOMEM for what manages memory");
    struct refusal giving = { { SYS_madvise, SYS_munmap, SYS_mremap }, 3, EINVAL };
    expect_good(nothing_can_be_given_back, &giving, "nothing can be given back");
    expect_good(only_a_short_list_is_allowed, NULL, "a short list of calls");
    return test_end();
}

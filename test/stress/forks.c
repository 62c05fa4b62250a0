// Do children of threaded parents work: forked at any moment, from any thread, by any call, at once
// or again and again; can they use and free what the parent's other threads left; do they end?
#include "../work.h"
#include "../figures.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static bool stop;

static void *work_until_stopped(void *seed) {
    struct work work;
    work_begin(&work, (uint64_t)(uintptr_t)seed, 2 << 20);
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        work_step(&work);
    }
    work_end(&work);
    return NULL;
}

static void *work_shortly(void *seed) {
    CHECK(work_run((uint64_t)(uintptr_t)seed, 200, 100000) == 0);
    return NULL;
}

// Threads that come and go, so that births and deaths are interrupted by forks as well.
static void *come_and_go(void *seed) {
    uintptr_t number = (uintptr_t)seed;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, work_shortly, (void *)number++) == 0);
        REQUIRE(pthread_join(thread, NULL) == 0);
    }
    return NULL;
}

// What programs do between fork and exec, and what servers do for good.
static void use_everything(uint64_t seed, bool threads) {
    CHECK(work_run(seed, 600, 1 << 20) == 0);
    CHECK(setenv("PMA_TEST_FORKED", "some value", 1) == 0);
    DIR *folder = opendir("/proc/self");
    CHECK(folder != NULL && readdir(folder) != NULL && closedir(folder) == 0);
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file != NULL && fgetc(file) != EOF && fclose(file) == 0);
    if (threads) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, work_shortly, (void *)(uintptr_t)seed) == 0);
        REQUIRE(pthread_join(thread, NULL) == 0);
    }
    (void)malloc_trim(0);
}

static void child_lives(uint64_t seed, bool threads) {
    watchdog(20);
    failures = 0;
    use_everything(seed, threads);
    _exit(test_end());
}

static void wait_for(pid_t child, const char *what) {
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK_SAY(status == 0, "%s: child's status is %#x", what, (unsigned)status);
}

// vfork's child runs in the parent's memory.
static void by_vfork(void) {
    pid_t child = vfork();
    if (child == 0) {
        free(hide(malloc(5000)));
        _exit(0);
    }
    wait_for(child, "vfork");
}

// Raw clone and _Fork run no handlers: locks are as the moment left them, so that only a fork from
// a process with one thread is safe.
static void single_threaded_ways(void) {
    for (uint64_t i = 0; i < 50; i++) {
        pid_t child = i % 2 == 0 ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : _Fork();
        if (child == 0) {
            child_lives(i, false);
        }
        wait_for(child, "clone without handlers");
        by_vfork();
    }
    CHECK(work_run(1, 2000, 1 << 20) == 0);
}

static void forks_from_a_busy_parent(size_t count) {
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++) {
        void *(*body)(void *) = i < 2 ? work_until_stopped : come_and_go;
        REQUIRE(pthread_create(&threads[i], NULL, body, (void *)(i + 1)) == 0);
    }
    for (uint64_t i = 0; i < count && failures == 0; i++) {
        free(hide(malloc(i % 3000)));
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            child_lives(i, true);
        }
        wait_for(child, "a fork of a busy parent");
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 4; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    __atomic_store_n(&stop, false, __ATOMIC_RELAXED);
}

extern int __cxa_thread_atexit_impl(void (*destroy)(void *), void *object, void *library);
extern void *__dso_handle;

static pthread_key_t key;
static char *freed_at_exit;

static void free_at_exit(void) {
    free(hide(freed_at_exit));
    free(hide(malloc(200)));
}

// The child's only thread is the one that forked, and the child ends as programs do.
static void *fork_and_exit(void *seed) {
    char *from_parent = (char *)hide(malloc(3000));
    REQUIRE(pthread_setspecific(key, hide(malloc(40))) == 0);
    REQUIRE(__cxa_thread_atexit_impl(free, hide(malloc(60)), __dso_handle) == 0);
    for (uintptr_t i = 0; i < 60; i++) {
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            watchdog(20);
            free(hide(from_parent));
            freed_at_exit = (char *)hide(malloc(100));
            CHECK(work_run(i, 100, 100000) == 0);
            if (i % 3 == 0) {
                pthread_exit(NULL);
            }
            exit(test_end());
        }
        wait_for(child, "a fork of a second thread");
    }
    free(from_parent);
    return seed;
}

static void forks_from_other_threads(void) {
    pthread_t threads[4];
    REQUIRE(pthread_key_create(&key, free) == 0);
    REQUIRE(atexit(free_at_exit) == 0);
    for (int i = 0; i < 4; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, fork_and_exit, NULL) == 0);
    }
    for (int i = 0; i < 4; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
}

// A daemon: the parent is gone, the child forks again, as the first thing the program does.
static void fork_first(void) {
    pid_t child = fork();
    if (child != 0) {
        int status = -1;
        _exit(waitpid(child, &status, 0) == child && status == 0 ? 0 : 1);
    }
    child = fork();
    if (child != 0) {
        int status = -1;
        _exit(waitpid(child, &status, 0) == child && status == 0 ? 0 : 1);
    }
    free(hide(malloc(100)));
    _exit(0);
}

static void programs_that_fork_first(size_t count) {
    for (size_t i = 0; i < count; i++) {
        pid_t child = fork();
        if (child == 0) {
            (void)alarm(10 * slow_factor());
            (void)execl("/proc/self/exe", "forks", "first", (char *)NULL);
            _exit(EXIT_HARD);
        }
        wait_for(child, "a program that forks first");
    }
}

// ---- what the parent's threads leave in the child

enum { LEFT_THREADS = 8, LEFT_BLOCKS = 1000, LEFT_SIZE = 1024 };

static char *left[LEFT_THREADS][LEFT_BLOCKS];
static pthread_barrier_t ready;

// A MiB stays live, and 8 MiB were freed just before the thread comes to rest.
static void *leave_blocks(void *argument) {
    size_t number = (size_t)(uintptr_t)argument;
    char *others[8 * LEFT_BLOCKS / 8];
    for (size_t i = 0; i < LEFT_BLOCKS; i++) {
        left[number][i] = (char *)hide(malloc(LEFT_SIZE));
        memset(left[number][i], (int)number, LEFT_SIZE);
    }
    for (size_t i = 0; i < LEFT_BLOCKS; i++) {
        others[i] = (char *)hide(malloc(8 * LEFT_SIZE));
        memset(others[i], 1, 8 * LEFT_SIZE);
    }
    for (size_t i = 0; i < LEFT_BLOCKS; i++) {
        free(others[i]);
    }
    (void)pthread_barrier_wait(&ready);
    // Half of them are inside the heap when the fork comes, half wait outside.
    return number % 2 == 0 ? work_until_stopped(argument) : NULL;
}

static void *fill_and_free(void *unused) {
    enum { COUNT = (32 << 20) / 512 };
    static __thread char *blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = (char *)hide(malloc(512));
        REQUIRE(blocks[i] != NULL);
        memset(blocks[i], 2, 512);
    }
    (void)pthread_barrier_wait(&ready);
    for (size_t i = 0; i < COUNT; i++) {
        free(blocks[i]);
    }
    return unused;
}

// The child frees all that the threads held, and then needs 64 MiB: it may not take much more.
static void inherit(void) {
    watchdog(20);
    failures = 0;
    long before = status_kib("VmData:");
    for (size_t t = 0; t < LEFT_THREADS; t++) {
        for (size_t i = 0; i < LEFT_BLOCKS; i++) {
            CHECK(left[t][i][0] == (char)t && left[t][i][LEFT_SIZE - 1] == (char)t);
            free(hide(left[t][i]));
        }
    }
    pthread_t threads[2];
    REQUIRE(pthread_barrier_init(&ready, NULL, 3) == 0);
    for (int i = 0; i < 2; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, fill_and_free, NULL) == 0);
    }
    (void)pthread_barrier_wait(&ready);
    // The threads' stacks are no part of the heap.
    CHECK_AT_MOST(status_kib("VmData:") - before - 2 * 8192 - 1024, 80 * 1024);
    for (int i = 0; i < 2; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    (void)malloc_trim(0);
    use_everything(9, true);
    _exit(test_end());
}

static void children_adopt_what_threads_left(void) {
    pthread_t threads[LEFT_THREADS];
    REQUIRE(pthread_barrier_init(&ready, NULL, LEFT_THREADS + 1) == 0);
    for (uintptr_t i = 0; i < LEFT_THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, leave_blocks, (void *)i) == 0);
    }
    (void)pthread_barrier_wait(&ready);
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            inherit();
        }
        wait_for(child, "a child that inherits");
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (size_t i = 0; i < LEFT_THREADS; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
        for (size_t k = 0; k < LEFT_BLOCKS; k++) {
            free(left[i][k]);
        }
    }
    __atomic_store_n(&stop, false, __ATOMIC_RELAXED);
}

// Fork handlers of other libraries allocate, before and after ours, and in several threads at once.
static void *handler_block;

static void handler(void) {
    free(__atomic_exchange_n(&handler_block, hide(malloc(700)), __ATOMIC_ACQ_REL));
    free(hide(realloc(hide(malloc(100000)), 200000)));
}

// A child's child's child: each generation adopts what the one before it had.
static void generations(int depth) {
    CHECK(work_run((uint64_t)depth, 300, 1 << 20) == 0);
    if (depth == 0) {
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        watchdog(20);
        use_everything((uint64_t)depth, true);
        generations(depth - 1);
        _exit(test_end());
    }
    wait_for(child, "a generation");
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "first") == 0) {
        fork_first();
    }
    api_begin(150);
    double start = seconds_now();
    programs_that_fork_first(100);
    say("%.1f s: forked first\n", seconds_now() - start);
    single_threaded_ways();
    say("%.1f s: forked with one thread\n", seconds_now() - start);
    REQUIRE(pthread_atfork(handler, handler, handler) == 0);
    generations(12);
    say("%.1f s: generations\n", seconds_now() - start);
    forks_from_a_busy_parent(100);
    say("%.1f s: forked from a busy parent\n", seconds_now() - start);
    children_adopt_what_threads_left();
    say("%.1f s: adopted what threads left\n", seconds_now() - start);
    forks_from_other_threads();
    say("%.1f s: forked from other threads\n", seconds_now() - start);
    return test_end();
}

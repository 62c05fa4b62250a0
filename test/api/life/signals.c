// Signals in the middle of the heap's work.
#include "life.h"

#include <pthread.h>
#include <sys/time.h>

static void *work_for_ever(void *progress) {
    struct work work;
    work_begin(&work, (uint64_t)(uintptr_t)progress, 300000);
    for (;;) {
        work_step(&work);
        __atomic_fetch_add((size_t *)progress, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void handle(int number, void (*handler)(int)) {
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    REQUIRE(sigaction(number, &action, NULL) == 0);
}

// A signal each so many microseconds of the thread's own time, for this thread.
static timer_t start_timer(int number, long microseconds) {
    timer_t timer;
    struct sigevent event;
    memset(&event, 0, sizeof(event));
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = number;
    REQUIRE(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    struct itimerspec when = { { 0, microseconds * 1000 }, { 0, microseconds * 1000 } };
    REQUIRE(timer_settime(timer, 0, &when, NULL) == 0);
    return timer;
}

// ---- abort

static void abort_now(int number) {
    (void)number;
    abort();
}

static void abort_in_handler(void *unused) {
    size_t progress = 0;
    (void)unused;
    handle(SIGUSR1, abort_now);
    (void)start_timer(SIGUSR1, 3000);
    (void)work_for_ever(&progress);
}

static void free_twice(int number) {
    static char *block;
    (void)number;
    free(hide(block));
    free(hide(block));
    static char not_a_block[64];
    free(hide(not_a_block + 32));
}

static void wrong_free_in_handler(void *unused) {
    size_t progress = 0;
    (void)unused;
    handle(SIGUSR1, free_twice);
    (void)start_timer(SIGUSR1, 3000);
    (void)work_for_ever(&progress);
}

// Wherever it strikes, the process ends by SIGABRT, and soon.
static void abort_in_a_handler(void) {
    for (int i = 0; i < 20; i++) {
        struct child_end end = run_child(abort_in_handler, NULL, 5);
        check_end(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT, &end, "abort");
        CHECK_EQ(end.length, 0);
        expect_abort(wrong_free_in_handler, NULL, "free(): not a block of pamalloc");
    }
}

// ---- a profiler whose handler allocates, which no malloc allows

enum { OTHERS = 3 };

static size_t progress[OTHERS + 1];

static void allocate_in_handler(int number) {
    int error = errno;
    (void)number;
    for (size_t size = 16; size < 400000; size *= 3) {
        free(hide(malloc(size)));
    }
    errno = error;
}

static void *be_interrupted(void *mine) {
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGPROF);
    REQUIRE(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
    return work_for_ever(mine);
}

// A call inside a call that holds a lock is told, and ends the process. Until then each thread goes
// on.
static void go_on_or_end(void *unused) {
    pthread_t threads[OTHERS + 1];
    size_t before[OTHERS + 1];
    sigset_t set;
    (void)unused;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGPROF);
    REQUIRE(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    handle(SIGPROF, allocate_in_handler);
    for (size_t i = 0; i <= OTHERS; i++) {
        void *(*body)(void *) = i < OTHERS ? work_for_ever : be_interrupted;
        REQUIRE(pthread_create(&threads[i], NULL, body, &progress[i]) == 0);
    }
    (void)start_timer(SIGPROF, 300);
    for (int second = 0; second < 3; second++) {
        for (size_t i = 0; i <= OTHERS; i++) {
            before[i] = __atomic_load_n(&progress[i], __ATOMIC_RELAXED);
        }
        (void)sleep(1);
        for (size_t i = 0; i <= OTHERS; i++) {
            CHECK_SAY(__atomic_load_n(&progress[i], __ATOMIC_RELAXED) != before[i],
                      "thread %zu stands still", i);
        }
    }
    _exit(test_end());
}

// What the handler finds half done may also end the process without a word.
static void timer_that_allocates(void) {
    struct child_end end = run_child(go_on_or_end, NULL, 10);
    bool is_ended = WIFSIGNALED(end.status) && WTERMSIG(end.status) != SIGALRM;
    check_end(is_ended || (WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0), &end,
              "beside a timer that allocates");
    say("%s", end.text);
}

static const struct life_case cases[] = {
    { "abort_in_a_handler", abort_in_a_handler },
    { "timer_that_allocates", timer_that_allocates },
};

LIFE_MAIN(cases)

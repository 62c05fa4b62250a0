// Signals in the middle of the heap's work.
#include "life.h"

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

static const struct life_case cases[] = {
    { "abort_in_a_handler", abort_in_a_handler },
};

LIFE_MAIN(cases)

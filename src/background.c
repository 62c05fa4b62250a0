// background.c - the thread that gives back what lies unused while the program makes no calls.
#include <config.h>

#include "background.h"

#include "fatal.h"
#include "huge.h"
#include "init.h"
#include "options.h"
#include "os.h"
#include "pageheap.h"
#include "purge.h"
#include "sanitizer.h"
#include "thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

// The background thread looks for what is old enough this often (nanoseconds) while anything is
// free and dirty; a fork waits this long (nanoseconds) for the end of a round, which takes less
// unless the machine is overloaded.
#define PERIOD 1000000000u
#define PATIENCE 100000000u
// Its stack: a round needs less than 4 KiB, libc's own data on it less than 16 in common programs.
#define STACK ((size_t)64 << 10)

// WANTED is also what a forked child finds. OVER is for ever: the first thread ended, or no thread
// could be had.
enum phase { PHASE_OFF, PHASE_WANTED, PHASE_STARTING, PHASE_RUNNING, PHASE_OVER };

struct background {
    uint32_t phase;      // atomic; an enum phase
    uint32_t at_work;    // atomic; 1: inside a round, locks may be held
    uint32_t is_forking; // atomic; forks that want no round to begin
    pthread_key_t key;   // const after the start; its destructor tells that the first thread ends
};

static struct background background;

static bool phase_change(enum phase from, enum phase to) {
    uint32_t seen = from;
    return __atomic_compare_exchange_n(&background.phase, &seen, to, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

static enum phase phase_now(void) {
    return (enum phase)__atomic_load_n(&background.phase, __ATOMIC_SEQ_CST);
}

bool pma_background_is_running(void) {
    return phase_now() == PHASE_RUNNING;
}

// ---- rounds

static bool is_work_left(void) {
    return __atomic_load_n(&pma_pageheap.dirty, __ATOMIC_SEQ_CST) > 0;
}

// A fork and a round exclude each other: the child would miss what is on its way in a round, and
// the locks that it holds.
static bool round_begin(void) {
    __atomic_store_n(&background.at_work, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&background.is_forking, __ATOMIC_SEQ_CST) == 0) {
        return true;
    }
    __atomic_store_n(&background.at_work, 0, __ATOMIC_SEQ_CST);
    return false;
}

// What is dirty goes when it is old enough. When nothing is left, the idle arenas are looked at:
// that may make more, for the next round.
static void round_do(void) {
    if (!round_begin()) {
        return;
    }
    pma_huge_cache_tick(pma_os_time());
    pma_purge(false);
    if (!is_work_left()) {
        pma_arena_shrink_idle();
    }
    __atomic_store_n(&background.at_work, 0, __ATOMIC_SEQ_CST);
}

// Sleeps until something is freed. A free looks whether anybody sleeps without a barrier: what it
// missed, and was missed here, is seen after one more period at the latest.
static void sleep_until_called(void) {
    __atomic_store_n(&pma_purge_sleeper, PURGE_SLEEPS, __ATOMIC_SEQ_CST);
    pma_os_wait_for(&pma_purge_sleeper, PURGE_SLEEPS, PERIOD);
    while (phase_now() == PHASE_RUNNING && !is_work_left() &&
           __atomic_load_n(&pma_purge_sleeper, __ATOMIC_SEQ_CST) == PURGE_SLEEPS) {
        pma_os_wait(&pma_purge_sleeper, PURGE_SLEEPS);
    }
    __atomic_store_n(&pma_purge_sleeper, PURGE_AWAKE, __ATOMIC_SEQ_CST);
}

// Let a period pass; the end of the first thread cuts it short.
static void period_wait(void) {
    pma_os_wait_for(&background.phase, PHASE_RUNNING, PERIOD);
}

static void *thread_main(void *unused) {
    phase_change(PHASE_STARTING, PHASE_RUNNING);
    while (phase_now() == PHASE_RUNNING) {
        if (is_work_left()) {
            period_wait();
            round_do();
        } else {
            sleep_until_called();
        }
    }
    return unused;
}

// ---- start and end

// The attributes of a small detached thread are tried first; where thread-local storage leaves no
// room on such a stack, the size is libc's.
static bool thread_create(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    if (pthread_attr_init(&attributes) != 0) {
        return false;
    }
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setguardsize(&attributes, pma_page_size);
    size_t size;
    pthread_attr_getstacksize(&attributes, &size);
    bool created = pthread_attr_setstacksize(&attributes, STACK) == 0 &&
                   pthread_create(&thread, &attributes, thread_main, NULL) == 0;
    if (!created) {
        created = pthread_attr_setstacksize(&attributes, size) == 0 &&
                  pthread_create(&thread, &attributes, thread_main, NULL) == 0;
    }
    pthread_attr_destroy(&attributes);
    return created;
}

// No signal is ever handled in the thread: it inherits a mask that blocks them all. What libc
// allocates for it comes from this very library; the caller stands at a place where that is good.
PMA_COLD static void thread_start(void) {
    sigset_t all;
    sigset_t before;
    int saved = errno;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool created = thread_create();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!created) {
        phase_change(PHASE_STARTING, PHASE_OVER);
        struct fatal_line line = { .length = 0 };
        pma_line_text(&line, "pamalloc: no thread could be had for the option background\n");
        pma_line_write(&line, 2);
    }
    errno = saved;
}

// Once a second by a thread that makes calls, in the middle of one: what libc allocates now is
// another call inside it, which would leave the arena unmarked.
void pma_background_tick(void) {
    if (likely(phase_now() != PHASE_WANTED) || !phase_change(PHASE_WANTED, PHASE_STARTING)) {
        return;
    }
    struct arena *arena = pma_self;
    uint32_t busy = arena->busy;
    thread_start();
    if (arena != &pma_nobody) {
        arena->busy = busy;
    }
}

// The first thread ends and the process may live on for others; it must not do so for this one.
static void first_thread_end(void *context) {
    (void)context;
    if (__atomic_exchange_n(&background.phase, PHASE_OVER, __ATOMIC_SEQ_CST) != PHASE_OFF) {
        pma_os_wake(&background.phase);
        pma_purge_wake();
    }
}

// Not for ever: a handler of a signal that came in the middle of a call may fork while the round
// waits for a lock that this very thread holds.
static void fork_prepare(void) {
    __atomic_fetch_add(&background.is_forking, 1, __ATOMIC_SEQ_CST);
    uint64_t until = pma_os_time() + PATIENCE;
    while (__atomic_load_n(&background.at_work, __ATOMIC_SEQ_CST) != 0 && pma_os_time() < until) {
        pma_os_yield();
    }
}

static void fork_parent(void) {
    __atomic_fetch_sub(&background.is_forking, 1, __ATOMIC_SEQ_CST);
}

// The thread is gone, and the one that runs this is the child's first. Nothing is started here: the
// child may be about to execute another program.
static void fork_child(void) {
    background.is_forking = 0;
    background.at_work = 0;
    pma_purge_sleeper = PURGE_AWAKE;
    if (background.phase == PHASE_STARTING || background.phase == PHASE_RUNNING) {
        background.phase = PHASE_WANTED;
        pthread_setspecific(background.key, &background);
    }
}

void pma_background_enable(void) {
    if (!phase_change(PHASE_OFF, PHASE_STARTING)) {
        return;
    }
    // The page heap's handlers are registered first, and so run while no round is under way.
    pma_fork_register();
    if (pthread_key_create(&background.key, first_thread_end) != 0 ||
        pthread_setspecific(background.key, &background) != 0 ||
        pthread_atfork(fork_prepare, fork_parent, fork_child) != 0) {
        phase_change(PHASE_STARTING, PHASE_OVER);
        return;
    }
    thread_start();
}

__attribute__((constructor)) static void background_start(void) {
    // The sanitizer's heap is the process's, and it looks at all mappings.
    if (sanitizer_is_heap()) {
        return;
    }
    init_ensure();
    if (pma_options.background != 0) {
        pma_background_enable();
    }
}

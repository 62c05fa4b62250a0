// Do a profiler's stack traces lead out of the allocator, and does a timer's signal in the middle
// of it do no harm?
#include "../work.h"

#include <execinfo.h>
#include <pthread.h>
#include <sys/time.h>

enum { SAMPLES = 1500, DEPTH = 40 };

static void *samples[SAMPLES][DEPTH];
static int depths[SAMPLES];
static int taken;
static volatile bool stop;

static void take_sample(int number) {
    int error = errno;
    (void)number;
    int i = __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
    if (i < SAMPLES) {
        depths[i] = backtrace(samples[i], DEPTH);
    }
    errno = error;
}

// The chain's root: what each sample has to lead to.
__attribute__((noinline)) static void *root_of_the_chain(void *seed) {
    uint64_t start = (uint64_t)(uintptr_t)seed;
    while (!stop) {
        CHECK(work_run(start++, 200, 2000) == 0);
        for (int i = 0; i < 1000; i++) {
            free(hide(malloc(any(48))));
        }
    }
    return seed;
}

static bool leads_to_root(int sample) {
    uintptr_t root = (uintptr_t)root_of_the_chain;
    for (int i = 0; i < depths[sample]; i++) {
        uintptr_t address = (uintptr_t)samples[sample][i];
        if (address >= root && address < root + 2000) {
            return true;
        }
    }
    return false;
}

int main(void) {
    api_begin(40);
    pthread_t threads[2];
    void *frames[4];
    // The first backtrace loads a library, which must not happen inside a handler.
    (void)backtrace(frames, 4);
    sigset_t profile;
    (void)sigemptyset(&profile);
    (void)sigaddset(&profile, SIGPROF);
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_handler = take_sample;
    action.sa_flags = SA_RESTART;
    REQUIRE(sigaction(SIGPROF, &action, NULL) == 0);
    for (uintptr_t i = 0; i < 2; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, root_of_the_chain, (void *)(i + 1)) == 0);
    }
    REQUIRE(pthread_sigmask(SIG_BLOCK, &profile, NULL) == 0);
    struct itimerval timer = { { 0, 1000 }, { 0, 1000 } };
    REQUIRE(setitimer(ITIMER_PROF, &timer, NULL) == 0);
    for (int i = 0; i < 100 && __atomic_load_n(&taken, __ATOMIC_RELAXED) < SAMPLES; i++) {
        (void)usleep(100000);
    }
    struct itimerval off = { { 0, 0 }, { 0, 0 } };
    REQUIRE(setitimer(ITIMER_PROF, &off, NULL) == 0);
    stop = true;
    for (int i = 0; i < 2; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    int count = taken < SAMPLES ? taken : SAMPLES;
    int good = 0;
    for (int i = 0; i < count; i++) {
        good += leads_to_root(i);
    }
    // The kernel's timer ticks at 250 Hz or less on some machines, and others may have the
    // processor.
    CHECK_SAY(count >= 100, "%d samples", count);
    CHECK_SAY(good * 100 >= count * 99, "%d of %d samples lead to the root", good, count);
    return test_end();
}

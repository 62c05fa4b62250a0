// background.c - with the option background, does a process that makes no call come down, and is
// all else as before?
//
// The program starts itself again with the option set.
#include "../figures.h"
#include "../work.h"

#include <pthread.h>

enum { BLOCKS = 200000, SIZE = 300, MIB = 1024 };

static void *blocks[BLOCKS];

static void sleep_seconds(double seconds) {
    struct timespec time = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
    while (nanosleep(&time, &time) != 0) {
    }
}

static void fill_and_empty(void) {
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = hide(malloc(SIZE));
        REQUIRE(blocks[i] != NULL);
        memset(blocks[i], 1, SIZE);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
}

static void *work_in_thread(void *seed) {
    CHECK(work_run((uint64_t)(uintptr_t)seed, 3000, 1 << 20) == 0);
    return NULL;
}

static void comes_down(void) {
    long before = rss_kib();
    fill_and_empty();
    long at_once = rss_kib() - before;
    // The goal is 3 s; a loaded machine may take longer.
    double start = seconds_now();
    while (rss_kib() - before > 6 * MIB && seconds_now() - start < 10 * slow_factor()) {
        sleep_seconds(0.1);
    }
    say("%ld KiB at once, %ld after %.1f s without a call\n", at_once, rss_kib() - before,
        seconds_now() - start);
    CHECK_AT_MOST(rss_kib() - before, 6 * MIB);
    CHECK(at_once > 8 * MIB);
}

static void child_works(void *unused) {
    (void)unused;
    CHECK_EQ(status_kib("Threads:"), 1);
    CHECK(work_run(7, 3000, 1 << 20) == 0);
}

int main(int count, char **arguments) {
    if (count == 1) {
        (void)setenv("PAMALLOC_OPTIONS", "background", 1);
        (void)execl("/proc/self/exe", arguments[0], "again", (char *)NULL);
        return EXIT_HARD;
    }
    api_begin(60);
    CHECK_EQ(status_kib("Threads:"), 2);
    comes_down();
    for (int i = 0; i < 20; i++) {
        struct child_end end = run_child(child_works, NULL, 20);
        expect_exit(&end, 0, "a child");
    }
    pthread_t threads[4];
    for (unsigned i = 0; i < 4; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, work_in_thread, (void *)(uintptr_t)(i + 1)) == 0);
    }
    for (int i = 0; i < 4; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    return test_end();
}

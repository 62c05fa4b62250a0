// glibc_simple.c - what does a burst of equal blocks cost, and does it cost more once there was a
// thread?
//
//     glibc_simple [SIZE] [OPERATIONS]         16 2000000
//
// The workload of glibc's bench-malloc-simple: allocate COUNT blocks of one size, free them in the
// order in which they were allocated, and again, until OPERATIONS blocks have gone through. COUNT
// is 25, 100, 400 and 1600: within and beyond what a thread's cache of freed blocks may hold. Three
// times: `single`, in a process that has never had a second thread; `thread`, in a second thread;
// `main`, in the first thread after the second has ended. Some allocators take other ways in each.
//
// Printed: nanoseconds for a malloc and a free together, a line for each of the twelve.
//
// Not measured: use of the blocks, which are not written to; different sizes at a time.
#include <pthread.h>

#include "bench.h"

enum { COUNTS = 4, COUNT_MAX = 1600 };

static const size_t counts[COUNTS] = { 25, 100, 400, COUNT_MAX };

struct burst {
    const char *where;
    size_t size;
    size_t operations;
    void **table;
    struct watch passed[COUNTS];
};

static size_t burst_rounds(const struct burst *burst, size_t count) {
    return burst->operations / count;
}

static struct watch burst_time(const struct burst *burst, size_t count) {
    size_t rounds = burst_rounds(burst, count);
    struct watch started = watch_start();
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            burst->table[i] = malloc(burst->size);
        }
        for (size_t i = 0; i < count; i++) {
            free(burst->table[i]);
        }
    }
    return watch_stop(started);
}

static void *bursts_run(void *argument) {
    struct burst *burst = argument;
    for (size_t i = 0; i < COUNTS; i++) {
        burst->passed[i] = burst_time(burst, counts[i]);
    }
    return NULL;
}

static void burst_print(const struct burst *burst) {
    for (size_t i = 0; i < COUNTS; i++) {
        struct line line;
        line_open(&line, "glibc_simple");
        line_word(&line, "where", burst->where);
        line_count(&line, "size", burst->size);
        line_count(&line, "count", counts[i]);
        line_time(&line, &burst->passed[i], burst_rounds(burst, counts[i]) * counts[i]);
        line_close(&line);
    }
}

int main(int argc, char **argv) {
    struct burst burst = {
        .where = "single",
        .size = bench_argument(argc, argv, 1, 16),
        .operations = bench_argument(argc, argv, 2, 2000000),
        .table = bench_map(COUNT_MAX * sizeof(void *)),
    };
    if (burst.operations < COUNT_MAX) {
        bench_fail("usage: glibc_simple [SIZE] [OPERATIONS], at least %d operations", COUNT_MAX);
    }
    struct burst single = burst;
    bursts_run(&single); // the first time, for warmth only
    bursts_run(&single);

    struct burst second = burst;
    second.where = "thread";
    pthread_t thread;
    if (pthread_create(&thread, NULL, bursts_run, &second) != 0) {
        bench_fail("no thread");
    }
    pthread_join(thread, NULL);

    struct burst after = burst;
    after.where = "main";
    bursts_run(&after);

    burst_print(&single);
    burst_print(&second);
    burst_print(&after);
    return 0;
}

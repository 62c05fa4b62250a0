// glibc_thread.c - what does it cost to replace blocks at random in several threads, where most of
// them are small?
//
//     glibc_thread [THREADS] [OPERATIONS]         1 4000000
//
// The workload of glibc's bench-malloc-thread: every thread has 1,024 places; an operation picks
// one at random, frees the block that is there, and puts a new one in its place. Sizes are 4 to
// 32,768 bytes with a density that falls with the square of the size, so that half of all blocks
// have less than 8 bytes and one in 32 more than 128. Sizes and places come from tables of 8,000
// and 4,096 numbers, equal for all threads. glibc's program runs for a fixed time and counts; this
// one does OPERATIONS in each thread and takes the time, so that every allocator gets the same
// load.
//
// Printed: nanoseconds an operation (time of the whole over the operations of all threads, and time
// on the processors over the same), the largest resident size.
//
// Not measured: use of the blocks, which are not written to; blocks freed by another thread than
// their own.
#include <pthread.h>

#include "bench.h"

enum { PLACES = 1024, SIZES = 8000, PICKS = 4096, SMALLEST = 4, LARGEST = 32768 };

struct load {
    pthread_barrier_t start;
    size_t operations;
    uint32_t sizes[SIZES];
    uint32_t picks[PICKS];
};

struct worker {
    pthread_t thread;
    struct load *load;
    void *places[PLACES];
};

// With density c / size^2 the share of blocks below s is (1 / min - 1 / s) / (1 / min - 1 / max);
// this inverts it.
static uint32_t size_draw(struct rng *rng) {
    double share = (double)rng_next(rng) / 4294967296.0;
    double low = 1.0 / SMALLEST;
    double high = 1.0 / LARGEST;
    return (uint32_t)(1.0 / (low - share * (low - high)));
}

static void load_fill(struct load *load) {
    struct rng rng = rng_new(0);
    for (size_t i = 0; i < SIZES; i++) {
        load->sizes[i] = size_draw(&rng);
    }
    for (size_t i = 0; i < PICKS; i++) {
        load->picks[i] = rng_below(&rng, PLACES);
    }
}

static void *worker_main(void *argument) {
    struct worker *worker = argument;
    const struct load *load = worker->load;
    pthread_barrier_wait(&worker->load->start);
    size_t pick = 0;
    size_t size = 0;
    for (size_t i = 0; i < load->operations; i++) {
        void **place = &worker->places[load->picks[pick]];
        free(*place);
        *place = malloc(load->sizes[size]);
        pick = pick + 1 == PICKS ? 0 : pick + 1;
        size = size + 1 == SIZES ? 0 : size + 1;
    }
    return NULL;
}

int main(int argc, char **argv) {
    size_t threads = bench_argument(argc, argv, 1, 1);
    size_t operations = bench_argument(argc, argv, 2, 4000000);
    if (threads == 0 || operations == 0) {
        bench_fail("usage: glibc_thread [THREADS] [OPERATIONS]");
    }
    struct load *load = bench_map(sizeof(*load));
    load->operations = operations;
    load_fill(load);
    pthread_barrier_init(&load->start, NULL, (unsigned)threads + 1);
    struct worker *workers = bench_map(threads * sizeof(*workers));

    // With one thread the process stays without a second one, as glibc's does: some allocators are
    // faster then.
    struct watch started;
    for (size_t i = 0; i < threads; i++) {
        workers[i].load = load;
        if (threads > 1 &&
            pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) != 0) {
            bench_fail("no thread");
        }
    }
    if (threads == 1) {
        pthread_barrier_destroy(&load->start);
        pthread_barrier_init(&load->start, NULL, 1);
        started = watch_start();
        worker_main(&workers[0]);
    } else {
        started = watch_start();
        pthread_barrier_wait(&load->start);
        for (size_t i = 0; i < threads; i++) {
            pthread_join(workers[i].thread, NULL);
        }
    }
    struct watch passed = watch_stop(started);

    struct line line;
    line_open(&line, "glibc_thread");
    line_count(&line, "threads", threads);
    line_count(&line, "operations", operations);
    line_time(&line, &passed, operations * threads);
    line_count(&line, "peak", memory_read().peak);
    line_close(&line);
    return 0;
}

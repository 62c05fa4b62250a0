// engel.c - what does it take to allocate 2 GiB in 8 threads?
//
//     engel [MIB] [THREADS] [MIN] [MAX]         2048 8 384 12288
//
// Every thread allocates blocks of MIN to MAX bytes, evenly, writes all of each block with memset,
// and stops when it has its share of MIB. Nothing is freed. The load is one that made a libc call
// the kernel 332,955 times, once for every page or two by which a heap grew; run it under `strace
// -f -c` to count the calls.
//
// Printed: the time from the threads' start to the last one's end, and of all processors in it; the
// growth of resident, writable and all address space over what was asked; the number of mappings;
// page faults; the process's time in user and kernel mode.
//
// Not measured: free, and the threads' own stacks, which are mapped before the first reading.
// memset of 2 GiB is a constant share of the time.
#include <pthread.h>
#include <sys/resource.h>

#include "bench.h"

struct load {
    pthread_barrier_t ready; // all threads live; the memory is read
    pthread_barrier_t start;
    pthread_barrier_t done; // all blocks allocated
    pthread_barrier_t end;  // the memory is read again
    size_t share;
    size_t min;
    size_t max;
};

struct worker {
    pthread_t thread;
    struct load *load;
    struct rng rng;
    size_t asked;
    size_t blocks;
    char *last; // keeps the compiler from dropping the block
};

static void allocate_share(struct worker *worker) {
    const struct load *load = worker->load;
    uint32_t span = (uint32_t)(load->max - load->min + 1);
    while (worker->asked < load->share) {
        size_t size = load->min + rng_below(&worker->rng, span);
        char *block = malloc(size);
        if (block == NULL) {
            bench_fail("no memory after %zu bytes in this thread", worker->asked);
        }
        memset(block, 1, size);
        worker->last = block;
        worker->asked += size;
        worker->blocks++;
    }
}

static void *worker_main(void *argument) {
    struct worker *worker = argument;
    pthread_barrier_wait(&worker->load->ready);
    pthread_barrier_wait(&worker->load->start);
    allocate_share(worker);
    pthread_barrier_wait(&worker->load->done);
    pthread_barrier_wait(&worker->load->end);
    return NULL;
}

static double milliseconds(struct timeval time) {
    return (double)time.tv_sec * 1e3 + (double)time.tv_usec / 1e3;
}

static double growth(size_t now, size_t before, size_t asked) {
    return ((double)now - (double)before) / (double)asked;
}

static void result_print(const struct worker *workers, size_t threads, const struct watch *passed,
                         const struct memory *before, const struct memory *after) {
    size_t asked = 0;
    size_t blocks = 0;
    for (size_t i = 0; i < threads; i++) {
        asked += workers[i].asked;
        blocks += workers[i].blocks;
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    struct line line;
    line_open(&line, "engel");
    line_count(&line, "threads", threads);
    line_count(&line, "blocks", blocks);
    line_count(&line, "asked", asked);
    line_number(&line, "ms", (double)passed->wall / 1e6);
    line_number(&line, "cpu_ms", (double)passed->cpu / 1e6);
    line_number(&line, "user_ms", milliseconds(usage.ru_utime));
    line_number(&line, "system_ms", milliseconds(usage.ru_stime));
    line_add(&line, ", \"rss_ratio\": %.4f", growth(after->rss, before->rss, asked));
    line_add(&line, ", \"data_ratio\": %.4f", growth(after->data, before->data, asked));
    line_add(&line, ", \"as_ratio\": %.4f", growth(after->size, before->size, asked));
    line_count(&line, "maps", after->maps);
    line_count(&line, "faults", (size_t)usage.ru_minflt);
    line_close(&line);
}

int main(int argc, char **argv) {
    size_t total = bench_argument(argc, argv, 1, 2048) << 20;
    size_t threads = bench_argument(argc, argv, 2, 8);
    struct load load = { .min = bench_argument(argc, argv, 3, 384),
                         .max = bench_argument(argc, argv, 4, 12288) };
    if (threads == 0 || load.min > load.max || load.max > UINT32_MAX / 2) {
        bench_fail("usage: engel [MIB] [THREADS] [MIN] [MAX]");
    }
    load.share = total / threads;
    pthread_barrier_init(&load.ready, NULL, (unsigned)threads + 1);
    pthread_barrier_init(&load.start, NULL, (unsigned)threads + 1);
    pthread_barrier_init(&load.done, NULL, (unsigned)threads + 1);
    pthread_barrier_init(&load.end, NULL, (unsigned)threads + 1);

    struct worker *workers = bench_map(threads * sizeof(*workers));
    for (size_t i = 0; i < threads; i++) {
        workers[i].load = &load;
        workers[i].rng = rng_new(i);
        if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) != 0) {
            bench_fail("no thread");
        }
    }
    pthread_barrier_wait(&load.ready);
    struct memory before = memory_read_first();
    struct watch started = watch_start();
    pthread_barrier_wait(&load.start);
    pthread_barrier_wait(&load.done);
    struct watch passed = watch_stop(started);
    struct memory after = memory_read();
    pthread_barrier_wait(&load.end);
    for (size_t i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    result_print(workers, threads, &passed, &before, &after);
    return 0;
}

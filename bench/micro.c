// micro.c - what does one call cost in each of the simplest patterns?
//
//     micro [-n OPERATIONS] CASE ARGUMENTS...
//
//     pair SIZE               malloc, free
//     lifo COUNT SIZE         COUNT times malloc, then free in the opposite order
//     fifo COUNT SIZE         COUNT times malloc, then free in the same order
//     random COUNT MIN MAX    COUNT live blocks; one at random is freed, and one of MIN to MAX bytes
//                             takes its place
//     handoff SIZE            one thread allocates, another frees; a ring of 1,024 pointers between
//     calloc SIZE             calloc(1, SIZE), free
//     realloc START END STEP  one block grown from START to END bytes by STEP at a time (0: it
//                             doubles), then freed
//
// An operation is a malloc and a free together (realloc: one realloc). The first byte of every
// block is written, as a program would do at least. COUNT blocks that a case needs before it can
// begin are not counted and not timed.
//
// Printed: nanoseconds an operation, the largest resident size.
//
// Not measured: the cost that an allocator moves elsewhere: to the cache misses of the program's
// own later accesses, to the kernel after the process has ended, to other threads. The loop itself
// (drawing a place and a size takes some 15 instructions) is in the time; bench/count counts
// without it.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "bench.h"

enum { ARGUMENTS_MAX = 3, RING = 1024 };

struct task {
    size_t operations;
    size_t argument[ARGUMENTS_MAX];
    struct watch passed;
};

static inline void *block_check(void *block) {
    if (__builtin_expect(block == NULL, 0)) {
        bench_fail("no memory");
    }
    *(volatile char *)block = 1;
    return block;
}

static inline void *block_get(size_t size) {
    return block_check(malloc(size));
}

// ---- the cases

static void pair_run(struct task *task) {
    size_t size = task->argument[0];
    struct watch started = watch_start();
    for (size_t i = 0; i < task->operations; i++) {
        free(block_get(size));
    }
    task->passed = watch_stop(started);
}

static void batch_run(struct task *task, int backwards) {
    size_t count = task->argument[0];
    size_t size = task->argument[1];
    void **table = bench_map(count * sizeof(*table));
    size_t rounds = task->operations / count;
    task->operations = rounds * count;
    struct watch started = watch_start();
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            table[i] = block_get(size);
        }
        for (size_t i = 0; i < count; i++) {
            free(table[backwards ? count - 1 - i : i]);
        }
    }
    task->passed = watch_stop(started);
}

static void lifo_run(struct task *task) {
    batch_run(task, 1);
}

static void fifo_run(struct task *task) {
    batch_run(task, 0);
}

static void random_run(struct task *task) {
    uint32_t count = (uint32_t)task->argument[0];
    uint32_t min = (uint32_t)task->argument[1];
    uint32_t span = (uint32_t)task->argument[2] - min + 1;
    struct rng rng = rng_new(0);
    void **table = bench_map(count * sizeof(*table));
    for (uint32_t i = 0; i < count; i++) {
        table[i] = block_get(min + rng_below(&rng, span));
    }
    struct watch started = watch_start();
    for (size_t i = 0; i < task->operations; i++) {
        void **place = &table[rng_below(&rng, count)];
        free(*place);
        *place = block_get(min + rng_below(&rng, span));
    }
    task->passed = watch_stop(started);
    for (uint32_t i = 0; i < count; i++) {
        free(table[i]);
    }
}

// The two ends lie 128 bytes apart, lest the ring's own traffic hide the allocator's.
struct ring {
    _Alignas(128) _Atomic size_t put;
    _Alignas(128) _Atomic size_t taken;
    _Alignas(128) size_t operations;
    void *blocks[RING];
};

static void *consumer_main(void *argument) {
    struct ring *ring = argument;
    size_t taken = 0;
    while (taken < ring->operations) {
        size_t put = atomic_load_explicit(&ring->put, memory_order_acquire);
        if (put == taken) {
            sched_yield();
            continue;
        }
        for (; taken < put; taken++) {
            free(ring->blocks[taken % RING]);
        }
        atomic_store_explicit(&ring->taken, taken, memory_order_release);
    }
    return NULL;
}

static void handoff_run(struct task *task) {
    struct ring *ring = bench_map(sizeof(*ring));
    ring->operations = task->operations;
    pthread_t consumer;
    struct watch started = watch_start();
    if (pthread_create(&consumer, NULL, consumer_main, ring) != 0) {
        bench_fail("no thread");
    }
    size_t taken = 0;
    for (size_t put = 0; put < task->operations; put++) {
        while (put - taken == RING) {
            taken = atomic_load_explicit(&ring->taken, memory_order_acquire);
            if (put - taken == RING) {
                sched_yield();
            }
        }
        ring->blocks[put % RING] = block_get(task->argument[0]);
        atomic_store_explicit(&ring->put, put + 1, memory_order_release);
    }
    pthread_join(consumer, NULL);
    task->passed = watch_stop(started);
}

static void calloc_run(struct task *task) {
    size_t size = task->argument[0];
    struct watch started = watch_start();
    for (size_t i = 0; i < task->operations; i++) {
        free(block_check(calloc(1, size)));
    }
    task->passed = watch_stop(started);
}

static void realloc_run(struct task *task) {
    size_t start = task->argument[0];
    size_t end = task->argument[1];
    size_t step = task->argument[2];
    struct watch started = watch_start();
    char *block = NULL;
    size_t size = 0;
    for (size_t i = 0; i < task->operations; i++) {
        size_t next = block == NULL ? start : step == 0 ? size * 2 : size + step;
        if (next > end) {
            free(block);
            block = NULL;
            next = start;
        }
        block = block_check(realloc(block, next));
        block[next - 1] = 1;
        size = next;
    }
    free(block);
    task->passed = watch_stop(started);
}

// ---- choosing

struct pattern {
    const char *name;
    void (*run)(struct task *task);
    size_t arguments;
    const char *argument_names[ARGUMENTS_MAX];
    size_t operations;
};

static const struct pattern patterns[] = {
    { "pair", pair_run, 1, { "size" }, 20000000 },
    { "lifo", lifo_run, 2, { "count", "size" }, 20000000 },
    { "fifo", fifo_run, 2, { "count", "size" }, 20000000 },
    { "random", random_run, 3, { "count", "min", "max" }, 10000000 },
    { "handoff", handoff_run, 1, { "size" }, 5000000 },
    { "calloc", calloc_run, 1, { "size" }, 20000000 },
    { "realloc", realloc_run, 3, { "start", "end", "step" }, 1000000 },
};

static const struct pattern *pattern_find(const char *name) {
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        if (strcmp(name, patterns[i].name) == 0) {
            return &patterns[i];
        }
    }
    bench_fail("no case is named %s", name);
}

// Sizes and counts are all at least 1, and a range begins with its smaller end; only realloc's step
// may be 0.
static void task_check(const struct pattern *pattern, const struct task *task) {
    for (size_t i = 0; i < pattern->arguments; i++) {
        if (task->argument[i] == 0 && strcmp(pattern->argument_names[i], "step") != 0) {
            bench_fail("%s: %s must be at least 1", pattern->name, pattern->argument_names[i]);
        }
        if (task->argument[i] > UINT32_MAX / 2) {
            bench_fail("%s: %s is too large", pattern->name, pattern->argument_names[i]);
        }
    }
    if (pattern->run == random_run && task->argument[1] > task->argument[2]) {
        bench_fail("random: min is larger than max");
    }
    if (pattern->run == realloc_run && task->argument[0] > task->argument[1]) {
        bench_fail("realloc: start is larger than end");
    }
}

int main(int argc, char **argv) {
    int at = 1;
    size_t operations = 0;
    if (argc > 2 && strcmp(argv[1], "-n") == 0) {
        operations = bench_argument(argc, argv, 2, 0);
        at = 3;
    }
    if (at >= argc) {
        bench_fail("usage: micro [-n OPERATIONS] CASE ARGUMENTS...\n"
                   "cases: pair lifo fifo random handoff calloc realloc; see the head of micro.c");
    }
    const struct pattern *pattern = pattern_find(argv[at]);
    if ((size_t)(argc - at - 1) != pattern->arguments) {
        bench_fail("%s takes %zu arguments", pattern->name, pattern->arguments);
    }
    struct task task = { .operations = operations != 0 ? operations : pattern->operations };
    for (size_t i = 0; i < pattern->arguments; i++) {
        task.argument[i] = bench_argument(argc, argv, at + 1 + (int)i, 0);
    }
    task_check(pattern, &task);
    pattern->run(&task);

    struct line line;
    line_open(&line, "micro");
    line_word(&line, "case", pattern->name);
    for (size_t i = 0; i < pattern->arguments; i++) {
        line_count(&line, pattern->argument_names[i], task.argument[i]);
    }
    line_count(&line, "operations", task.operations);
    line_time(&line, &task.passed, task.operations);
    line_count(&line, "peak", memory_read().peak);
    line_close(&line);
    return 0;
}

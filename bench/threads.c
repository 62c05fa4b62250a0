// threads.c - what do threads cost each other?
//
//     threads [-n OPERATIONS] CASE ARGUMENTS...
//
//     pass FREEING            one thread allocates, FREEING threads free
//     ring THREADS            each allocates for the next one, and frees what the one before it did
//     random THREADS          each puts new blocks at random places of one table, and frees what it
//                             finds there
//     many THREADS            each replaces blocks of its own, 100 live, and nobody else's
//     requests LIVES          a thread lives for one request: 200 blocks, of which the last one is
//                             freed by the thread that waits for it; two live at a time
//     live THREADS            all are alive at once, each with 32 blocks
//     line 2                  no malloc: two threads answer each other through one word; what the
//                             transfer of a cache line between processors costs, at the least
//
// Blocks have 16 to 1024 bytes. An operation is a malloc and a free together (live: the life of a
// thread with all its blocks). Between two threads lies a ring of 1,024 pointers.
//
// Printed: nanoseconds an operation on the wall and on the processors, the largest resident size,
// and, where malloc_stats tells "lock waits", how often a thread found a lock held.
//
// Not measured: what more processors than this machine's would do to each other.
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "bench.h"

enum {
    RING = 1024,
    BURST = 64,
    TABLE = 4096,
    OWN = 100,
    REQUEST = 200,
    FEW = 32,
    TURNS = 32,
    THREADS_MAX = 20000,
    SIZE_MIN = 16,
    SIZE_SPAN = 1009
};

// One thread puts, one takes; the two ends lie on lines of their own.
struct ring {
    _Alignas(128) _Atomic size_t put;
    _Atomic int closed;
    _Alignas(128) _Atomic size_t taken;
    _Alignas(128) void *blocks[RING];
};

struct worker {
    pthread_t thread;
    struct rng rng;
    size_t operations;
    struct ring *in;  // NULL: takes nothing
    struct ring *out; // NULL: gives nothing; else the first of `outs`
    size_t outs;
    _Atomic(void *) *table;
    _Atomic size_t *word;
    pthread_barrier_t *barrier;
    void *left;
};

struct task {
    size_t operations;
    size_t argument;
    struct watch passed;
};

static void *block_get(struct rng *rng) {
    size_t size = SIZE_MIN + rng_below(rng, SIZE_SPAN);
    void *block = malloc(size);
    if (block == NULL) {
        bench_fail("no memory");
    }
    *(volatile char *)block = 1;
    return block;
}

static void worker_start(struct worker *worker, void *(*run)(void *)) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)1 << 16);
    if (pthread_create(&worker->thread, &attributes, run, worker) != 0) {
        bench_fail("no thread");
    }
    pthread_attr_destroy(&attributes);
}

static struct worker *workers_new(size_t count) {
    struct worker *workers = bench_map(count * sizeof(*workers));
    for (size_t i = 0; i < count; i++) {
        workers[i].rng = rng_new(i);
    }
    return workers;
}

static struct watch workers_run(struct worker *workers, size_t count, void *(*run)(void *)) {
    struct watch started = watch_start();
    for (size_t i = 0; i < count; i++) {
        worker_start(&workers[i], run);
    }
    for (size_t i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    return watch_stop(started);
}

// ---- rings

// Returns how many blocks went in: none when there is no room for a burst.
static size_t ring_put(struct ring *ring, struct rng *rng, size_t most) {
    size_t put = atomic_load_explicit(&ring->put, memory_order_relaxed);
    size_t taken = atomic_load_explicit(&ring->taken, memory_order_acquire);
    size_t count = most < BURST ? most : BURST;
    if (RING - (put - taken) < count) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        ring->blocks[(put + i) % RING] = block_get(rng);
    }
    atomic_store_explicit(&ring->put, put + count, memory_order_release);
    return count;
}

static size_t ring_free(struct ring *ring) {
    size_t taken = atomic_load_explicit(&ring->taken, memory_order_relaxed);
    size_t put = atomic_load_explicit(&ring->put, memory_order_acquire);
    for (size_t i = taken; i < put; i++) {
        free(ring->blocks[i % RING]);
    }
    atomic_store_explicit(&ring->taken, put, memory_order_release);
    return put - taken;
}

static int ring_ended(struct ring *ring) {
    return atomic_load_explicit(&ring->closed, memory_order_acquire) &&
           atomic_load(&ring->put) == atomic_load(&ring->taken);
}

static void *ring_main(void *argument) {
    struct worker *worker = argument;
    size_t left = worker->out == NULL ? 0 : worker->operations;
    size_t next = 0;
    int closed = worker->out == NULL;
    while (!closed || (worker->in != NULL && !ring_ended(worker->in))) {
        size_t moved = 0;
        if (left > 0) {
            moved = ring_put(&worker->out[next], &worker->rng, left);
            left -= moved;
            next = (next + 1) % worker->outs;
        } else if (!closed) {
            for (size_t i = 0; i < worker->outs; i++) {
                atomic_store_explicit(&worker->out[i].closed, 1, memory_order_release);
            }
            closed = 1;
        }
        if (worker->in != NULL) {
            moved += ring_free(worker->in);
        }
        if (moved == 0) {
            sched_yield();
        }
    }
    return NULL;
}

static void pass_run(struct task *task) {
    size_t freeing = task->argument;
    struct worker *workers = workers_new(freeing + 1);
    struct ring *rings = bench_map(freeing * sizeof(*rings));
    workers[0].out = rings;
    workers[0].outs = freeing;
    workers[0].operations = task->operations;
    for (size_t i = 0; i < freeing; i++) {
        workers[i + 1].in = &rings[i];
    }
    task->passed = workers_run(workers, freeing + 1, ring_main);
}

static void ring_run(struct task *task) {
    size_t count = task->argument;
    struct worker *workers = workers_new(count);
    struct ring *rings = bench_map(count * sizeof(*rings));
    for (size_t i = 0; i < count; i++) {
        workers[i].out = &rings[i];
        workers[i].outs = 1;
        workers[i].in = &rings[(i + count - 1) % count];
        workers[i].operations = task->operations / count;
    }
    task->operations = task->operations / count * count;
    task->passed = workers_run(workers, count, ring_main);
}

// ---- one table

static void *random_main(void *argument) {
    struct worker *worker = argument;
    for (size_t i = 0; i < worker->operations; i++) {
        void *block = block_get(&worker->rng);
        free(atomic_exchange(&worker->table[rng_below(&worker->rng, TABLE)], block));
    }
    return NULL;
}

static void random_run(struct task *task) {
    size_t count = task->argument;
    struct worker *workers = workers_new(count);
    _Atomic(void *) *table = bench_map(TABLE * sizeof(*table));
    for (size_t i = 0; i < count; i++) {
        workers[i].table = table;
        workers[i].operations = task->operations / count;
    }
    task->operations = task->operations / count * count;
    task->passed = workers_run(workers, count, random_main);
}

// ---- each for itself

static void *many_main(void *argument) {
    struct worker *worker = argument;
    void *own[OWN] = { NULL };
    for (size_t i = 0; i < worker->operations; i++) {
        void **place = &own[rng_below(&worker->rng, OWN)];
        free(*place);
        *place = block_get(&worker->rng);
    }
    for (size_t i = 0; i < OWN; i++) {
        free(own[i]);
    }
    return NULL;
}

static void many_run(struct task *task) {
    size_t count = task->argument;
    struct worker *workers = workers_new(count);
    for (size_t i = 0; i < count; i++) {
        workers[i].operations = task->operations / count;
    }
    task->operations = task->operations / count * count;
    task->passed = workers_run(workers, count, many_main);
}

// ---- short lives

static void *request_main(void *argument) {
    struct worker *worker = argument;
    void *blocks[REQUEST];
    for (size_t i = 0; i < REQUEST; i++) {
        blocks[i] = block_get(&worker->rng);
    }
    for (size_t i = 0; i < REQUEST - 1; i++) {
        free(blocks[i]);
    }
    worker->left = blocks[REQUEST - 1];
    return NULL;
}

static void requests_run(struct task *task) {
    struct worker *workers = workers_new(2);
    struct watch started = watch_start();
    for (size_t i = 0; i < task->argument + 2; i++) {
        struct worker *worker = &workers[i % 2];
        if (i >= 2) {
            pthread_join(worker->thread, NULL);
            free(worker->left);
        }
        if (i < task->argument) {
            worker_start(worker, request_main);
        }
    }
    task->passed = watch_stop(started);
    task->operations = task->argument * REQUEST;
}

static void *live_main(void *argument) {
    struct worker *worker = argument;
    void *blocks[FEW];
    for (size_t i = 0; i < FEW; i++) {
        blocks[i] = block_get(&worker->rng);
    }
    pthread_barrier_wait(worker->barrier);
    for (size_t i = 0; i < FEW; i++) {
        free(blocks[i]);
    }
    return NULL;
}

static void live_run(struct task *task) {
    size_t count = task->argument;
    struct worker *workers = workers_new(count);
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    for (size_t i = 0; i < count; i++) {
        workers[i].barrier = &barrier;
    }
    task->passed = workers_run(workers, count, live_main);
    task->operations = count;
}

// ---- the line itself

static void *line_main(void *argument) {
    struct worker *worker = argument;
    for (size_t turn = 1; turn < 2 * worker->operations; turn += 2) {
        while (atomic_load_explicit(worker->word, memory_order_acquire) != turn) {
        }
        atomic_store_explicit(worker->word, turn + 1, memory_order_release);
    }
    return NULL;
}

// The time of one transfer: the least over some turns there and back, since both threads must have
// a processor at that moment.
static void line_run(struct task *task) {
    struct worker *worker = workers_new(1);
    _Atomic size_t *word = bench_map(sizeof(*word));
    uint64_t least = UINT64_MAX;
    uint64_t started = bench_clock(CLOCK_MONOTONIC);
    worker->word = word;
    worker->operations = task->operations;
    worker_start(worker, line_main);
    for (size_t i = 0; i < task->operations; i++) {
        atomic_store_explicit(word, 2 * i + 1, memory_order_release);
        while (atomic_load_explicit(word, memory_order_acquire) != 2 * i + 2) {
        }
        if (i % TURNS == TURNS - 1) {
            uint64_t now = bench_clock(CLOCK_MONOTONIC);
            least = now - started < least ? now - started : least;
            started = now;
        }
    }
    pthread_join(worker->thread, NULL);
    task->passed = (struct watch){ least, least };
    task->operations = 2 * TURNS;
}

// ---- choosing

struct pattern {
    const char *name;
    void (*run)(struct task *task);
    size_t operations;
};

static const struct pattern patterns[] = {
    { "pass", pass_run, 3000000 },     { "ring", ring_run, 3000000 },
    { "random", random_run, 3000000 }, { "many", many_run, 3000000 },
    { "requests", requests_run, 0 },   { "live", live_run, 0 },
    { "line", line_run, 300000 },
};

static const struct pattern *pattern_find(const char *name) {
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        if (strcmp(name, patterns[i].name) == 0) {
            return &patterns[i];
        }
    }
    bench_fail("no case is named %s", name);
}

// What malloc_stats says, on a standard error that is a file for as long. Only pamalloc counts
// this.
static long lock_waits(void) {
    char text[4096] = "";
    FILE *file = tmpfile();
    int kept = dup(STDERR_FILENO);
    if (file == NULL || kept < 0) {
        return -1;
    }
    dup2(fileno(file), STDERR_FILENO);
    malloc_stats();
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    ssize_t got = pread(fileno(file), text, sizeof(text) - 1, 0);
    fclose(file);
    const char *found = got <= 0 ? NULL : strstr(text, "\nlock waits ");
    return found == NULL ? -1 : strtol(found + strlen("\nlock waits "), NULL, 10);
}

int main(int argc, char **argv) {
    int at = 1;
    size_t operations = 0;
    if (argc > 2 && strcmp(argv[1], "-n") == 0) {
        operations = bench_argument(argc, argv, 2, 0);
        at = 3;
    }
    if (argc - at != 2) {
        bench_fail("usage: threads [-n OPERATIONS] CASE NUMBER\n"
                   "cases: pass ring random many requests live line; see the head of threads.c");
    }
    const struct pattern *pattern = pattern_find(argv[at]);
    struct task task = { .operations = operations != 0 ? operations : pattern->operations,
                         .argument = bench_argument(argc, argv, at + 1, 0) };
    if (pattern->run == line_run && (task.argument != 2 || task.operations < TURNS)) {
        bench_fail("line is between 2 threads, of %d turns at least", TURNS);
    }
    if (task.argument == 0 || (pattern->operations != 0 && task.argument > THREADS_MAX)) {
        bench_fail("threads: from 1 to %d threads", THREADS_MAX);
    }
    pattern->run(&task);

    struct line line;
    line_open(&line, "threads");
    line_word(&line, "case", pattern->name);
    line_count(&line, "threads", task.argument);
    line_count(&line, "operations", task.operations);
    line_time(&line, &task.passed, task.operations);
    line_count(&line, "peak", memory_read().peak);
    long waits = lock_waits();
    if (waits >= 0) {
        line_count(&line, "lock_waits", (size_t)waits);
    }
    line_close(&line);
    return 0;
}

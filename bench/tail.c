// tail.c - how long is the longest of many calls?
//
//     tail [-n OPERATIONS] calls BLOCKS
//     tail shuffle COUNT SIZE
//
//     calls      BLOCKS live blocks, of 16 to 1024 bytes mostly, one in 64 to 32 KiB, one in 4,096
//                to 1 MiB; one at random is freed and another takes its place; every call is timed
//     shuffle    COUNT blocks of SIZE bytes are allocated and freed in random order
//
// Printed: of malloc and of free, in nanoseconds, the median, the 99.9th and the 99.999th
// percentile and the longest call; of shuffle, nanoseconds an operation, which should not depend on
// COUNT.
//
// The clock is the thread's own time on the processor: with time on the wall, what happens to one
// call in 100,000 is another program's turn. Interrupts are in it. Reading it takes some 150 ns,
// which are in each time of `calls`, so the medians of two allocators differ by less than their
// speeds.
#include "bench.h"

// Times below 64 ns have a place each; above there are 32 for each doubling, so a percentile is at
// most 3 % off.
enum { PLACES = 2048, FINE = 64, PARTS = 32 };

struct times {
    size_t counts[PLACES];
    size_t number;
    uint64_t longest;
};

static size_t place_of(uint64_t time) {
    if (time < FINE) {
        return (size_t)time;
    }
    unsigned highest = 63 - (unsigned)__builtin_clzll(time);
    size_t place = FINE + (highest - 6) * PARTS + (size_t)(time >> (highest - 5) & (PARTS - 1));
    return place < PLACES ? place : PLACES - 1;
}

static uint64_t time_of(size_t place) {
    if (place < FINE) {
        return place;
    }
    unsigned highest = (unsigned)((place - FINE) / PARTS) + 6;
    return ((uint64_t)PARTS + (place - FINE) % PARTS) << (highest - 5);
}

static void times_add(struct times *times, uint64_t time) {
    times->counts[place_of(time)]++;
    times->number++;
    if (time > times->longest) {
        times->longest = time;
    }
}

// The time that so many of a hundred thousand calls take at most.
static uint64_t percentile(const struct times *times, size_t of_100000) {
    size_t wanted = times->number / 100000 * of_100000;
    size_t seen = 0;
    for (size_t i = 0; i < PLACES; i++) {
        seen += times->counts[i];
        if (seen > wanted) {
            return time_of(i);
        }
    }
    return times->longest;
}

static size_t size_drawn(struct rng *rng) {
    uint32_t kind = rng_below(rng, 4096);
    uint32_t most = kind == 0 ? 1 << 20 : kind < 64 ? 32 << 10 : 1008;
    return 16 + rng_below(rng, most);
}

static void *block_check(void *block) {
    if (block == NULL) {
        bench_fail("no memory");
    }
    *(volatile char *)block = 1;
    return block;
}

static void times_print(struct line *line, const char *call, const struct times *times) {
    static const struct {
        const char *name;
        size_t of_100000;
    } shown[] = { { "median", 50000 }, { "p999", 99900 }, { "p99999", 99999 } };
    char name[64];
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
        snprintf(name, sizeof(name), "%s_%s", call, shown[i].name);
        line_count(line, name, percentile(times, shown[i].of_100000));
    }
    snprintf(name, sizeof(name), "%s_longest", call);
    line_count(line, name, times->longest);
}

static void calls_run(size_t operations, size_t blocks) {
    struct rng rng = rng_new(0);
    void **table = bench_map(blocks * sizeof(*table));
    struct times *mallocs = bench_map(sizeof(*mallocs));
    struct times *frees = bench_map(sizeof(*frees));
    for (size_t i = 0; i < blocks; i++) {
        table[i] = block_check(malloc(size_drawn(&rng)));
    }
    for (size_t i = 0; i < operations; i++) {
        void **place = &table[rng_below(&rng, (uint32_t)blocks)];
        size_t size = size_drawn(&rng);
        uint64_t start = bench_clock(CLOCK_THREAD_CPUTIME_ID);
        free(*place);
        uint64_t middle = bench_clock(CLOCK_THREAD_CPUTIME_ID);
        *place = malloc(size);
        uint64_t end = bench_clock(CLOCK_THREAD_CPUTIME_ID);
        block_check(*place);
        times_add(frees, middle - start);
        times_add(mallocs, end - middle);
    }
    struct line line;
    line_open(&line, "tail");
    line_word(&line, "case", "calls");
    line_count(&line, "blocks", blocks);
    line_count(&line, "operations", operations);
    times_print(&line, "malloc", mallocs);
    times_print(&line, "free", frees);
    line_count(&line, "peak", memory_read().peak);
    line_close(&line);
}

static void shuffle_run(size_t count, size_t size) {
    struct rng rng = rng_new(0);
    void **table = bench_map(count * sizeof(*table));
    struct watch started = watch_start();
    for (size_t i = 0; i < count; i++) {
        table[i] = block_check(malloc(size));
    }
    struct watch allocated = watch_stop(started);
    for (size_t i = count - 1; i > 0; i--) {
        size_t other = rng_below(&rng, (uint32_t)i + 1);
        void *block = table[i];
        table[i] = table[other];
        table[other] = block;
    }
    started = watch_start();
    for (size_t i = 0; i < count; i++) {
        free(table[i]);
    }
    struct watch freed = watch_stop(started);
    struct line line;
    line_open(&line, "tail");
    line_word(&line, "case", "shuffle");
    line_count(&line, "count", count);
    line_count(&line, "size", size);
    line_number(&line, "malloc_ns", (double)allocated.cpu / (double)count);
    line_number(&line, "free_ns", (double)freed.cpu / (double)count);
    allocated.wall += freed.wall;
    allocated.cpu += freed.cpu;
    line_time(&line, &allocated, count);
    line_count(&line, "peak", memory_read().peak);
    line_close(&line);
}

int main(int argc, char **argv) {
    int at = 1;
    size_t operations = 5000000;
    if (argc > 2 && strcmp(argv[1], "-n") == 0) {
        operations = bench_argument(argc, argv, 2, 0);
        at = 3;
    }
    size_t count = bench_argument(argc, argv, at + 1, 0);
    if (count == 0 || count > UINT32_MAX / 2) {
        bench_fail("usage: tail [-n OPERATIONS] calls BLOCKS | tail shuffle COUNT SIZE");
    }
    if (strcmp(argv[at], "calls") == 0 && argc - at == 2) {
        calls_run(operations, count);
    } else if (strcmp(argv[at], "shuffle") == 0 && argc - at == 3) {
        shuffle_run(count, bench_argument(argc, argv, at + 2, 0));
    } else {
        bench_fail("usage: tail [-n OPERATIONS] calls BLOCKS | tail shuffle COUNT SIZE");
    }
    return 0;
}

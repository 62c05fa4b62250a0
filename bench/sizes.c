// sizes.c - does any size stand out?
//
//     sizes [-r ROUNDS] CASE FROM TO [FROM TO]...
//
//     pair       malloc, free
//     batch      malloc of some blocks (64, or what 1 MiB holds, but two at least), then free
//     calloc     calloc(1, SIZE), free
//     realloc    malloc, realloc to SIZE + 1, free
//
// Every size from FROM to TO is tried, in order, in each of the rounds, and the least time counts:
// a slow instant of the machine falls on a few sizes in one round, and seldom on the same ones
// again. The first byte of every block is written.
//
// Printed: a line for each size with the nanoseconds of one operation. bench/sweep runs this over
// several allocators and says which sizes stand out.
//
// Not measured: more than the size in question being in use, so nothing about a heap that is full
// of other sizes.
#include "bench.h"

enum { BATCH = 64, OPERATIONS = 64, ROUNDS = 5 };

static void *block_check(void *block) {
    if (__builtin_expect(block == NULL, 0)) {
        bench_fail("no memory");
    }
    *(volatile char *)block = 1;
    return block;
}

// Fewer where one operation moves so many bytes that the clock's own time is nothing beside it.
static size_t operations_for(size_t size, size_t bytes) {
    size_t fitting = bytes / size;
    return fitting > OPERATIONS ? OPERATIONS : fitting < 2 ? 2 : fitting;
}

static size_t pair_run(size_t size) {
    for (size_t i = 0; i < OPERATIONS; i++) {
        free(block_check(malloc(size)));
    }
    return OPERATIONS;
}

static size_t batch_run(size_t size) {
    void *blocks[BATCH];
    size_t count = operations_for(size, (size_t)1 << 20);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = block_check(malloc(size));
    }
    for (size_t i = 0; i < count; i++) {
        free(blocks[i]);
    }
    return count;
}

static size_t calloc_run(size_t size) {
    size_t count = operations_for(size, (size_t)1 << 18);
    for (size_t i = 0; i < count; i++) {
        free(block_check(calloc(1, size)));
    }
    return count;
}

static size_t realloc_run(size_t size) {
    size_t count = operations_for(size, (size_t)1 << 20);
    for (size_t i = 0; i < count; i++) {
        free(block_check(realloc(block_check(malloc(size)), size + 1)));
    }
    return count;
}

struct pattern {
    const char *name;
    size_t (*run)(size_t size); // returns the number of operations
};

static const struct pattern patterns[] = {
    { "pair", pair_run },
    { "batch", batch_run },
    { "calloc", calloc_run },
    { "realloc", realloc_run },
};

static const struct pattern *pattern_find(const char *name) {
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        if (strcmp(name, patterns[i].name) == 0) {
            return &patterns[i];
        }
    }
    bench_fail("no case is named %s", name);
}

// The first run of a size warms it up and is not timed.
static double time_one(const struct pattern *pattern, size_t size) {
    pattern->run(size);
    uint64_t started = bench_clock(CLOCK_MONOTONIC);
    size_t operations = pattern->run(size);
    return (double)(bench_clock(CLOCK_MONOTONIC) - started) / (double)operations;
}

static void range_print(const struct pattern *pattern, size_t from, size_t to, size_t rounds) {
    size_t count = to - from + 1;
    double *least = bench_map(count * sizeof(*least));
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            double passed = time_one(pattern, from + i);
            if (round == 0 || passed < least[i]) {
                least[i] = passed;
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        struct line line;
        line_open(&line, "sizes");
        line_word(&line, "case", pattern->name);
        line_count(&line, "size", from + i);
        line_number(&line, "ns", least[i]);
        line_close(&line);
    }
}

int main(int argc, char **argv) {
    int at = 1;
    size_t rounds = ROUNDS;
    if (argc > 2 && strcmp(argv[1], "-r") == 0) {
        rounds = bench_argument(argc, argv, 2, 0);
        at = 3;
    }
    if (argc - at < 3 || (argc - at) % 2 == 0 || rounds == 0) {
        bench_fail("usage: sizes [-r ROUNDS] CASE FROM TO [FROM TO]...\n"
                   "cases: pair batch calloc realloc; see the head of sizes.c");
    }
    const struct pattern *pattern = pattern_find(argv[at]);
    for (int i = at + 1; i < argc; i += 2) {
        size_t from = bench_argument(argc, argv, i, 0);
        size_t to = bench_argument(argc, argv, i + 1, 0);
        if (from == 0 || from > to) {
            bench_fail("sizes: %zu to %zu is no range", from, to);
        }
        range_print(pattern, from, to, rounds);
    }
    return 0;
}

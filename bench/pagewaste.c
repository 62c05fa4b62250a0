// pagewaste.c - what does a page cost?
//
//     pagewaste MODE [ROUNDS]
//
// A round asks for 9 blocks of one page, 2 of two pages and 1 of three: 16 pages in 12 blocks, the
// mix of gnulib's bench of page-aligned allocation. Nothing is freed, and every page is written to.
// MODE says how a block is got:
//
//     posix_memalign  posix_memalign(page, n * page)
//     malloc          malloc(n * page), and no alignment asked for
//     slack           malloc(n * page + page - 1), aligned by the program: what programs do that do
//                     not trust posix_memalign; n * page counts as asked
//     minus           malloc(n * page - 16): what programs do that leave room for a header
//     mixed           malloc of page + 1 to 8 * page - 1 bytes, in random order, 12 blocks a round
//
// Printed: how far VmSize, VmData and the resident size grew, in percent of what was asked, after
// 10, 30, 90, ... 7290 and ROUNDS rounds (10000), and how many of the blocks begin a page.
//
// Not measured: time; what comes back after free; what an allocator took before main, which is why
// some grow by less than was asked at first.
#include "bench.h"

enum { BLOCKS_A_ROUND = 12, POINTS_MAX = 8, HEADER = 16, MIXED_PAGES = 8 };

enum mode { MODE_POSIX_MEMALIGN, MODE_MALLOC, MODE_SLACK, MODE_MINUS, MODE_MIXED, MODES };

static const char *const mode_names[MODES] = { "posix_memalign", "malloc", "slack", "minus",
                                               "mixed" };

// In pages; the larger blocks lie among the smaller ones, as they do in programs.
static const size_t mix[BLOCKS_A_ROUND] = { 1, 1, 1, 2, 1, 1, 3, 1, 1, 2, 1, 1 };

static const size_t points[] = { 10, 30, 90, 270, 810, 2430, 7290 };

struct run {
    enum mode mode;
    size_t page;
    size_t asked;
    size_t blocks;
    size_t aligned;
    char **table; // holds on to what was got, as a program would
    struct rng rng;
};

// What was known after so many rounds. Kept until the end: printing makes pages of the C library
// resident.
struct point {
    size_t rounds;
    size_t asked;
    size_t blocks;
    size_t aligned;
    struct memory memory;
};

static enum mode mode_find(const char *name) {
    for (int mode = 0; mode < MODES; mode++) {
        if (strcmp(name, mode_names[mode]) == 0) {
            return (enum mode)mode;
        }
    }
    bench_fail("no mode is named %s", name);
}

static char *block_get(const struct run *run, size_t size) {
    void *block = NULL;
    switch (run->mode) {
    case MODE_POSIX_MEMALIGN:
        if (posix_memalign(&block, run->page, size) != 0) {
            return NULL;
        }
        return block;
    case MODE_SLACK:
        block = malloc(size + run->page - 1);
        if (block == NULL) {
            return NULL;
        }
        return (char *)(((uintptr_t)block + run->page - 1) & ~(uintptr_t)(run->page - 1));
    default:
        return malloc(size);
    }
}

static size_t size_next(struct run *run, size_t index) {
    switch (run->mode) {
    case MODE_MIXED:
        return run->page + 1 + rng_below(&run->rng, (uint32_t)((MIXED_PAGES - 1) * run->page - 1));
    case MODE_MINUS:
        return mix[index] * run->page - HEADER;
    default:
        return mix[index] * run->page;
    }
}

static void round_do(struct run *run) {
    for (size_t i = 0; i < BLOCKS_A_ROUND; i++) {
        size_t size = size_next(run, i);
        char *block = block_get(run, size);
        if (block == NULL) {
            bench_fail("no memory after %zu bytes", run->asked);
        }
        bench_touch(block, size, run->page);
        run->table[run->blocks++] = block;
        run->asked += size;
        run->aligned += ((uintptr_t)block & (run->page - 1)) == 0;
    }
}

static double percent(size_t now, size_t before, size_t asked) {
    return 100.0 * ((double)now - (double)before) / (double)asked;
}

static void point_print(const struct point *point, const struct memory *before, enum mode mode) {
    struct line line;
    line_open(&line, "pagewaste");
    line_word(&line, "mode", mode_names[mode]);
    line_count(&line, "rounds", point->rounds);
    line_count(&line, "asked", point->asked);
    line_number(&line, "as_percent", percent(point->memory.size, before->size, point->asked));
    line_number(&line, "data_percent", percent(point->memory.data, before->data, point->asked));
    line_number(&line, "rss_percent", percent(point->memory.rss, before->rss, point->asked));
    line_count(&line, "blocks", point->blocks);
    line_count(&line, "aligned", point->aligned);
    line_count(&line, "maps", point->memory.maps - before->maps);
    line_close(&line);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        bench_fail("usage: pagewaste posix_memalign|malloc|slack|minus|mixed [ROUNDS]");
    }
    struct run run = { .mode = mode_find(argv[1]),
                       .page = (size_t)sysconf(_SC_PAGESIZE),
                       .rng = rng_new(1) };
    size_t rounds = bench_argument(argc, argv, 2, 10000);
    run.table = bench_map((rounds * BLOCKS_A_ROUND + 1) * sizeof(*run.table));

    struct point measured[POINTS_MAX];
    size_t count = 0;
    struct memory before = memory_read_first();
    for (size_t i = 1; i <= rounds; i++) {
        round_do(&run);
        if (i == rounds || (count < sizeof(points) / sizeof(points[0]) && i == points[count])) {
            measured[count++] =
                (struct point){ i, run.asked, run.blocks, run.aligned, memory_read() };
        }
    }
    for (size_t i = 0; i < count; i++) {
        point_print(&measured[i], &before, run.mode);
    }
    return 0;
}

// hugepages.c - what do huge pages bring, and what do they cost?
//
//     hugepages KIND [MIB]         512; the option is set from outside, for pamalloc PAMALLOC_OPTIONS=thp=...
//
// KIND says of what blocks MIB are allocated and written: small (16 to 1024 bytes), large (64 to
// 900 KiB), huge (2 to 16 MiB). Then words of them are read in random order, each read depending on
// the one before. Then nine of ten blocks, chosen at random, are freed, and the allocator is told
// to give back what it can (malloc_trim(0)).
//
// Printed: the time to allocate and write a page's worth, and of a read; the growth of the resident
// size over what was asked for, and the part of it that is huge pages; both again after the frees,
// over what is left.
//
// Not measured: what the kernel does by itself where its setting is "always"; which setting there
// is, is printed.
#include <malloc.h>

#include "bench.h"

enum { READS = 4000000 };

struct kind {
    const char *name;
    size_t min;
    size_t max;
};

static const struct kind kinds[] = { { "small", 16, 1024 },
                                     { "large", 64 << 10, 900 << 10 },
                                     { "huge", 2 << 20, 16 << 20 } };

struct block {
    char *start;
    size_t size;
};

struct blocks {
    struct block *all;
    size_t count;
    size_t asked;
};

static size_t huge_now(void) {
    char text[4096];
    return bench_read_file("/proc/self/smaps_rollup", text, sizeof(text))
               ? bench_field(text, "\nAnonHugePages:")
               : 0;
}

// The word in brackets.
static void setting_read(char *word, size_t size) {
    char text[256];
    const char *from =
        bench_read_file("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof(text))
            ? strchr(text, '[')
            : NULL;
    size_t length = from == NULL ? 0 : strcspn(from + 1, "]");
    snprintf(word, size, "%.*s", (int)length, from == NULL ? "" : from + 1);
}

static void fill(struct blocks *blocks, const struct kind *kind, size_t bytes) {
    struct rng rng = rng_new(1);
    while (blocks->asked < bytes) {
        size_t size = kind->min + rng_below(&rng, (uint32_t)(kind->max - kind->min));
        struct block *block = &blocks->all[blocks->count++];
        block->start = malloc(size);
        block->size = size;
        if (block->start == NULL) {
            bench_fail("no memory after %zu bytes", blocks->asked);
        }
        memset(block->start, 1, size);
        blocks->asked += size;
    }
}

// Big blocks are as likely as their share of the memory.
static double read_ns(const struct blocks *blocks, size_t largest) {
    struct rng rng = rng_new(2);
    uint64_t chain = 0;
    size_t reads = 0;
    struct watch started = watch_start();
    for (size_t tries = 0; reads < READS && tries < (size_t)64 * READS; tries++) {
        const struct block *block = &blocks->all[rng_below(&rng, (uint32_t)blocks->count)];
        size_t at = rng_below(&rng, (uint32_t)largest);
        if (at < block->size) {
            chain += *(volatile unsigned char *)(block->start + ((at + chain) % block->size));
            reads++;
        }
    }
    struct watch passed = watch_stop(started);
    return (double)passed.cpu / (double)(reads == 0 ? 1 : reads);
}

static size_t free_most(struct blocks *blocks) {
    struct rng rng = rng_new(3);
    size_t left = 0;
    for (size_t i = 0; i < blocks->count; i++) {
        if (rng_below(&rng, 10) != 0) {
            free(blocks->all[i].start);
        } else {
            left += blocks->all[i].size;
        }
    }
    malloc_trim(0);
    return left;
}

static double growth(size_t now, size_t before, size_t asked) {
    return ((double)now - (double)before) / (double)(asked == 0 ? 1 : asked);
}

int main(int argc, char **argv) {
    const struct kind *kind = NULL;
    for (size_t i = 0; argc > 1 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        kind = strcmp(argv[1], kinds[i].name) == 0 ? &kinds[i] : kind;
    }
    if (kind == NULL) {
        bench_fail("usage: hugepages small|large|huge [MIB]");
    }
    size_t bytes = bench_argument(argc, argv, 2, 512) << 20;
    char setting[32];
    setting_read(setting, sizeof(setting));
    struct blocks blocks = { bench_map((bytes / kind->min + 1) * sizeof(struct block) /
                                           (kind->min < 4096 ? 8 : 1) +
                                       4096),
                             0, 0 };
    size_t before = memory_read_first().rss;
    size_t huge_before = huge_now();
    struct watch started = watch_start();
    fill(&blocks, kind, bytes);
    struct watch passed = watch_stop(started);
    size_t full = memory_read().rss;
    size_t huge = huge_now();
    double ns = read_ns(&blocks, kind->max);
    size_t left = free_most(&blocks);
    size_t freed = memory_read().rss;
    size_t huge_freed = huge_now();

    struct line line;
    line_open(&line, "hugepages");
    line_word(&line, "kind", kind->name);
    line_word(&line, "setting", setting);
    line_count(&line, "asked", blocks.asked);
    line_number(&line, "page_ns", (double)passed.cpu / ((double)blocks.asked / 4096));
    line_number(&line, "read_ns", ns);
    line_number(&line, "rss_ratio", growth(full, before, blocks.asked));
    line_number(&line, "huge_ratio", growth(huge, huge_before, blocks.asked));
    line_count(&line, "left", left);
    line_number(&line, "left_rss_ratio", growth(freed, before, left));
    line_number(&line, "left_huge_ratio", growth(huge_freed, huge_before, left));
    line_close(&line);
    return 0;
}

// blocks.h - blocks that are whole runs, with marks in them, as the tests of large and huge ones
// hold them.
#ifndef BLOCKS_H
#define BLOCKS_H

#include "base.h"
#include "harness.h"
#include "os.h"
#include "pagemap.h"
#include "run.h"
#include "tune.h"

struct block {
    struct run *run; // NULL: an empty place
    size_t size;     // what was asked for
    uint64_t mark;
};

// The kernel may unmap what one thread had and give the same addresses to another. It orders the
// two, but a checker of threads that sees neither call cannot know: marks are none of its business.
#define MARKS __attribute__((no_sanitize("thread")))

// A word in every granule, and one at the very end.
MARKS static inline void block_mark(struct block *block, uint64_t mark) {
    char *start = (char *)block->run->base;
    block->mark = mark;
    for (size_t at = 0; at + 8 <= block->size; at += PMA_GRANULE) {
        uint64_t word = mark ^ at;
        __builtin_memcpy(start + at, &word, 8);
    }
    if (block->size >= 8) {
        __builtin_memcpy(start + block->size - 8, &mark, 8);
    }
}

// What is left of the marks of a block whose size was old_size; the end counts if it is the same.
MARKS static inline void block_check(const struct block *block, size_t old_size) {
    const char *start = (const char *)block->run->base;
    size_t size = size_min(block->size, old_size);
    size_t wrong = 0;
    uint64_t word;
    for (size_t at = 0; at + 16 <= size; at += PMA_GRANULE) {
        __builtin_memcpy(&word, start + at, 8);
        wrong += word != (block->mark ^ at);
    }
    if (size == old_size && size >= 8) {
        __builtin_memcpy(&word, start + size - 8, 8);
        wrong += word != block->mark;
    }
    CHECK_SAY(wrong == 0, "%zu words of the block at %#zx are lost", wrong,
              (size_t)block->run->base);
}

// The run's bytes, by what its block says.
static inline size_t block_bytes(const struct run *run) {
    return run_kind(run) == RUN_HUGE ? run->mapped : run->base - run->start + run->size;
}

// Exact pages, the block ends with its run, begins at a multiple of its alignment, and the page map
// knows both ends.
static inline void block_check_place(const struct run *run, size_t size, size_t alignment) {
    size_t bytes = block_bytes(run);
    CHECK_EQ(bytes % pma_page_size, 0);
    CHECK_EQ(run->base % size_max(alignment, PMA_SLOT_MIN), 0);
    CHECK_EQ((run->base - run->start) % PMA_COLOUR, 0);
    CHECK_AT_MOST(run->base - run->start, pma_page_size);
    CHECK(run->size >= size);
    CHECK(run->owner == NULL);
    for (size_t at = 0; at < pma_page_size; at += PMA_GRANULE) {
        CHECK(pagemap_find(run->start + at) == run);
    }
    CHECK(pagemap_find(run->start + bytes - 1) == run);
}

static inline void block_check_exact(const struct run *run, size_t size) {
    CHECK_EQ(block_bytes(run), align_up(size_max(size, 1), pma_page_size));
}

static inline void block_check_zero(const struct run *run) {
    const char *start = (const char *)run->base;
    char bits = start[run->size - 1];
    for (size_t at = 0; at < run->size; at += 512) {
        bits |= start[at];
    }
    CHECK_EQ(bits, 0);
}

#endif

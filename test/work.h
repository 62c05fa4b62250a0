// work.h - a mixed load that checks what it holds: the same few hundred blocks got, grown and given
// back by every common call, for tests about something else than the calls.
#ifndef WORK_H
#define WORK_H

#include "harness.h"

#include <malloc.h>
#include <pthread.h>

enum { WORK_HELD = 128, WORK_MARKED = 256 };

struct work_block {
    unsigned char *start;
    size_t size;
    unsigned char mark;
};

struct work {
    struct dice dice;
    size_t largest; // sizes are drawn so that each power of two up to this is equally likely
    size_t refused; // NULL with ENOMEM; the caller knows whether that may be
    struct work_block held[WORK_HELD];
};

static inline size_t work_size(struct work *work) {
    unsigned bits = 0;
    while (((size_t)1 << bits) < work->largest) {
        bits++;
    }
    size_t top = (size_t)1 << dice_below(&work->dice, bits + 1);
    return 1 + dice_below(&work->dice, top);
}

// Long blocks are marked at both ends only: the load is about the heap, not about memset.
static inline size_t work_edge(size_t size) {
    return size < (size_t)WORK_MARKED ? size : (size_t)WORK_MARKED;
}

static inline void work_mark(struct work_block *block) {
    size_t size = block->size;
    size_t edge = work_edge(size);
    memset(block->start, block->mark, edge);
    memset(block->start + size - edge, block->mark, edge);
}

static inline bool work_is_marked(const unsigned char *start, size_t size, unsigned char mark) {
    for (size_t i = 0; i < size; i++) {
        if (start[i] != mark) {
            return false;
        }
    }
    return true;
}

static inline void work_free(struct work_block *block) {
    if (block->start != NULL) {
        size_t edge = work_edge(block->size);
        CHECK_SAY(work_is_marked(block->start, edge, block->mark) &&
                      work_is_marked(block->start + block->size - edge, edge, block->mark),
                  "block %p of %zu is damaged", (void *)block->start, block->size);
        free(hide(block->start));
        block->start = NULL;
    }
}

static inline void *work_get(struct work *work, size_t size) {
    size_t way = dice_below(&work->dice, 8);
    void *block = NULL;
    if (way == 0) {
        block = memalign((size_t)16 << dice_below(&work->dice, 9), size);
    } else if (way < 3) {
        block = calloc(1, size);
        size_t edge = size < 4096 ? size : 4096;
        CHECK_SAY(block == NULL || work_is_marked((unsigned char *)block, edge, 0), "calloc(%zu)",
                  size);
    } else {
        block = malloc(size);
    }
    return hide(block);
}

// Grows or shrinks one block; a refused growth must leave it as it was.
static inline void work_resize(struct work *work, struct work_block *block) {
    size_t size = work_size(work);
    size_t edge = work_edge(size < block->size ? size : block->size);
    unsigned char *moved = (unsigned char *)hide(realloc(block->start, size));
    if (moved == NULL) {
        work->refused++;
        return;
    }
    CHECK_SAY(work_is_marked(moved, edge, block->mark), "realloc to %zu loses bytes", size);
    block->start = moved;
    block->size = size;
    work_mark(block);
}

static inline void work_step(struct work *work) {
    struct work_block *block = &work->held[dice_below(&work->dice, WORK_HELD)];
    if (block->start != NULL && dice_below(&work->dice, 4) == 0) {
        work_resize(work, block);
        return;
    }
    work_free(block);
    block->size = work_size(work);
    block->mark = (unsigned char)dice_draw(&work->dice);
    block->start = (unsigned char *)work_get(work, block->size);
    if (block->start == NULL) {
        CHECK_EQ(errno, ENOMEM);
        work->refused++;
        return;
    }
    work_mark(block);
}

static inline void work_begin(struct work *work, uint64_t seed, size_t largest) {
    memset(work, 0, sizeof(*work));
    work->dice.state = seed;
    work->largest = largest;
}

static inline void work_end(struct work *work) {
    for (size_t i = 0; i < WORK_HELD; i++) {
        work_free(&work->held[i]);
    }
}

// All of it: so many steps, everything freed at the end; the number of refusals.
static inline size_t work_run(uint64_t seed, size_t steps, size_t largest) {
    struct work work;
    work_begin(&work, seed, largest);
    for (size_t i = 0; i < steps; i++) {
        work_step(&work);
    }
    work_end(&work);
    return work.refused;
}

static inline void *work_thread_main(void *unused) {
    CHECK(work_run(6, 300, 1 << 20) == 0);
    return unused;
}

// Some of it in a thread with a stack of this size.
static inline void work_on_stack(size_t stack_size) {
    pthread_attr_t attributes;
    pthread_t thread;
    REQUIRE(pthread_attr_init(&attributes) == 0);
    REQUIRE(pthread_attr_setstacksize(&attributes, stack_size) == 0);
    REQUIRE(pthread_create(&thread, &attributes, work_thread_main, NULL) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
    (void)pthread_attr_destroy(&attributes);
}

#endif

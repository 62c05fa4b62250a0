// huge.c - blocks with a mapping of their own: exact, moved without copying, cached up to a bound,
// and recognised when they are gone.
#include <config.h>

#include "base.h"
#include "blocks.h"
#include "harness.h"
#include "huge.h"
#include "limits.h"
#include "lock.h"
#include "os.h"
#include "pageheap.h"
#include "pagemap.h"
#include "probe.h"
#include "purge.h"
#include "random.h"

#include <pthread.h>

#define MIB ((size_t)1 << 20)

static struct stream stream;

static struct run *take(size_t size, size_t alignment) {
    struct run *run = pma_huge_take(size, alignment, &stream);
    REQUIRE(run != NULL);
    CHECK_EQ(run_kind(run), RUN_HUGE);
    block_check_place(run, size, alignment);
    return run;
}

// As pma_large_give does.
static void give(struct run *run) {
    run_set_kind(run, RUN_CACHED);
    pma_huge_give(run);
}

static size_t live(void) {
    return pma_pageheap.live;
}

static size_t cached(void) {
    return pma_pageheap.cached;
}

// ---- exactness

static void check_sizes(void) {
    static const size_t sizes[] = { 0,       1,           4096,         4097,        65536,
                                    MIB - 1, MIB,         MIB + 1,      MIB + 65536, 3 * MIB + 100,
                                    5 * MIB, 5 * MIB + 1, 9 * MIB - 64, 20 * MIB };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t before = live();
        struct run *run = take(sizes[i], 16);
        block_check_exact(run, sizes[i]);
        CHECK(run->zero);
        block_check_zero(run);
        CHECK_EQ(live() - before, block_bytes(run));
        ((char *)run->base)[0] = ((char *)run->base)[run->size - 1] = 1;
        CHECK_AT_MOST(run->base - run->start, block_bytes(run) - sizes[i]);
        give(run);
        CHECK_EQ(live(), before);
        pma_huge_cache_empty();
    }
    CHECK_EQ(cached(), 0);
}

static void check_alignments(void) {
    for (size_t alignment = 16; alignment <= (size_t)1 << 30; alignment *= 2) {
        for (size_t size = MIB - 1; size <= 2 * MIB; size += MIB - 100) {
            size_t before = statm_bytes(0);
            struct run *run = take(size, alignment);
            block_check_exact(run, size);
            CHECK(alignment <= PMA_COLOUR || run->base == run->start);
            block_check_zero(run);
            // What was reserved around it went back. Descriptors and leaves may be among it.
            CHECK(!limits_work() || statm_bytes(0) < before + 8 * MIB);
            ((char *)run->base)[size - 1] = 1;
            give(run);
            pma_huge_cache_empty();
        }
    }
}

static void check_limits(void) {
    size_t before = live();
    CHECK(pma_huge_take(PTRDIFF_MAX, 16, &stream) == NULL);
    CHECK(pma_huge_take((size_t)1 << 47, 16, &stream) == NULL);
    CHECK(pma_huge_take(MIB, (size_t)1 << 47, &stream) == NULL);
    CHECK(pma_huge_take(PTRDIFF_MAX, (size_t)1 << 62, &stream) == NULL);
    struct run *run = take(MIB, 16);
    CHECK(!pma_huge_resize(run, PTRDIFF_MAX));
    CHECK(!pma_huge_resize(run, (size_t)1 << 47));
    block_check_place(run, MIB, 16);
    give(run);
    pma_huge_cache_empty();
    CHECK_EQ(live(), before);
}

// Every multiple of 64 in the slack is a place, and drawn about as often as others.
static void check_places(void) {
    struct run run = { .start = 0x10000 };
    unsigned drawn[16] = { 0 };
    for (int round = 0; round < 16000; round++) {
        pma_block_place(&run, 4096, 4096 - 15 * 64 - 63, 16, &stream);
        size_t place = (run.base - run.start) / 64;
        REQUIRE(run.base % 64 == 0 && place < 16);
        CHECK_EQ(run.base + run.size, run.start + 4096);
        drawn[place]++;
    }
    for (size_t i = 0; i < 16; i++) {
        CHECK_SAY(drawn[i] > 750 && drawn[i] < 1250, "place %zu: %u times", i, drawn[i]);
    }
    for (size_t alignment = 128; alignment <= 4096; alignment *= 2) {
        pma_block_place(&run, 8192, 100, alignment, &stream);
        CHECK_EQ(run.base, run.start);
        CHECK_EQ(run.size, 8192);
    }
    pma_block_place(&run, 4096, 4096 - 63, 64, &stream);
    CHECK_EQ(run.base, run.start);
    // Never behind the first page, which is all of the beginning that the page map knows.
    for (int round = 0; round < 1000; round++) {
        pma_block_place(&run, 100 * pma_page_size, 1, 16, &stream);
        CHECK(run.base - run.start < pma_page_size);
    }
}

// ---- the cache

// The same size comes back at once, without a call, and not as zero.
static void check_cache(void) {
    struct run *run = take(2 * MIB, 16);
    uintptr_t start = run->start;
    memset((void *)run->base, 1, 100);
    give(run);
    CHECK_EQ(cached(), 2 * MIB);
    uint64_t calls = pma_os_calls();
    run = take(2 * MIB, 16);
    CHECK_EQ(run->start, start);
    CHECK(!run->zero);
    CHECK_EQ(pma_os_calls(), calls);
    CHECK_EQ(cached(), 0);
    give(run);
    CHECK_EQ(pma_huge_cache_empty(), 2 * MIB);
    CHECK_EQ(pma_huge_cache_empty(), 0);
    CHECK_EQ(cached(), 0);
}

// A mapping that is nearly right is made to fit: its end is cut off, or it grows. Whatever it was,
// the block is exact, and what was cut off is gone.
static void check_cache_fit(void) {
    for (size_t size = MIB / 2; size <= 5 * MIB; size += MIB / 4 + 12345) {
        give(take(2 * MIB, 16));
        struct run *run = take(size, 16);
        block_check_exact(run, size);
        memset((void *)run->base, 1, size);
        if (run->zero) {
            CHECK_EQ(live() + cached(), block_bytes(run) + 2 * MIB);
        } else {
            CHECK_EQ(live() + cached(), block_bytes(run));
        }
        give(run);
        pma_huge_cache_empty();
    }
    give(take(2 * MIB, 16));
    struct run *run = take(2 * MIB - MIB / 8, 16);
    CHECK(!run->zero);
    uintptr_t end = run->start + block_bytes(run);
    CHECK(!is_readable((void *)end));
    CHECK(pagemap_find(end) != run && pagemap_find(end + MIB / 8 - 1) != run);
    give(run);
    // No alignment from the cache.
    run = take(2 * MIB, 4 * MIB);
    CHECK(run->zero);
    give(run);
    pma_huge_cache_empty();
}

static void check_cache_bound(void) {
    struct run *runs[24];
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < 24; i++) {
            runs[i] = take(MIB, 16);
        }
        // With more alive more may be dirty; then the number of places bounds it.
        size_t most = round == 0 ? PMA_DIRTY_MIN : (size_t)PMA_HUGE_CACHE * MIB;
        pma_pageheap_count(round == 0 ? 0 : (ptrdiff_t)(1000 * MIB), 0);
        for (size_t i = 0; i < 24; i++) {
            give(runs[i]);
            CHECK_AT_MOST(cached(), most);
        }
        CHECK_EQ(cached(), most);
        // The oldest went.
        uintptr_t newest[] = { runs[23]->start, runs[22]->start };
        for (size_t i = 0; i < 2; i++) {
            runs[i] = take(MIB, 16);
            CHECK_EQ(runs[i]->start, newest[i]);
        }
        give(runs[0]);
        give(runs[1]);
        pma_pageheap_count(round == 0 ? 0 : -(ptrdiff_t)(1000 * MIB), 0);
        CHECK_EQ(pma_huge_cache_empty(), most);
    }
    give(take(PMA_DIRTY_MIN + MIB, 16));
    CHECK_EQ(cached(), 0);
}

// What nobody took or gave for a second goes.
static void check_cache_tick(void) {
    give(take(MIB, 16));
    uint64_t now = pma_os_time();
    pma_huge_cache_tick(now);
    CHECK_EQ(cached(), MIB);
    pma_huge_cache_tick(now + PMA_DIRTY_AGE / 2);
    CHECK_EQ(cached(), MIB);
    pma_huge_cache_tick(now + PMA_DIRTY_AGE);
    CHECK_EQ(cached(), 0);
    pma_huge_cache_tick(now + 2 * (uint64_t)PMA_DIRTY_AGE);
    CHECK(pma_lock_none_held());
}

// What the kernel would not unmap is tried again in time, by itself.
static void check_stuck(void) {
    struct run *run = take(2 * PMA_DIRTY_MIN, 16);
    uintptr_t start = run->start;
    pma_os_fail_at(1, true);
    give(run);
    pma_os_fail_at(0, false);
    CHECK(is_readable((void *)start));
    pma_huge_cache_tick(pma_os_time() + 2 * (uint64_t)PMA_DIRTY_AGE);
    CHECK(!is_readable((void *)start));
}

// ---- gone

// A mapping that went back leaves a tombstone where it began, and nothing else.
static void check_tombstone(void) {
    size_t size = 4 * PMA_DIRTY_MIN;
    struct run *run = take(size, 16);
    uintptr_t start = run->start;
    give(run);
    CHECK(!is_readable((void *)start));
    CHECK(!is_readable((void *)(start + size - 1)));
    CHECK(pagemap_find(start + size - 1) != run);
    struct run *grave = pagemap_find(start);
    REQUIRE(grave != NULL);
    CHECK_EQ(run_kind(grave), RUN_UNUSED);
    CHECK(grave->owner == NULL);
    CHECK(pma_page_size == PMA_GRANULE || pagemap_find(start + PMA_GRANULE) != run);
}

// ---- other sizes

static void check_grow_and_shrink(void) {
    struct block block = { take(MIB + 100, 16), MIB + 100, 0 };
    size_t offset = block.run->base - block.run->start;
    block_mark(&block, 77);
    for (size_t size = MIB; size < 40 * MIB; size = size * 5 / 4 + 1) {
        size_t old = block.size;
        size_t before = live() - block_bytes(block.run);
        REQUIRE(pma_huge_resize(block.run, size));
        block.size = size;
        block_check(&block, old);
        block_check_place(block.run, size, 16);
        CHECK_EQ(block.run->base - block.run->start, offset);
        // What the program may use is exact; behind it there may be room to grow.
        CHECK_EQ(offset + block.run->size, align_up(offset + size, pma_page_size));
        CHECK_AT_MOST(block_bytes(block.run), offset + block.run->size + block.run->size / 6);
        CHECK_EQ(live() - before, block_bytes(block.run));
        block_mark(&block, size);
    }
    for (size_t size = 40 * MIB; size > MIB / 2; size = size * 3 / 4 - 1) {
        size_t old = block.size;
        uintptr_t start = block.run->start;
        REQUIRE(pma_huge_resize(block.run, size));
        block.size = size;
        block_check(&block, old);
        block_check_place(block.run, size, 16);
        // It stays where it is, and its end goes back.
        CHECK(size > old || block.run->start == start);
        CHECK_EQ(offset + block.run->size, align_up(offset + size, pma_page_size));
        CHECK(size > old || block_bytes(block.run) == offset + block.run->size);
        block_mark(&block, size);
    }
    give(block.run);
    pma_huge_cache_empty();
}

// With a foreign page right behind, it has to move; nothing of it stays at the old place.
static void check_move(void) {
    struct block block = { take(3 * MIB, 16), 3 * MIB, 0 };
    uintptr_t start = block.run->start;
    void *wall = pma_os_reserve((void *)(start + 3 * MIB), pma_page_size);
    block_mark(&block, 5);
    block.run->zero = true;
    REQUIRE(pma_huge_resize(block.run, 4 * MIB));
    CHECK(block.run->start != start);
    CHECK(!block.run->zero);
    block.size = 4 * MIB;
    block_check(&block, 3 * MIB);
    block_check_place(block.run, 4 * MIB, 16);
    CHECK(!is_readable((void *)start) && !is_readable((void *)(start + 3 * MIB - 1)));
    CHECK_EQ(run_kind(pagemap_find(start)), RUN_UNUSED);
    CHECK(pagemap_find(start + 3 * MIB - 1) != block.run);
    // Where it is now there is room to grow without moving, most likely; either way it is whole.
    block_mark(&block, 6);
    REQUIRE(pma_huge_resize(block.run, 8 * MIB));
    block.size = 8 * MIB;
    block_check(&block, 4 * MIB);
    give(block.run);
    if (wall != NULL) {
        pma_os_unmap(wall, pma_page_size);
    }
    pma_huge_cache_empty();
}

static size_t count_leaves(void) {
    size_t count = 0;
    for (const struct leaf *leaf = pma_pagemap.newest; leaf != NULL; leaf = leaf->next) {
        count++;
    }
    return count;
}

// However often blocks move, the page map stays small.
static void check_many_moves(void) {
    size_t before = count_leaves();
    for (int round = 0; round < 300; round++) {
        struct run *run = take(MIB, 16);
        uintptr_t end = run->start + block_bytes(run);
        void *wall = pma_os_reserve((void *)end, pma_page_size);
        REQUIRE(pma_huge_resize(run, 2 * MIB));
        give(run);
        pma_huge_cache_empty();
        if (wall != NULL) {
            pma_os_unmap(wall, pma_page_size);
        }
    }
    CHECK_AT_MOST(count_leaves() - before, 2);
}

// ---- failures

static void take_refused(uint64_t n, bool forever, size_t alignment) {
    size_t before = live();
    pma_os_fail_at(n, forever);
    struct run *run = pma_huge_take(3 * MIB, alignment, &stream);
    pma_os_fail_at(0, false);
    if (run == NULL) {
        CHECK_EQ(live(), before);
        return;
    }
    block_check_place(run, 3 * MIB, alignment);
    block_check_zero(run);
    ((char *)run->base)[0] = ((char *)run->base)[run->size - 1] = 1;
    give(run);
    pma_huge_cache_empty();
    CHECK_EQ(live(), before);
}

static void resize_refused(uint64_t n, bool forever, size_t size) {
    struct block block = { take(3 * MIB, 16), 3 * MIB, 0 };
    uintptr_t start = block.run->start;
    block_mark(&block, n);
    size_t before = live();
    pma_os_fail_at(n, forever);
    bool resized = pma_huge_resize(block.run, size);
    pma_os_fail_at(0, false);
    if (!resized) {
        CHECK_EQ(live(), before);
        CHECK_EQ(block.run->start, start);
        CHECK_EQ(block_bytes(block.run), 3 * MIB);
    } else {
        block.size = size;
        CHECK_EQ(live() - before, block_bytes(block.run) - 3 * MIB);
    }
    block_check(&block, 3 * MIB);
    block_check_place(block.run, block.size, 16);
    give(block.run);
    pma_huge_cache_empty();
}

// The kernel would not unmap: the block waits until it does, and counts no more.
static void unmap_refused(uint64_t n) {
    struct run *run = take(4 * PMA_DIRTY_MIN, 16);
    size_t bytes = block_bytes(run);
    memset((void *)run->base, 1, run->size);
    size_t dropped = 0;
    pma_os_fail_at(n, true);
    give(run);
    CHECK_EQ(live() + cached(), 0);
    dropped = pma_huge_cache_empty();
    CHECK_EQ(dropped, 0);
    pma_os_fail_at(0, false);
    CHECK_EQ(pma_huge_cache_empty(), n == 1 ? bytes : 0);
    CHECK_EQ(cached(), 0);
    CHECK_EQ(run_kind(run), RUN_UNUSED);
}

// The kernel would not cut the end of a cached mapping off: the block is longer, and whole.
static void cut_refused(void) {
    for (int round = 0; round < 50; round++) {
        give(take(2 * MIB, 16));
        pma_os_fail_at(1, true);
        struct run *run = take(2 * MIB - MIB / 8, 16);
        pma_os_fail_at(0, false);
        CHECK_EQ(block_bytes(run), 2 * MIB);
        CHECK(!run->zero);
        give(run);
        pma_huge_cache_empty();
        CHECK_EQ(live() + cached(), 0);
    }
}

static void check_refused(void) {
    cut_refused();
    for (uint64_t n = 1; n < 12; n++) {
        for (int forever = 0; forever < 2; forever++) {
            take_refused(n, forever, 16);
            take_refused(n, forever, 8 * MIB);
            resize_refused(n, forever, 5 * MIB);
            resize_refused(n, forever, 2 * MIB);
            CHECK(pma_lock_none_held());
        }
    }
    unmap_refused(1);
    unmap_refused(2);
}

// ---- at random, in threads

#define OWN 6

struct worker {
    struct dice dice;
    struct block blocks[OWN];
    struct stream *draws;
};

static void worker_step(struct worker *worker) {
    struct block *block = &worker->blocks[dice_below(&worker->dice, OWN)];
    size_t size = MIB / 2 + dice_below(&worker->dice, 3 * MIB);
    if (block->run == NULL) {
        block->run = pma_huge_take(size, 16, worker->draws);
        REQUIRE(block->run != NULL);
    } else if (dice_below(&worker->dice, 2) == 0) {
        size_t old = block->size;
        block_check(block, old);
        REQUIRE(pma_huge_resize(block->run, size));
        block->size = size;
        block_check(block, old);
    } else {
        block_check(block, block->size);
        give(block->run);
        block->run = NULL;
        return;
    }
    block->size = size;
    block_check_place(block->run, size, 16);
    block_mark(block, dice_draw(&worker->dice));
}

static void *thread_work(void *argument) {
    struct worker *worker = argument;
    unsigned rounds = 400 / slow_factor();
    for (unsigned round = 0; round < rounds; round++) {
        worker_step(worker);
        if (dice_below(&worker->dice, 100) == 0) {
            pma_huge_cache_empty();
        }
    }
    for (size_t i = 0; i < OWN; i++) {
        if (worker->blocks[i].run != NULL) {
            give(worker->blocks[i].run);
        }
    }
    CHECK(pma_lock_none_held());
    return NULL;
}

static void check_threads(uint64_t seed) {
    static struct worker workers[3];
    static struct stream streams[3];
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++) {
        workers[i].dice.state = seed + i;
        workers[i].draws = &streams[i];
        REQUIRE(pthread_create(&threads[i], NULL, thread_work, &workers[i]) == 0);
    }
    for (size_t i = 0; i < 3; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    pma_huge_cache_empty();
    CHECK_EQ(live(), 0);
    CHECK_EQ(cached(), 0);
}

int main(void) {
    test_begin(120);
    uint64_t seed = test_seed();
    pma_os_init();
    pma_random_set_seed(seed);
    pma_pageheap_init(1);
    check_sizes();
    check_alignments();
    check_limits();
    check_places();
    check_cache();
    check_cache_fit();
    check_cache_bound();
    check_cache_tick();
    check_stuck();
    check_tombstone();
    check_grow_and_shrink();
    check_move();
    check_many_moves();
    check_refused();
    check_threads(seed);
    return test_end();
}

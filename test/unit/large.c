// large.c - blocks that are whole runs: exact pages, a cache without a lock, growth in place, and
// no block freed twice.
#include <config.h>

#include "base.h"
#include "blocks.h"
#include "census.h"
#include "harness.h"
#include "huge.h"
#include "large.h"
#include "limits.h"
#include "lock.h"
#include "os.h"
#include "pageheap.h"
#include "pagemap.h"
#include "purge.h"
#include "random.h"

#include <pthread.h>

#define MIB ((size_t)1 << 20)

static struct stream stream;
static struct run_cache cache;
static struct large_source source = { &cache, &stream, 0 };
static struct large_source bare = { NULL, NULL, 0 };
static struct census census;

static struct run *take(size_t size, size_t alignment) {
    struct run *run = pma_large_take(source, size, alignment);
    REQUIRE(run != NULL);
    block_check_place(run, size, alignment);
    block_check_exact(run, size);
    CHECK_EQ(run_kind(run), is_huge(size) || is_huge(alignment) ? RUN_HUGE : RUN_LARGE);
    return run;
}

static size_t page_bytes(size_t npages) {
    return npages << pma_page_shift;
}

// The cache's own equations; runs in it are marked so, in the page map and live for the page heap.
static void check_cache(void) {
    size_t bytes = 0;
    for (size_t i = 0; i < PMA_CACHE_RUNS; i++) {
        struct run *run = cache.runs[i];
        if (cache.lengths[i] != 0) {
            CHECK_EQ(cache.lengths[i], run->npages);
            bytes += run_bytes(run);
            CHECK_EQ(run_kind(run), RUN_CACHED);
            CHECK(pagemap_find(run->start) == run);
        }
    }
    CHECK_EQ(cache.bytes, bytes);
    CHECK_AT_MOST(cache.bytes, cache.limit);
    CHECK_AT_MOST(cache.limit, PMA_CACHE_MAX);
    CHECK(cache.limit == 0 || cache.limit >= PMA_CACHE_MIN);
}

static size_t pages_cached(void) {
    return cache.bytes >> pma_page_shift;
}

static void check_all(size_t live) {
    CHECK(pma_lock_none_held());
    check_cache();
    census_take(&census);
    census_check(&census, live + pages_cached(), true);
}

// ---- exactness

static void check_sizes(void) {
    for (size_t size = PMA_SLOT_MAX + 1; size < PMA_HUGE_MIN - 1; size += size / 9 + 1) {
        for (size_t at = size - 1; at <= size + 1; at++) {
            struct run *run = take(at, 16);
            CHECK(run->npages == (at + pma_page_size - 1) >> pma_page_shift);
            if (run->zero) {
                block_check_zero(run);
            }
            ((char *)run->base)[0] = ((char *)run->base)[run->size - 1] = 1;
            CHECK(pma_large_give(source, run));
        }
    }
}

static void check_alignments(void) {
    for (size_t alignment = 16; alignment <= 4 * MIB; alignment *= 2) {
        for (size_t size = 1; size < 300000; size = size * 5 + 33) {
            struct run *run = take(size, alignment);
            // A run that a cache gave may be anything; a fresh one says whether it is zero.
            if (run->zero) {
                block_check_zero(run);
            }
            memset((void *)run->base, 1, size_min(size, 1000));
            CHECK(pma_large_give(source, run));
        }
    }
}

static void check_limits(void) {
    CHECK(pma_large_take(source, PTRDIFF_MAX, 16) == NULL);
    CHECK(pma_large_take(source, 1, (size_t)1 << 62) == NULL);
    CHECK(!is_huge(PMA_HUGE_MIN - 1) && is_huge(PMA_HUGE_MIN));
}

// ---- freed twice

static void check_double(void) {
    struct run *run = take(50000, 16);
    CHECK(pma_large_give(source, run));
    CHECK(!pma_large_give(source, run));
    CHECK(!pma_large_give(bare, run));
    pma_run_cache_empty(&cache);
    CHECK(!pma_large_give(source, run));
    run = take(50000, 16);
    CHECK(pma_large_give(bare, run));
    CHECK(!pma_large_give(bare, run));
    run = take(2 * MIB, 16);
    CHECK(pma_large_give(source, run));
    CHECK(!pma_large_give(source, run));
    pma_huge_cache_empty();
    CHECK(!pma_large_give(source, run));
}

// ---- the cache

// The same run at once, without a lock or a call, as a block that is not zero.
static void check_reuse(void) {
    pma_run_cache_empty(&cache);
    cache.limit = PMA_CACHE_MAX;
    struct run *run = take(5 * pma_page_size, 16);
    uint64_t calls = pma_os_calls();
    size_t live = pma_pageheap.live;
    for (int round = 0; round < 100; round++) {
        CHECK(pma_large_give(source, run));
        check_cache();
        CHECK_EQ(cache.bytes, page_bytes(5));
        struct run *again = take(5 * pma_page_size - (size_t)round, 16);
        CHECK(again == run);
        CHECK(!again->zero);
        CHECK_EQ(cache.bytes, 0);
    }
    CHECK_EQ(pma_os_calls(), calls);
    CHECK_EQ(pma_pageheap.live, live);
    // Another number of pages is another matter, and so is an alignment.
    CHECK(pma_large_give(source, run));
    struct run *other = take(6 * pma_page_size, 16);
    CHECK(other != run);
    CHECK(pma_large_give(source, other));
    other = take(5 * pma_page_size, 8 * pma_page_size);
    CHECK_EQ(cache.bytes, page_bytes(5) + page_bytes(6));
    CHECK(pma_large_give(source, other));
    size_t cached = cache.bytes;
    pma_run_cache_empty(&cache);
    check_cache();
    CHECK_EQ(cache.bytes, 0);
    CHECK_EQ(live - pma_pageheap.live, page_bytes(5));
    CHECK(cached > 0);
}

// Which of equal runs is taken is drawn, and so is which makes place.
static void check_draws(void) {
    struct run *runs[2 * PMA_CACHE_RUNS];
    size_t first = 0;
    size_t kept = 0;
    cache.limit = PMA_CACHE_MAX;
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < 2 * PMA_CACHE_RUNS; i++) {
            runs[i] = take(page_bytes(1), 16);
        }
        for (size_t i = 0; i < 2 * PMA_CACHE_RUNS; i++) {
            CHECK(pma_large_give(source, runs[i]));
        }
        CHECK_EQ(cache.bytes, page_bytes(PMA_CACHE_RUNS));
        // The last that was given is there; of the first, some draws have kept it.
        kept += run_kind(runs[0]) == RUN_CACHED;
        struct run *run = take(page_bytes(1), 16);
        first += run == runs[2 * PMA_CACHE_RUNS - 1];
        CHECK(pma_large_give(source, run));
        check_cache();
    }
    // Each of 16 is as likely: 12.5 times, and more than 40 or never is out of the question.
    CHECK_SAY(first > 0 && first < 40, "%zu of 200 times the last one", first);
    // (15/16)^16 of the rounds: 71.
    CHECK_SAY(kept > 20 && kept < 130, "%zu of 200 times the first one stays", kept);
    pma_run_cache_empty(&cache);
}

// The limit starts small, doubles with use, and is never passed; what is longer goes at once.
static void check_bound(void) {
    struct run *runs[40];
    size_t size = PMA_CACHE_MIN + 1;
    pma_run_cache_empty(&cache);
    CHECK_EQ(cache.limit, 0);
    for (size_t i = 0; i < 40; i++) {
        runs[i] = take(size, 16);
    }
    size_t before = PMA_CACHE_MIN;
    for (size_t i = 0; i < 40; i++) {
        CHECK(pma_large_give(source, runs[i]));
        check_cache();
        CHECK(cache.limit == before || cache.limit == 2 * before);
        before = cache.limit;
    }
    CHECK(cache.limit > 4 * PMA_CACHE_MIN);
    pma_run_cache_empty(&cache);
    CHECK_EQ(cache.limit, 0);
    struct run *run = take(PMA_HUGE_MIN - 1, 16);
    CHECK(pma_large_give(source, run));
    CHECK_EQ(cache.bytes, 0);
    check_cache();
}

// ---- other sizes

// The header's promise: the block stays, and grows into free pages behind it. A block of its own
// gives the pages that another needs.
static void check_resize(void) {
    struct block block = { take(page_bytes(12), 16), page_bytes(12), 0 };
    uintptr_t base = block.run->base;
    block_mark(&block, 9);
    block.run->zero = true;
    REQUIRE(pma_large_resize(block.run, page_bytes(7)));
    CHECK(!block.run->zero);
    block.size = page_bytes(7);
    block_check(&block, page_bytes(12));
    block_check_place(block.run, block.size, 16);
    CHECK_EQ(block.run->npages, 7);
    CHECK_EQ(block.run->base, base);
    block_mark(&block, 10);
    REQUIRE(pma_large_resize(block.run, page_bytes(12)));
    block.size = page_bytes(12);
    block_check(&block, page_bytes(7));
    block_check_place(block.run, block.size, 16);
    CHECK_EQ(block.run->base, base);
    // Large stays large, in this floor: a huge block needs a mapping.
    CHECK(!pma_large_resize(block.run, PMA_HUGE_MIN));
    CHECK_EQ(block.run->npages, 12);
    CHECK(pma_large_give(source, block.run));
}

// A block that begins inside its first page ends with its last, also after it grew.
static void check_resize_offset(void) {
    struct run *run = take(10 * pma_page_size + 64, 16);
    size_t offset = run->base - run->start;
    REQUIRE(pma_large_resize(run, 5 * pma_page_size));
    CHECK_EQ(run->base - run->start, offset);
    CHECK_EQ(run->npages, 5 + (offset > 0));
    block_check_place(run, 5 * pma_page_size, 16);
    CHECK(pma_large_give(source, run));
}

static void check_resize_refused(void) {
    struct block block = { take(10 * pma_page_size, 16), 10 * pma_page_size, 0 };
    pma_run_cache_empty(&cache);
    struct run *behind = pagemap_find(run_end(block.run));
    size_t room = behind != NULL && is_free_kind(run_kind(behind)) ? behind->npages : 0;
    block_mark(&block, 3);
    if (page_bytes(10 + room + 1) < PMA_HUGE_MIN) {
        CHECK(!pma_large_resize(block.run, page_bytes(10 + room + 1)));
        CHECK_EQ(block.run->npages, 10);
        block_check_place(block.run, block.size, 16);
    }
    block_check(&block, block.size);
    CHECK(pma_large_give(source, block.run));
}

// ---- failures

static void check_refused(void) {
    for (uint64_t n = 1; n < 10; n++) {
        for (int forever = 0; forever < 2; forever++) {
            pma_run_cache_empty(&cache);
            pma_purge(true);
            size_t live = pma_pageheap.live;
            pma_os_fail_at(n, forever);
            struct run *run = pma_large_take(source, 700000, 16);
            pma_os_fail_at(0, false);
            CHECK(run != NULL || pma_pageheap.live == live);
            if (run != NULL) {
                block_check_place(run, 700000, 16);
                ((char *)run->base)[699999] = 1;
                CHECK(pma_large_give(source, run));
            }
        }
    }
    // Freeing needs nothing of the kernel.
    struct run *run = take(300000, 16);
    pma_os_fail_at(1, true);
    CHECK(pma_large_give(bare, run));
    pma_os_fail_at(0, false);
}

// ---- at random

#define BLOCKS 100

static size_t held; // pages of large blocks

static void step(struct block *block, struct dice *dice, struct large_source from) {
    size_t size = 1 + dice_below(dice, dice_below(dice, 8) == 0 ? PMA_HUGE_MIN - 1 : 150000);
    if (block->run == NULL) {
        block->run = pma_large_take(from, size, 16);
        REQUIRE(block->run != NULL);
        block->size = size;
    } else if (dice_below(dice, 3) == 0) {
        size_t old = block->size;
        size_t offset = block->run->base - block->run->start;
        block_check(block, old);
        // A block that begins inside its page may just miss what it needs to be huge.
        if (!is_huge(offset + size) && pma_large_resize(block->run, size)) {
            block->size = size;
        }
        block_check(block, old);
    } else {
        block_check(block, block->size);
        CHECK(pma_large_give(dice_below(dice, 8) == 0 ? bare : from, block->run));
        block->run = NULL;
        return;
    }
    block_check_place(block->run, block->size, 16);
    block_mark(block, dice_draw(dice));
}

static void check_at_random(struct dice *dice) {
    static struct block blocks[BLOCKS];
    unsigned rounds = 6000 / slow_factor();
    held = census.pages[0][RUN_LARGE];
    for (unsigned round = 0; round < rounds; round++) {
        struct block *block = &blocks[dice_below(dice, BLOCKS)];
        held -= block->run == NULL ? 0 : block->run->npages;
        step(block, dice, source);
        held += block->run == NULL ? 0 : block->run->npages;
        if (round % 50 == 0) {
            check_all(held);
        }
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        if (blocks[i].run != NULL) {
            held -= blocks[i].run->npages;
            CHECK(pma_large_give(source, blocks[i].run));
        }
    }
    pma_run_cache_empty(&cache);
    check_all(held);
}

// ---- threads

struct worker {
    struct dice dice;
    struct run_cache cache;
    struct stream *draws;
};

static void *thread_work(void *argument) {
    struct worker *worker = argument;
    struct block blocks[20] = { { .run = NULL } };
    struct large_source own = { &worker->cache, worker->draws, (unsigned)(worker->dice.state % 2) };
    unsigned rounds = 3000 / slow_factor();
    for (unsigned round = 0; round < rounds; round++) {
        step(&blocks[dice_below(&worker->dice, 20)], &worker->dice, own);
    }
    for (size_t i = 0; i < 20; i++) {
        if (blocks[i].run != NULL) {
            CHECK(pma_large_give(own, blocks[i].run));
        }
    }
    pma_run_cache_empty(&worker->cache);
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
    check_all(held);
}

// Of two threads that free the same block, one comes too late.
static struct run *disputed;
static uint32_t given; // atomic

static void *thread_give(void *argument) {
    pthread_barrier_wait(argument);
    __atomic_fetch_add(&given, pma_large_give(bare, disputed), __ATOMIC_RELAXED);
    return NULL;
}

static void check_dispute(void) {
    pthread_barrier_t barrier;
    REQUIRE(pthread_barrier_init(&barrier, NULL, 2) == 0);
    for (int round = 0; round < 200; round++) {
        pthread_t threads[2];
        disputed = take(round % 4 == 0 ? 2 * MIB : 40000, 16);
        given = 0;
        for (size_t i = 0; i < 2; i++) {
            REQUIRE(pthread_create(&threads[i], NULL, thread_give, &barrier) == 0);
        }
        for (size_t i = 0; i < 2; i++) {
            REQUIRE(pthread_join(threads[i], NULL) == 0);
        }
        CHECK_EQ(given, 1);
    }
    pma_huge_cache_empty();
}

int main(void) {
    test_begin(120);
    struct dice dice = { test_seed() };
    pma_os_init();
    pma_random_set_seed(dice_draw(&dice));
    pma_pageheap_init(2);
    check_sizes();
    check_alignments();
    check_limits();
    check_double();
    check_reuse();
    check_draws();
    check_bound();
    check_resize();
    check_resize_offset();
    check_resize_refused();
    check_refused();
    pma_run_cache_empty(&cache);
    census_take(&census);
    check_at_random(&dice);
    check_threads(dice_draw(&dice));
    check_dispute();
    return test_end();
}

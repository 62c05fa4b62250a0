// stats.c - the sums are those of what was allocated, and together they are the whole heap.
#include <config.h>

#include "alloc.h"
#include "base.h"
#include "harness.h"
#include "huge.h"
#include "limits.h"
#include "lock.h"
#include "malloc.h"
#include "meta.h"
#include "os.h"
#include "pageheap.h"
#include "pagemap.h"
#include "region.h"
#include "stats.h"
#include "thread.h"

#include <pthread.h>

static struct stats collect(void) {
    struct stats stats;
    memset(&stats, 0xff, sizeof(stats));
    pma_stats_collect(&stats);
    return stats;
}

// Every page is somewhere: what the page heap counts as live or dirty is in slabs, blocks, caches
// and free runs.
static void check_whole(const struct stats *stats) {
    CHECK_EQ(pma_pageheap.live + pma_pageheap.dirty + pma_pageheap.cached,
             stats->slab_bytes + stats->large_bytes + stats->huge_bytes + stats->cached_bytes +
                 stats->dirty_bytes);
    CHECK_EQ(pma_pageheap.clean, stats->clean_bytes);
    CHECK_EQ(stats->committed + stats->closed_bytes, pma_region_committed());
    CHECK_EQ(stats->meta, pma_meta_committed());
    CHECK_AT_MOST(stats->slots_bytes, stats->slab_bytes);
    CHECK((stats->slots_live == 0) == (stats->slots_bytes == 0));
    CHECK(stats->slabs <= stats->slab_bytes / pma_page_size);
    CHECK_AT_MOST(stats->slab_bytes + stats->large_bytes + stats->dirty_bytes + stats->clean_bytes,
                  stats->committed);
}

static void check_nothing(void) {
    struct stats stats = collect();
    CHECK_EQ(stats.slots_live + stats.slots_bytes + stats.large + stats.huge, 0);
    CHECK_EQ(stats.arenas_idle, 0);
    check_whole(&stats);
}

static void check_slots(void) {
    void *blocks[500];
    size_t bytes = 0;
    struct stats before = collect();
    for (size_t i = 0; i < 500; i++) {
        blocks[i] = pma_malloc(i * 60 + 1);
        REQUIRE(blocks[i] != NULL);
        bytes += pma_malloc_usable_size(blocks[i]);
    }
    struct stats after = collect();
    CHECK_EQ(after.slots_live - before.slots_live, 500);
    CHECK_EQ(after.slots_bytes - before.slots_bytes, bytes);
    CHECK(after.slabs > before.slabs);
    CHECK_EQ(after.arenas, 1);
    check_whole(&after);
    for (size_t i = 0; i < 500; i++) {
        pma_free(blocks[i]);
    }
    after = collect();
    CHECK_EQ(after.slots_live, before.slots_live);
    CHECK_EQ(after.slots_bytes, before.slots_bytes);
    check_whole(&after);
}

static void check_large_and_huge(void) {
    void *large[20];
    void *huge[5];
    struct stats before = collect();
    size_t large_bytes = 0;
    size_t huge_bytes = 0;
    for (size_t i = 0; i < 20; i++) {
        size_t size = PMA_SLOT_MAX + 1 + i * 10000;
        large[i] = pma_malloc(size);
        large_bytes += align_up(size, pma_page_size);
    }
    for (size_t i = 0; i < 5; i++) {
        size_t size = PMA_HUGE_MIN + i * 100000;
        huge[i] = pma_malloc(size);
        huge_bytes += align_up(size, pma_page_size);
    }
    struct stats after = collect();
    CHECK_EQ(after.large - before.large, 20);
    CHECK_EQ(after.large_bytes - before.large_bytes, large_bytes);
    CHECK_EQ(after.huge - before.huge, 5);
    CHECK_EQ(after.huge_bytes - before.huge_bytes, huge_bytes);
    check_whole(&after);
    for (size_t i = 0; i < 20; i++) {
        pma_free(large[i]);
    }
    for (size_t i = 0; i < 5; i++) {
        pma_free(huge[i]);
    }
    after = collect();
    CHECK_EQ(after.large, before.large);
    CHECK_EQ(after.huge, before.huge);
    CHECK_EQ(after.large_bytes + after.huge_bytes, before.large_bytes + before.huge_bytes);
    CHECK(after.cached_bytes > before.cached_bytes);
    CHECK(after.dirty_bytes + after.cached_bytes > 0);
    check_whole(&after);
    pma_alloc_trim();
    after = collect();
    CHECK_EQ(after.cached_bytes, 0);
    check_whole(&after);
}

static void count_free(struct run *run, void *context) {
    size_t *counts = context;
    counts[run_kind(run)]++;
}

static void check_runs(void) {
    size_t counts[RUN_PURGING + 1] = { 0 };
    void *blocks[100];
    for (size_t i = 0; i < 100; i++) {
        blocks[i] = pma_malloc(60000);
        REQUIRE(blocks[i] != NULL);
    }
    // Every fourth stays, so that free runs do not join.
    for (size_t i = 0; i < 100; i++) {
        if (i % 4 != 0) {
            pma_free(blocks[i]);
        }
    }
    struct stats stats = collect();
    pma_pagemap_walk(count_free, counts);
    CHECK(stats.dirty_runs > 0);
    CHECK_EQ(stats.dirty_runs, counts[RUN_DIRTY]);
    CHECK_EQ(stats.clean_runs, counts[RUN_CLEAN]);
    CHECK_EQ(stats.slabs, counts[RUN_SLAB]);
    CHECK_EQ(stats.large, counts[RUN_LARGE]);
    pma_alloc_trim();
    memset(counts, 0, sizeof(counts));
    stats = collect();
    pma_pagemap_walk(count_free, counts);
    CHECK_EQ(stats.dirty_runs, counts[RUN_DIRTY]);
    CHECK_EQ(stats.clean_runs, counts[RUN_CLEAN]);
    for (size_t i = 0; i < 100; i += 4) {
        pma_free(blocks[i]);
    }
}

// What was closed is no memory of the process, until it is opened again.
static void check_closed(void) {
    struct stats before = collect();
    size_t count = 3 * PMA_CLOSE_MIN / PMA_SLOT_MAX;
    void *blocks[3 * PMA_CLOSE_MIN / PMA_SLOT_MAX];
    for (size_t i = 0; i < count; i++) {
        blocks[i] = pma_malloc(PMA_SLOT_MAX);
        REQUIRE(blocks[i] != NULL);
    }
    struct stats full = collect();
    check_whole(&full);
    for (size_t i = 0; i < count; i++) {
        pma_free(blocks[i]);
    }
    pma_alloc_trim();
    struct stats after = collect();
    // Where a checker leaves room for short regions only, there are no long runs.
    CHECK(IS_SANITIZED || after.closed_bytes >= full.closed_bytes + PMA_CLOSE_MIN);
    CHECK(IS_SANITIZED || after.committed <= full.committed - PMA_CLOSE_MIN);
    CHECK_EQ(after.slots_live, before.slots_live);
    CHECK(after.dirty_runs == 0 || after.dirty_bytes > 0);
    CHECK_EQ(after.clean_runs == 0, after.clean_bytes == 0);
    check_whole(&after);
}

static void *thread_allocate(void *argument) {
    *(void **)argument = pma_malloc(100);
    return NULL;
}

// What a thread left behind is counted, and its arena is idle.
static void check_arenas(void) {
    struct stats before = collect();
    void *block = NULL;
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, thread_allocate, &block) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
    struct stats after = collect();
    CHECK_EQ(after.arenas, before.arenas + 1);
    CHECK_EQ(after.arenas_idle, 1);
    CHECK_EQ(after.slots_live - before.slots_live, 1);
    check_whole(&after);
    pma_free(block);
    after = collect();
    CHECK_EQ(after.slots_live, before.slots_live);
    check_whole(&after);
}

// A random load, and the exact sums of it at any time.
static void check_at_random(struct dice *dice) {
    static struct {
        void *block;
        size_t usable;
    } held[400];
    struct stats before = collect();
    size_t bytes = before.slots_bytes + before.large_bytes + before.huge_bytes;
    size_t count = before.slots_live + before.large + before.huge;
    size_t padding = 0;
    unsigned rounds = 8000 / slow_factor();
    for (unsigned round = 0; round < rounds; round++) {
        size_t i = dice_below(dice, 400);
        size_t sign = held[i].block != NULL ? SIZE_MAX : 1;
        if (held[i].block != NULL) {
            bytes -= held[i].usable;
            padding -= held[i].usable > PMA_SLOT_MAX;
            pma_free(held[i].block);
            held[i].block = NULL;
        } else {
            held[i].block =
                pma_malloc((size_t)1 + dice_below(dice, (size_t)1 << dice_below(dice, 21)));
            REQUIRE(held[i].block != NULL);
            held[i].usable = pma_malloc_usable_size(held[i].block);
            bytes += held[i].usable;
            padding += held[i].usable > PMA_SLOT_MAX;
        }
        count += sign;
        if (round % 100 == 0) {
            struct stats stats = collect();
            size_t sum = stats.slots_bytes + stats.large_bytes + stats.huge_bytes;
            CHECK_EQ(stats.slots_live + stats.large + stats.huge, count);
            // Blocks of whole runs may begin somewhere in their first page.
            CHECK(sum >= bytes && sum - bytes <= padding * pma_page_size);
            check_whole(&stats);
        }
    }
    for (size_t i = 0; i < 400; i++) {
        pma_free(held[i].block);
    }
}

// Each lock counts for itself who had to wait for it.
static void check_lock_waits(void) {
    size_t before = collect().lock_waits;
    pma_huge_lock()->contended += 3;
    pma_pageheap.shards[pma_pageheap.nshards - 1].lock.contended += 5;
    pma_meta_lock()->contended += 7;
    CHECK_EQ(collect().lock_waits, before + 15);
}

int main(void) {
    test_begin(60);
    struct dice dice = { test_seed() };
    check_nothing();
    check_slots();
    check_large_and_huge();
    check_runs();
    check_closed();
    check_arenas();
    check_at_random(&dice);
    check_lock_waits();
    return test_end();
}

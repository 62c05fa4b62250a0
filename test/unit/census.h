// census.h - a count of every run that the page map knows, and what must be true of all of them
// together.
//
// The page map is the one place where a run of any kind is seen; a census takes its word, and
// checks it against the shards' own numbers. Nobody else may use the heap meanwhile.
#ifndef CENSUS_H
#define CENSUS_H

#include "base.h"
#include "harness.h"
#include "os.h"
#include "pagemap.h"
#include "run.h"
#include "shard.h"

#define CENSUS_MAX 65536
#define RUN_KINDS (RUN_PURGING + 1)

struct census {
    size_t count;
    struct run *runs[CENSUS_MAX];            // in order of address
    size_t pages[PMA_SHARDS_MAX][RUN_KINDS]; // by shard and kind
    size_t kinds[RUN_KINDS];                 // runs, by kind
};

static inline size_t census_bytes(const struct run *run) {
    return run_kind(run) == RUN_HUGE || (run_kind(run) == RUN_CACHED && run->npages == 0)
               ? run->base - run->start + run->size
               : run_bytes(run);
}

static inline void census_visit(struct run *run, void *context) {
    struct census *census = context;
    REQUIRE(census->count < CENSUS_MAX);
    census->runs[census->count++] = run;
}

static inline int census_order(const void *a, const void *b) {
    uintptr_t left = (*(struct run *const *)a)->start;
    uintptr_t right = (*(struct run *const *)b)->start;
    return left < right ? -1 : left > right;
}

static inline bool is_free_kind(enum run_kind kind) {
    return kind == RUN_DIRTY || kind == RUN_CLEAN || kind == RUN_CLOSED;
}

// No byte is in two runs, and free neighbours of one state and shard are one run.
static inline void census_neighbours(const struct run *before, const struct run *run) {
    uintptr_t end = before->start + census_bytes(before);
    CHECK_SAY(end <= run->start, "runs %#zx to %#zx and from %#zx overlap", (size_t)before->start,
              (size_t)end, (size_t)run->start);
    CHECK_SAY(end != run->start || run_kind(before) != run_kind(run) ||
                  before->shard != run->shard || !is_free_kind(run_kind(run)),
              "free neighbours at %#zx are not joined", (size_t)run->start);
}

// Between its first page and its last granule nothing of a run is entered; a slab enters all.
static inline void census_inside(const struct run *run) {
    struct run *expected = run_kind(run) == RUN_SLAB ? pagemap_find(run->start) : NULL;
    uintptr_t from = run->start + pma_page_size;
    uintptr_t to = run->start + census_bytes(run) - PMA_GRANULE;
    size_t wrong = 0;
    for (uintptr_t at = from; at < to; at += PMA_GRANULE) {
        const struct run *found = pagemap_find(at);
        // A huge block that was unmapped there may have left its tombstone, which is nowhere.
        wrong += found != expected &&
                 (found == NULL || run_kind(found) != RUN_UNUSED || found->start != 0);
    }
    CHECK_SAY(wrong == 0, "%zu granules in the run at %#zx are entered wrongly", wrong,
              (size_t)run->start);
}

// Both ends of a run are entered; of one in use all of its first page is, since a block may begin
// anywhere in it.
static inline void census_ends(const struct run *run) {
    uintptr_t end = run->start + census_bytes(run);
    CHECK(pagemap_find(run->start) == run);
    CHECK(pagemap_find(end - PMA_GRANULE) == run);
    if (!is_free_kind(run_kind(run)) && run_kind(run) != RUN_PURGING) {
        CHECK(pagemap_find(run->start + pma_page_size - PMA_GRANULE) == run);
    }
}

static inline void census_take(struct census *census) {
    memset(census, 0, sizeof(*census));
    pma_pagemap_walk(census_visit, census);
    qsort(census->runs, census->count, sizeof(census->runs[0]), census_order);
    for (size_t i = 0; i < census->count; i++) {
        const struct run *run = census->runs[i];
        enum run_kind kind = run_kind(run);
        REQUIRE(kind < RUN_KINDS);
        census->kinds[kind]++;
        census_ends(run);
        census_inside(run);
        if (i > 0) {
            census_neighbours(census->runs[i - 1], run);
        }
        if (kind != RUN_HUGE && census_bytes(run) == run_bytes(run)) {
            REQUIRE(run->shard < PMA_SHARDS_MAX);
            census->pages[run->shard][kind] += run->npages;
        }
    }
}

// ---- the shards' own numbers

static inline size_t shard_pages(const struct shard *shard) {
    return shard->live_pages + shard->pages[0] + shard->pages[1] + shard->pages[2];
}

// The dirty runs by age are as many as the dirty runs, in a list that holds in both directions.
static inline void census_ages(const struct shard *shard) {
    size_t pages = 0;
    const struct run *before = NULL;
    for (const struct run *run = shard->oldest; run != NULL; run = run->newer) {
        CHECK(run->older == before);
        CHECK_EQ(run_kind(run), RUN_DIRTY);
        pages += run->npages;
        REQUIRE(pages <= shard->pages[0]);
        before = run;
    }
    CHECK(shard->newest == before);
    CHECK_EQ(shard->due, before == NULL ? UINT64_MAX : shard->oldest->age + PMA_DIRTY_AGE);
}

// Free runs are what the shards say, kind by kind. live is what the test knows to be handed out, in
// pages. While no huge block is there the sums of all shards are those of the page heap.
static inline void census_check(const struct census *census, size_t live, bool huge) {
    size_t sums[PMA_FREE_KINDS] = { 0 };
    size_t live_sum = 0;
    size_t purging = 0;
    for (unsigned i = 0; i < pma_pageheap.nshards; i++) {
        const struct shard *shard = &pma_pageheap.shards[i];
        const size_t *pages = census->pages[i];
        CHECK_EQ(shard->pages[0], pages[RUN_DIRTY] + pages[RUN_PURGING]);
        CHECK_EQ(shard->pages[1], pages[RUN_CLEAN]);
        CHECK_EQ(shard->pages[2], pages[RUN_CLOSED]);
        census_ages(shard);
        for (int kind = 0; kind < PMA_FREE_KINDS; kind++) {
            sums[kind] += shard->pages[kind];
        }
        live_sum += shard->live_pages;
        purging += pages[RUN_PURGING];
    }
    CHECK_EQ(live_sum, live);
    CHECK_EQ(pma_pageheap.clean, sums[1] << pma_page_shift);
    if (!huge) {
        // What is on its way is no longer in this sum, which says how much is left to purge.
        CHECK_EQ(pma_pageheap.dirty, (sums[0] - purging) << pma_page_shift);
        CHECK_EQ(pma_pageheap.live, live << pma_page_shift);
    }
}

#endif

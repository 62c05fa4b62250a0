// stats.c - what the heap holds, counted by walking the page map.
#include <config.h>

#include "stats.h"

#include "huge.h"
#include "lock.h"
#include "meta.h"
#include "os.h"
#include "pageheap.h"
#include "pagemap.h"
#include "region.h"
#include "slab.h"
#include "thread.h"

static void slab_add(struct stats *stats, const struct slab *slab) {
    size_t live = pma_slab_count_live(slab);
    stats->slabs++;
    stats->slab_bytes += (size_t)slab->run.npages << pma_page_shift;
    stats->slots_live += live;
    stats->slots_bytes += live * slab->run.size;
}

static void run_add(struct run *run, void *context) {
    struct stats *stats = context;
    size_t bytes = (size_t)run->npages << pma_page_shift;
    switch (run_kind(run)) {
    case RUN_SLAB:
        slab_add(stats, slab_of(run));
        break;
    case RUN_LARGE:
        stats->large++;
        stats->large_bytes += bytes;
        break;
    case RUN_HUGE:
        stats->huge++;
        stats->huge_bytes += run->base - run->start + run->size;
        break;
    case RUN_CACHED:
        stats->cached_bytes += run->base - run->start + run->size;
        break;
    case RUN_DIRTY:
    case RUN_PURGING:
        stats->dirty_runs++;
        stats->dirty_bytes += bytes;
        break;
    case RUN_CLEAN:
        stats->clean_runs++;
        stats->clean_bytes += bytes;
        break;
    case RUN_CLOSED:
        stats->closed_bytes += bytes;
        break;
    case RUN_UNUSED:
        break;
    }
}

static void arena_add(struct arena *arena, void *context) {
    struct stats *stats = context;
    stats->arenas++;
    stats->arenas_idle += __atomic_load_n(&arena->idle, __ATOMIC_RELAXED);
    stats->lock_waits += __atomic_load_n(&arena->adoption.contended, __ATOMIC_RELAXED);
}

// Of all locks but that of the start, which is taken once.
static size_t lock_waits(void) {
    const struct lock *locks[] = { pma_thread_lock(), pma_huge_lock(), pma_region_growth_lock(),
                                   pma_region_lock(), pma_meta_lock(), pma_meta_growth_lock(),
                                   pma_pagemap_lock() };
    size_t sum = 0;
    for (size_t i = 0; i < sizeof(locks) / sizeof(locks[0]); i++) {
        sum += __atomic_load_n(&locks[i]->contended, __ATOMIC_RELAXED);
    }
    for (unsigned i = 0; i < pma_pageheap.nshards; i++) {
        sum += __atomic_load_n(&pma_pageheap.shards[i].lock.contended, __ATOMIC_RELAXED);
    }
    return sum;
}

void pma_stats_collect(struct stats *stats) {
    *stats = (struct stats){ .committed = pma_region_committed(),
                             .meta = pma_meta_committed(),
                             .lock_waits = lock_waits() };
    pma_pagemap_walk(run_add, stats);
    // What was closed was handed out by a region, but can be written no more.
    stats->committed -= size_min(stats->committed, stats->closed_bytes);
    pma_arena_walk(arena_add, stats);
}

// rest.c - what an arena holds in reserve, and how it lets go of it.
#include <config.h>

#include "rest.h"

#include "os.h"
#include "pagemap.h"

// ---- windows

// The window goes back to its word, and the slab to the queue, or away if it is empty.
static void bin_rest(struct arena *arena, struct bin *bin) {
    struct slab *slab = bin->current;
    if (slab == NULL) {
        return;
    }
    slab->fresh |= bin->fresh & bin->window;
    bin->window = 0;
    bin->current = NULL;
    pma_slab_leave(arena, slab);
}

void pma_arena_rest(struct arena *arena) {
    pma_arena_drain(arena);
    for (struct bin *bin = NULL; (bin = arena_next_used(arena, bin)) != NULL;) {
        bin_rest(arena, bin);
        bin->heat = 0;
        bin->level = 0;
    }
    pma_run_cache_empty(&arena->cache);
}

// ---- pages of free slots

static size_t queue_length(const struct bin *bin) {
    size_t length = 0;
    for (const struct run *run = (const struct run *)bin->first; run != NULL; run = run->next) {
        length++;
    }
    return length;
}

// Drops the pages of each slab in the queue that are covered by at least least bytes of free slots,
// if at most 1/part of its slots are live. A slab whose pages were dropped with as many live slots
// as now is passed over, unless part is 1. The slabs must be current meanwhile: as long as one is
// in the queue, its pages can become another's at any moment.
static size_t queue_drop(struct arena *arena, struct bin *bin, size_t least, size_t part) {
    size_t sum = 0;
    for (size_t count = queue_length(bin); count > 0; count--) {
        struct slab *slab = pma_slab_with_room(arena, bin);
        if (slab == NULL) {
            break;
        }
        size_t live = pma_slab_count_live(slab);
        if ((part == 1 || live != slab->dropped_at) && live * part <= slab_slots(slab)) {
            sum += pma_slab_drop(slab, least);
            slab->dropped_at = (uint32_t)live;
        }
        pma_slab_leave(arena, slab);
    }
    return sum;
}

size_t pma_arena_shrink(struct arena *arena) {
    size_t sum = 0;
    pma_arena_rest(arena);
    for (struct bin *bin = NULL; (bin = arena_next_used(arena, bin)) != NULL;) {
        sum += queue_drop(arena, bin, pma_page_size, 1);
    }
    return sum;
}

// ---- once a second

// What is cheap to have again goes: the current slabs that are empty, and the cached runs if none
// was taken or given since the last time. Pages of free slots go where slots are whole pages, or
// where hardly a slot is live.
void pma_arena_tick(struct arena *arena) {
    pma_arena_drain(arena);
    for (struct bin *bin = NULL; (bin = arena_next_used(arena, bin)) != NULL;) {
        bin->level -= bin->level > 0;
        if (bin->current != NULL && pma_slab_count_live(bin->current) == 0) {
            bin_rest(arena, bin);
        }
        if (bin->first != NULL) {
            bool is_paged = bin_size(arena, bin) >= pma_page_size;
            queue_drop(arena, bin, is_paged ? pma_page_size : PMA_DROP_MIN, is_paged ? 2 : 8);
        }
    }
    if (!arena->cache.is_used) {
        pma_run_cache_empty(&arena->cache);
    }
    arena->cache.is_used = false;
}

// ---- after fork

// In a forked child, threads are gone that may have stopped between two stores of a fast path, or
// between setting a remote bit and putting the slab into the inbox. live and the remote bits are
// the truth; what follows from them is set again. A slot that was in neither live nor the window is
// found by a later refill. Other threads of the child may free meanwhile: what they mark stays.
static void slab_recount(struct run *run, void *context) {
    struct arena *arena = context;
    if (run_kind(run) != RUN_SLAB || run->owner != arena) {
        return;
    }
    struct slab *slab = slab_of(run);
    pma_remote_collect(slab);
    uint64_t state = slab_load_state(slab);
    uint32_t live = (uint32_t)pma_slab_count_live(slab);
    if (slab_state_of(state) == SLAB_DETACHED && live > run->bias) {
        run->count = live - run->bias;
    } else if (slab_is_settled(state)) {
        pma_slab_settle(arena, slab, state, live);
        return;
    }
    pma_slab_look_again(arena, slab);
}

void pma_arena_recount(struct arena *arena) {
    pma_pagemap_walk(slab_recount, arena);
}

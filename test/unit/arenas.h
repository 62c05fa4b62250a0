// arenas.h - a small malloc and free out of an arena's parts, and a look at all of its slabs.
//
// The tests of remote.c, arena.c, rest.c and thread.c stand below the entry points, so they take
// and give as those do, with nothing around it.
#ifndef ARENAS_H
#define ARENAS_H

#include "arena.h"
#include "base.h"
#include "harness.h"
#include "meta.h"
#include "os.h"
#include "pagemap.h"
#include "remote.h"
#include "slab.h"

// ---- taking and giving

// An arena that no thread has, as thread.c makes it.
static inline struct arena *arena_make(unsigned number, unsigned shard) {
    struct stream *stream =
        pma_meta_take(META_KEPT, align_up(sizeof(struct stream), PMA_APART), PMA_APART);
    struct arena *arena = pma_meta_take(META_KEPT, sizeof(struct arena), PMA_APART);
    REQUIRE(arena != NULL && stream != NULL);
    stream->identity = number;
    pma_arena_init(arena, stream, number, shard);
    return arena;
}

static inline void *arena_take(struct arena *arena, size_t size) {
    struct bin *bin = arena_bin_for(arena, size);
    if (bin->window == 0 && !pma_arena_refill(arena, bin)) {
        return NULL;
    }
    return bin_take(bin, stream_rotation(arena->stream));
}

static inline struct slab *slab_at(const void *slot) {
    struct run *run = pagemap_find((uintptr_t)slot);
    REQUIRE(run != NULL && run_kind(run) == RUN_SLAB);
    return slab_of(run);
}

// The slot's bit; it must be the start of a slot.
static inline uint64_t slot_index(const void *slot) {
    struct position position = slab_position(&slab_at(slot)->run, (uintptr_t)slot);
    REQUIRE(position.exact);
    return position.index;
}

static inline bool slot_is_live(const void *slot) {
    uint64_t index = slot_index(slot);
    return (slab_live(slab_at(slot), index / 64) >> index % 64 & 1) != 0;
}

// By the owner. False: it was not live.
static inline bool arena_give(struct arena *arena, void *slot) {
    struct slab *slab = slab_at(slot);
    uint64_t index = slot_index(slot);
    uint64_t live = slab_live(slab, index / 64);
    REQUIRE(slab->run.owner == arena);
    if (!bits_test_clear(&live, index)) {
        return false;
    }
    slab_set_live(slab, index / 64, live);
    if (--slab->run.count == 0) {
        pma_arena_notice(arena, slab);
    }
    return true;
}

// By anybody else.
static inline enum remote_outcome remote_give(void *slot) {
    struct slab *slab = slab_at(slot);
    return pma_remote_free(slab, slot_index(slot), &slab->run.owner->inbox);
}

// ---- slots with marks

static inline void slot_mark(void *slot, size_t size, uint64_t mark) {
    unsigned char *bytes = slot;
    for (size_t i = 0; i < size; i += i < 64 ? 8 : 504) {
        uint64_t word = mark + i;
        memcpy(bytes + i, &word, size_min(8, size - i));
    }
}

static inline bool slot_has_mark(const void *slot, size_t size, uint64_t mark) {
    const unsigned char *bytes = slot;
    for (size_t i = 0; i < size; i += i < 64 ? 8 : 504) {
        uint64_t word = mark + i;
        if (memcmp(bytes + i, &word, size_min(8, size - i)) != 0) {
            return false;
        }
    }
    return true;
}

// ---- all slabs of an arena

struct slabs {
    const struct arena *arena; // NULL: of any
    size_t count;
    size_t states[SLAB_GONE + 1];
    size_t live;  // slots
    size_t pages; // of all of them
};

static inline void slabs_visit(struct run *run, void *context) {
    struct slabs *slabs = context;
    if (run_kind(run) != RUN_SLAB || (slabs->arena != NULL && run->owner != slabs->arena)) {
        return;
    }
    struct slab *slab = slab_of(run);
    enum slab_state state = slab_state_of(slab_load_state(slab));
    size_t live = pma_slab_count_live(slab);
    slabs->count++;
    slabs->states[state]++;
    slabs->live += live;
    slabs->pages += run->npages;
    // The equations of slab.h.
    if (state == SLAB_CURRENT) {
        CHECK(slab_bin(slab)->current == slab);
    } else {
        CHECK_EQ(live, run->count + run->bias);
    }
    for (size_t word = 0; word < pma_slab_capacities[run->capacity]; word++) {
        CHECK_EQ(slab_live(slab, word) & ~shape_mask(run->shift), 0);
        CHECK_EQ(run->remote->bits[word] & ~slab_live(slab, word), 0);
        CHECK(word < run->words || slab_live(slab, word) == 0);
    }
    for (size_t at = 0; at < (size_t)run->npages << pma_page_shift; at += PMA_GRANULE) {
        CHECK(pagemap_find(run->start + at) == run);
    }
}

static inline size_t bin_check(const struct arena *arena, const struct bin *bin) {
    size_t count = 0;
    const struct run *before = NULL;
    const struct run *run = (const struct run *)bin->first;
    for (; run != NULL; run = run->next) {
        CHECK(run->prev == before);
        CHECK_EQ(slab_state_of(slab_load_state((const struct slab *)run)), SLAB_ATTACHED);
        CHECK_EQ(run->size, bin_size(arena, bin));
        before = run;
        count++;
    }
    CHECK((const struct run *)bin->last == before);
    if (bin->window != 0) {
        REQUIRE(bin->current != NULL);
        CHECK(bin->live == &bin->current->live[bin->word]);
        CHECK_EQ(bin->window & *bin->live, 0);
        CHECK_EQ(bin->window & ~shape_mask(bin->current->run.shift), 0);
        CHECK_EQ(bin->fresh & ~shape_mask(bin->current->run.shift), 0);
    }
    return count;
}

// While no other thread uses the arena: every equation, and every slab where its state says.
static inline struct slabs arena_check(const struct arena *arena) {
    struct slabs slabs = { .arena = arena };
    size_t current = 0;
    size_t queued = 0;
    pma_pagemap_walk(slabs_visit, &slabs);
    for (unsigned i = 0; i < PMA_CLASSES; i++) {
        queued += bin_check(arena, &arena->bins[i]);
        bool is_used = arena->bins[i].current != NULL || arena->bins[i].first != NULL;
        CHECK(!is_used || (arena->used[i / 64] >> i % 64 & 1) != 0);
        current += arena->bins[i].current != NULL;
    }
    CHECK_EQ(slabs.states[SLAB_ATTACHED], queued);
    CHECK_EQ(slabs.states[SLAB_CURRENT], current);
    CHECK_EQ(slabs.states[SLAB_UNUSED] + slabs.states[SLAB_GONE], 0);
    return slabs;
}

#endif

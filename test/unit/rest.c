// rest.c - an arena at rest holds what is live and nothing else, and no live byte is dropped.
#include <config.h>

#include "arena.h"
#include "arenas.h"
#include "base.h"
#include "harness.h"
#include "huge.h"
#include "large.h"
#include "os.h"
#include "pageheap.h"
#include "pagemap.h"
#include "probe.h"
#include "purge.h"
#include "random.h"
#include "remote.h"
#include "rest.h"
#include "slab.h"

#include <sys/mman.h>

static bool purge_works; // an emulator may not drop pages

// Is a page of memory that starts here with the kernel?
static bool is_resident(const void *address) {
    unsigned char in = 0;
    uintptr_t page = align_down((uintptr_t)address, (size_t)sysconf(_SC_PAGESIZE));
    REQUIRE(mincore((void *)page, 1, &in) == 0);
    return (in & 1) != 0;
}

static struct run *large_take(struct arena *arena, size_t size) {
    struct large_source source = { &arena->cache, arena->stream, arena->shard };
    struct run *run = pma_large_take(source, size, 16);
    REQUIRE(run != NULL);
    return run;
}

static void large_give(struct arena *arena, struct run *run) {
    struct large_source source = { &arena->cache, arena->stream, arena->shard };
    REQUIRE(pma_large_give(source, run));
}

static bool is_empty(const struct arena *arena) {
    bool empty = arena->cache.bytes == 0;
    for (unsigned i = 0; i < PMA_CLASSES; i++) {
        const struct bin *bin = &arena->bins[i];
        empty = empty && bin->window == 0 && bin->current == NULL && bin->first == NULL;
    }
    return empty;
}

// ---- rest

// All that was in reserve goes: windows, an empty slab a class, cached runs.
static void check_rest(void) {
    struct arena *arena = arena_make(1, 0);
    size_t before = pma_pageheap.live;
    for (size_t size = 0; size <= PMA_SLOT_MAX; size += 400) {
        void *slot = arena_take(arena, size);
        REQUIRE(slot != NULL && arena_give(arena, slot));
    }
    large_give(arena, large_take(arena, PMA_CACHE_MIN));
    CHECK(arena->cache.bytes > 0);
    CHECK(pma_pageheap.live > before);
    CHECK(!is_empty(arena));
    pma_arena_rest(arena);
    CHECK(is_empty(arena));
    for (unsigned i = 0; i < PMA_CLASSES; i++) {
        CHECK_EQ(arena->bins[i].level, 0);
    }
    CHECK_EQ(pma_pageheap.live, before);
    CHECK_EQ(arena_check(arena).count, 0);
    pma_arena_rest(arena);
    CHECK(is_empty(arena));
}

// What is live stays, and of its slabs every other slot is handed out again, once each.
static void check_rest_of_live(void) {
    enum { LIVE = 500, SIZE = 96 };
    static void *slots[LIVE];
    struct arena *arena = arena_make(2, 0);
    for (size_t i = 0; i < LIVE; i++) {
        slots[i] = arena_take(arena, SIZE);
        slot_mark(slots[i], SIZE, i);
    }
    for (size_t i = 0; i < LIVE; i += 2) {
        CHECK(i % 4 == 0 ? arena_give(arena, slots[i]) : remote_give(slots[i]) != REMOTE_NOT_LIVE);
    }
    pma_arena_rest(arena);
    struct slabs slabs = arena_check(arena);
    CHECK_EQ(slabs.live, LIVE / 2);
    CHECK_EQ(slabs.states[SLAB_CURRENT], 0);
    size_t pages = slabs.pages;
    for (size_t i = 0; i < LIVE; i += 2) {
        slots[i] = arena_take(arena, SIZE);
        slot_mark(slots[i], SIZE, i);
    }
    slabs = arena_check(arena);
    CHECK_EQ(slabs.live, LIVE);
    // There was room for them all.
    CHECK_EQ(slabs.pages, pages);
    for (size_t i = 0; i < LIVE; i++) {
        CHECK(slot_has_mark(slots[i], SIZE, i));
        CHECK(arena_give(arena, slots[i]));
    }
    pma_arena_rest(arena);
    CHECK(is_empty(arena));
}

// Heat is forgotten, so that a class does not get wide words for what it was long ago.
static void check_rest_of_heat(void) {
    struct arena *arena = arena_make(3, 0);
    struct bin *bin = arena_bin_for(arena, 2048);
    REQUIRE(arena_take(arena, 2048) != NULL);
    bin->heat = 5;
    pma_arena_rest(arena);
    CHECK_EQ(bin->heat, 0);
}

// Slots that were in a window, but never handed out, are as zero after a rest as before.
static void check_rest_of_fresh(void) {
    enum { SIZE = 5120 };
    struct arena *arena = arena_make(9, 0);
    struct bin *bin = arena_bin_for(arena, SIZE);
    unsigned char *first = arena_take(arena, SIZE);
    REQUIRE(first != NULL);
    uint64_t fresh = bin->fresh & bin->window;
    memset(first, 1, SIZE);
    pma_arena_rest(arena);
    REQUIRE(pma_arena_refill(arena, bin));
    CHECK_EQ(bin->fresh & bin->window, fresh);
    CHECK(arena_give(arena, first));
    pma_arena_rest(arena);
}

// ---- shrink

// Pages of free slots between live ones go, and the live ones keep every byte.
static void check_shrink(void) {
    enum { SLOTS = 256 };
    static unsigned char *slots[SLOTS];
    struct arena *arena = arena_make(4, 0);
    size_t size = size_min(2 * pma_page_size, PMA_SLOT_MAX);
    for (size_t i = 0; i < SLOTS; i++) {
        slots[i] = arena_take(arena, size);
        REQUIRE(slots[i] != NULL);
        memset(slots[i], (int)(i % 100) + 1, size);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        if (i % 3 != 0) {
            CHECK(arena_give(arena, slots[i]));
        }
    }
    size_t given = pma_arena_shrink(arena);
    struct slabs held = arena_check(arena);
    if (purge_works && size % pma_page_size == 0) {
        // Of every slab that is left all but the live slots went, and slabs are exact.
        CHECK_EQ(given, (held.pages << pma_page_shift) - held.live * size);
    }
    CHECK(!purge_works || given > 0);
    for (size_t i = 0; i < SLOTS; i += 3) {
        CHECK(is_filled(slots[i], (int)(i % 100) + 1, size));
    }
    if (purge_works && size % pma_page_size == 0) {
        size_t resident = 0;
        for (size_t i = 0; i < SLOTS; i++) {
            struct run *run = i % 3 == 0 ? NULL : pagemap_find((uintptr_t)slots[i]);
            // Of slabs that went as a whole, the page heap decides.
            resident += run != NULL && run_kind(run) == RUN_SLAB && is_resident(slots[i]);
        }
        CHECK_EQ(resident, 0);
    }
    struct slabs slabs = arena_check(arena);
    CHECK_EQ(slabs.states[SLAB_CURRENT], 0);
    for (size_t i = 0; i < SLOTS; i += 3) {
        CHECK(arena_give(arena, slots[i]));
    }
    pma_arena_rest(arena);
    CHECK(is_empty(arena));
}

// ---- tick

static void check_tick_of_slabs(void) {
    struct arena *arena = arena_make(5, 0);
    for (unsigned i = 0; i < PMA_CLASSES; i++) {
        void *slot = arena_take(arena, i == 0 ? 0 : class_size(i));
        REQUIRE(slot != NULL && arena_give(arena, slot));
    }
    pma_arena_tick(arena);
    CHECK(is_empty(arena));
    void *kept = arena_take(arena, 200);
    void *freed = arena_take(arena, 3000);
    struct run *run = pagemap_find((uintptr_t)freed);
    REQUIRE(kept != NULL && freed != NULL && arena_give(arena, freed));
    pma_arena_tick(arena);
    // A current slab that is empty goes; one that is used stays current, with its window.
    CHECK(arena_bin_for(arena, 3000)->current == NULL);
    CHECK_EQ(run_kind(run), RUN_UNUSED);
    CHECK(arena_bin_for(arena, 200)->current != NULL);
    CHECK(arena_bin_for(arena, 200)->window != 0);
    arena_check(arena);
    // What others freed is seen.
    CHECK_EQ(remote_give(kept), REMOTE_PUSHED);
    pma_arena_tick(arena);
    CHECK(inbox_is_empty(&arena->inbox));
    CHECK(is_empty(arena));
}

// Cached runs go when a second passes in which the cache was not used.
static void check_tick_of_cache(void) {
    struct arena *arena = arena_make(6, 0);
    large_give(arena, large_take(arena, PMA_CACHE_MIN));
    size_t bytes = arena->cache.bytes;
    CHECK(bytes > 0);
    pma_arena_tick(arena);
    CHECK_EQ(arena->cache.bytes, bytes);
    large_give(arena, large_take(arena, PMA_CACHE_MIN));
    pma_arena_tick(arena);
    CHECK_EQ(arena->cache.bytes, bytes);
    pma_arena_tick(arena);
    CHECK_EQ(arena->cache.bytes, 0);
}

// Slots of whole pages: their pages go while at most half of a slab is live.
static void check_tick_of_pages(void) {
    enum { SLOTS = 300 };
    static unsigned char *slots[SLOTS];
    struct arena *arena = arena_make(7, 0);
    size_t size = size_min(pma_page_size, PMA_SLOT_MAX);
    for (size_t i = 0; i < SLOTS; i++) {
        slots[i] = arena_take(arena, size);
        REQUIRE(slots[i] != NULL);
        memset(slots[i], (int)(i % 100) + 1, size);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        if (i % 4 != 0) {
            CHECK(arena_give(arena, slots[i]));
        }
    }
    // Only slabs in the queue are looked at.
    pma_arena_rest(arena);
    pma_arena_tick(arena);
    size_t dropped = 0;
    for (size_t i = 0; i < SLOTS; i++) {
        if (i % 4 == 0) {
            CHECK(is_filled(slots[i], (int)(i % 100) + 1, size));
        } else {
            dropped += pagemap_find((uintptr_t)slots[i]) != NULL && !is_resident(slots[i]);
        }
    }
    CHECK(!purge_works || pma_page_size > PMA_SLOT_MAX || dropped > SLOTS / 4);
    arena_check(arena);
    // As long as as many slots are live, once is enough.
    uint64_t calls = pma_os_calls();
    pma_arena_tick(arena);
    CHECK_EQ(pma_os_calls(), calls);
}

// ---- recount

// As a fork leaves it when the thread stopped between two stores: a live bit is cleared and nothing
// was counted; a remote bit is set and the slab is in no inbox; a window bit is cleared and the
// live bit not set.
static void stop_between(struct arena *arena, void **slots, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct slab *slab = slab_at(slots[i]);
        uint64_t index = slot_index(slots[i]);
        uint64_t bit = (uint64_t)1 << index % 64;
        if (i % 3 == 0) {
            slab_set_live(slab, index / 64, slab_live(slab, index / 64) & ~bit);
        } else if (i % 3 == 1) {
            slab->run.remote->bits[index / 64] |= bit;
        }
    }
    for (unsigned i = 0; i < PMA_CLASSES; i++) {
        struct bin *bin = &arena->bins[i];
        bin->window &= bin->window - 1;
    }
    // On its way to the inbox.
    slab_at(slots[2])->run.remote->queued = 1;
}

static void check_recount(void) {
    enum { SLOTS = 900 };
    static void *slots[SLOTS];
    struct arena *arena = arena_make(8, 0);
    size_t before = pma_pageheap.live;
    for (size_t i = 0; i < SLOTS; i++) {
        slots[i] = arena_take(arena, 30 + i);
        REQUIRE(slots[i] != NULL);
        slot_mark(slots[i], 30, i);
    }
    // Of some slabs everything.
    void *more[64];
    for (size_t i = 0; i < 64; i++) {
        more[i] = arena_take(arena, 8192);
    }
    stop_between(arena, slots, SLOTS);
    for (size_t i = 0; i < 32; i++) {
        struct slab *slab = slab_at(more[i]);
        uint64_t index = slot_index(more[i]);
        slab_set_live(slab, index / 64, 0);
        slab->run.remote->bits[index / 64] = 0;
    }
    pma_arena_recount(arena);
    arena_check(arena);
    for (size_t i = 2; i < SLOTS; i += 3) {
        CHECK(slot_is_live(slots[i]));
        CHECK(slot_has_mark(slots[i], 30, i));
        CHECK(i % 2 == 0 ? arena_give(arena, slots[i]) : remote_give(slots[i]) != REMOTE_NOT_LIVE);
    }
    for (size_t i = 32; i < 64; i++) {
        if (pagemap_find((uintptr_t)more[i]) != NULL && slot_is_live(more[i])) {
            CHECK(arena_give(arena, more[i]));
        }
    }
    pma_arena_rest(arena);
    CHECK(is_empty(arena));
    CHECK_EQ(arena_check(arena).live, 0);
    CHECK_EQ(pma_pageheap.live, before);
}

int main(void) {
    test_begin(60);
    pma_os_init();
    pma_random_set_seed(test_seed());
    pma_pageheap_init(1);
    void *page = pma_os_map(NULL, pma_page_size);
    REQUIRE(page != NULL);
    purge_works = pma_os_purge(page, pma_page_size);
    check_rest();
    check_rest_of_live();
    check_rest_of_heat();
    check_rest_of_fresh();
    check_shrink();
    check_tick_of_slabs();
    check_tick_of_cache();
    check_tick_of_pages();
    check_recount();
    return test_end();
}

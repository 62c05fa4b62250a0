// arena.c - every free slot is handed out once, slabs come and go with what is live in them, and
// what is freed twice never reaches a second owner.
#include <config.h>

#include "arena.h"
#include "arenas.h"
#include "base.h"
#include "census.h"
#include "harness.h"
#include "lock.h"
#include "os.h"
#include "pageheap.h"
#include "pagemap.h"
#include "probe.h"
#include "random.h"
#include "remote.h"
#include "rest.h"
#include "slab.h"

#include <pthread.h>

static struct census census;

static void check_pages(const struct slabs *slabs) {
    CHECK(pma_lock_none_held());
    census_take(&census);
    census_check(&census, slabs->pages, false);
}

// Frees everything and finds nothing left of it.
static void arena_end(struct arena *arena) {
    pma_arena_rest(arena);
    struct slabs slabs = arena_check(arena);
    CHECK_EQ(slabs.count, 0);
    CHECK_EQ(slabs.live, 0);
    for (unsigned i = 0; i < PMA_CLASSES; i++) {
        CHECK_EQ(arena->bins[i].window, 0);
        CHECK(arena->bins[i].current == NULL && arena->bins[i].first == NULL);
    }
}

// ---- the tables

static void check_tables(void) {
    struct arena *arena = arena_make(7, 1);
    CHECK_EQ(arena->number, 7);
    CHECK_EQ(arena->shard, 1);
    CHECK_EQ(arena->idle, 1);
    CHECK_EQ(arena->busy, 0);
    CHECK_EQ(arena->adoption.rank, LOCK_ADOPTION);
    CHECK(inbox_is_empty(&arena->inbox));
    for (size_t size = 0; size <= PMA_SLOT_MAX; size++) {
        struct bin *bin = arena_bin_for(arena, size);
        size_t slot = size == 0 ? 16 : align_up(size, pma_class_step(size, GRADE_COARSE));
        CHECK(bin == &arena->bins[size == 0 ? 0 : class_of(slot)]);
        CHECK_EQ(bin_size(arena, bin), slot);
        CHECK_EQ(bin->window, 0);
    }
    CHECK(arena_next_used(arena, NULL) == NULL);
}

// The sizes of a bin that grows get bins of their own: at first 16 per doubling, then, above 1 KiB,
// 32. Sizes elsewhere keep theirs, and what was handed out before stays what it was.
struct range {
    size_t low;
    size_t high;
    size_t middle;
    size_t fine;
};

static void split(void *argument) {
    const struct range *range = argument;
    size_t low = range->low;
    size_t high = range->high;
    size_t middle = range->middle;
    size_t fine = range->fine;
    struct arena *arena = arena_make(9, 0);
    CHECK(arena_bin_for(arena, low + 1) == arena_bin_for(arena, high));
    void *first = arena_take(arena, low + 1);
    REQUIRE(first != NULL);
    CHECK_EQ(pagemap_find((uintptr_t)first)->size, high);
    size_t taken = 0;
    for (; bin_size(arena, arena_bin_for(arena, low + 1)) == high; taken++) {
        REQUIRE(arena_take(arena, high) != NULL);
    }
    // Not before there is something to win, and before there is much to lose.
    CHECK(taken * high > (size_t)32 << 10);
    CHECK_AT_MOST(taken * high, ((size_t)512 << 10) + 8 * pma_page_size);
    for (size_t size = low + 1; size <= high; size++) {
        CHECK_EQ(bin_size(arena, arena_bin_for(arena, size)), align_up(size, middle));
    }
    CHECK(bin_size(arena, arena_bin_for(arena, low)) == low);
    CHECK(bin_size(arena, arena_bin_for(arena, high + 1)) > high + middle);
    for (size_t i = 0; i < ((size_t)2 << 20) / middle; i++) {
        REQUIRE(arena_take(arena, low + middle) != NULL);
    }
    for (size_t size = low + 1; size <= low + middle; size++) {
        CHECK_EQ(bin_size(arena, arena_bin_for(arena, size)), align_up(size, fine));
    }
    CHECK_EQ(bin_size(arena, arena_bin_for(arena, low + middle + 1)), low + 2 * middle);
    CHECK_EQ(pagemap_find((uintptr_t)first)->size, high);
    REQUIRE(arena_give(arena, first));
    arena_check(arena);
}

static void check_splits(void) {
    static struct range ranges[] = {
        { 256, 320, 16, 16 },
        { 768, 896, 32, 32 },
        { 3072, 3584, 128, 64 },
        { 10240, 12288, 512, 256 },
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        struct child_end end = run_child(split, &ranges[i], 20);
        expect_exit(&end, 0, "sizes that are used much");
    }
}

// Every bin that has a slab is found by its bit, and no other.
static void check_used(void *argument) {
    (void)argument;
    struct arena *arena = arena_make(9, 0);
    static const size_t sizes[] = { 0, 1, 300, 1024, 1025, 9000, PMA_SLOT_MAX };
    struct bin *bin = NULL;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        REQUIRE(arena_take(arena, sizes[i]) != NULL);
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        bin = arena_next_used(arena, bin);
        CHECK(bin == arena_bin_for(arena, sizes[i]));
    }
    CHECK(arena_next_used(arena, bin) == NULL);
}

// ---- windows

static int address_order(const void *a, const void *b) {
    uintptr_t left = *(const uintptr_t *)a;
    uintptr_t right = *(const uintptr_t *)b;
    return left < right ? -1 : left > right;
}

// A window hands each of its slots out once, all inside one word of one slab, and then it is empty.
static void check_window(struct arena *arena, struct bin *bin) {
    uint64_t free_slots = bin->window;
    size_t count = (size_t)__builtin_popcountll(free_slots);
    uintptr_t slots[64];
    const struct slab *slab = bin->current;
    size_t size = bin_size(arena, bin);
    CHECK_EQ(bin->unit, size >> slab->run.shift);
    for (size_t i = 0; i < count; i++) {
        REQUIRE(bin->window != 0);
        slots[i] = (uintptr_t)bin_take(bin, stream_rotation(arena->stream));
        uint64_t bit = (slots[i] - bin->base) / bin->unit;
        REQUIRE(bit < 64 && slots[i] == bin->base + bit * bin->unit);
        CHECK((free_slots >> bit & 1) != 0);
        CHECK((bin->window >> bit & 1) == 0);
        CHECK((*bin->live >> bit & 1) != 0);
        CHECK_EQ(slots[i] % PMA_SLOT_MIN, 0);
        CHECK((slots[i] - slab->run.base) % size == 0);
        CHECK(slots[i] + size <= slab->run.start + ((uintptr_t)slab->run.npages << pma_page_shift));
    }
    CHECK_EQ(bin->window, 0);
    qsort(slots, count, sizeof(slots[0]), address_order);
    for (size_t i = 1; i < count; i++) {
        CHECK(slots[i] - slots[i - 1] >= size);
    }
}

static void check_windows(void) {
    struct arena *arena = arena_make(1, 0);
    for (unsigned i = 0; i < PMA_CLASSES; i++) {
        struct bin *bin = &arena->bins[i];
        for (int round = 0; round < 6; round++) {
            REQUIRE(pma_arena_refill(arena, bin));
            CHECK(bin->window != 0);
            CHECK_EQ(bin->window & slab_live(bin->current, bin->word), 0);
            check_window(arena, bin);
        }
    }
    struct slabs slabs = arena_check(arena);
    CHECK(slabs.live >= 6 * 2 * PMA_CLASSES);
    check_pages(&slabs);
}

// A narrowed window holds neighbours only, at least one, and what it leaves is handed out later:
// all slots of the word, each once.
static void check_narrow(size_t size) {
    struct arena *arena = arena_make(3, 0);
    struct bin *bin = arena_bin_for(arena, size);
    REQUIRE(pma_arena_refill(arena, bin));
    struct slab *slab = bin->current;
    uint64_t whole = bin->window;
    uint64_t fresh = bin->fresh | slab->fresh;
    size_t slots = slab_slots(slab);
    pma_window_narrow(bin, 20);
    size_t kept = bits_count(bin->window);
    CHECK(kept > 0 && (bin->window & ~whole) == 0);
    CHECK(slab->run.shift >= 2 ? bin->window == whole : kept < bits_count(whole) && kept <= 16);
    CHECK_EQ(bin->fresh & ~bin->window, 0);
    CHECK_EQ(bin->fresh | slab->fresh, fresh);
    for (size_t i = 0; i < slots; i++) {
        void *slot = arena_take(arena, size);
        REQUIRE(slot != NULL && slab_at(slot) == slab);
    }
    CHECK_EQ(pma_slab_count_live(slab), slots);
}

static void narrow(void *argument) {
    (void)argument;
    check_narrow(48);
    check_narrow(224);
    check_narrow(320);
}

// Every slot of a slab, word by word, before the next slab is begun.
static void check_whole_slabs(void) {
    struct arena *arena = arena_make(2, 0);
    struct bin *bin = arena_bin_for(arena, 48);
    for (int count = 0; count < 8; count++) {
        REQUIRE(bin->window != 0 || pma_arena_refill(arena, bin));
        const struct slab *slab = bin->current;
        size_t slots = slab_slots(slab) - pma_slab_count_live(slab);
        for (size_t i = 0; i < slots; i++) {
            void *slot = arena_take(arena, 48);
            REQUIRE(slot != NULL && slab_at(slot) == slab);
        }
        CHECK_EQ(pma_slab_count_live(slab), slab_slots(slab));
        // Full, and left at the next refill.
        REQUIRE(pma_arena_refill(arena, bin));
        CHECK(bin->current != slab);
        CHECK_EQ(slab_state_of(slab_load_state(slab)), SLAB_DETACHED);
        arena_check(arena);
    }
}

// ---- growth

// Slabs grow with their number, and shrink again: few slabs for many slots, and one small one for
// the first.
static void check_levels(void) {
    enum { SLOTS = 40000 };
    static void *slots[SLOTS];
    struct arena *arena = arena_make(3, 0);
    size_t before = pma_pageheap.live;
    for (size_t i = 0; i < SLOTS; i++) {
        slots[i] = arena_take(arena, 64);
        REQUIRE(slots[i] != NULL);
        if (i == 0) {
            CHECK_AT_MOST(pma_pageheap.live - before, pma_page_size);
        }
    }
    struct slabs slabs = arena_check(arena);
    CHECK_EQ(slabs.live, SLOTS);
    CHECK_AT_MOST(slabs.count, 10 + SLOTS * 64 / PMA_SLAB_BYTES_MAX);
    CHECK_AT_MOST(slabs.pages << pma_page_shift, SLOTS * 64 + 3 * PMA_SLAB_BYTES_MAX);
    unsigned level = arena_bin_for(arena, 64)->level;
    for (size_t i = 0; i < SLOTS; i++) {
        CHECK(arena_give(arena, slots[i]));
    }
    pma_arena_rest(arena);
    CHECK(arena_bin_for(arena, 64)->level < level);
    arena_end(arena);
    CHECK_EQ(pma_pageheap.live, before);
}

// A class that is asked for often gets longer words, though few of its slots are live; and a slab
// of short words that is left behind goes when it is empty.
static void check_heat(void) {
    struct arena *arena = arena_make(4, 0);
    for (size_t size = 512; size <= 4096; size *= 2) {
        struct bin *bin = arena_bin_for(arena, size);
        void *slots[16] = { NULL };
        REQUIRE(pma_arena_refill(arena, bin));
        unsigned shift = bin->current->run.shift;
        for (size_t i = 0; i < 10000; i++) {
            if (slots[i % 16] != NULL) {
                CHECK(arena_give(arena, slots[i % 16]));
            }
            slots[i % 16] = arena_take(arena, size);
            REQUIRE(slots[i % 16] != NULL);
        }
        REQUIRE(bin->current != NULL);
        CHECK_SAY(shift == 0 || bin->current->run.shift < shift, "%zu: shift %u, still", size,
                  bin->current->run.shift);
    }
    struct slabs slabs = arena_check(arena);
    CHECK_EQ(slabs.live, 4 * 16);
    CHECK_AT_MOST(slabs.count, 4 * 4);
}

// ---- full slabs

// A full slab is looked at again when enough of it is free, and then its slots are handed out.
static void check_attach(void) {
    enum { MOST = 64 * PMA_SLAB_WORDS_MAX };
    static void *slots[MOST];
    struct arena *arena = arena_make(5, 0);
    struct bin *bin = arena_bin_for(arena, 1024);
    REQUIRE(pma_arena_refill(arena, bin));
    struct slab *slab = bin->current;
    size_t count = slab_slots(slab);
    REQUIRE(count <= MOST);
    for (size_t i = 0; i < count; i++) {
        slots[i] = arena_take(arena, 1024);
    }
    REQUIRE(pma_arena_refill(arena, bin));
    CHECK_EQ(slab_state_of(slab_load_state(slab)), SLAB_DETACHED);
    size_t freed = 0;
    while (slab_state_of(slab_load_state(slab)) == SLAB_DETACHED) {
        REQUIRE(freed < count && arena_give(arena, slots[freed++]));
        arena_check(arena);
    }
    // A small part of it is enough.
    CHECK_AT_MOST(freed, 1 + count / 16);
    CHECK_EQ(slab_state_of(slab_load_state(slab)), SLAB_ATTACHED);
    CHECK(bin->first == slab && bin->last == slab);
    arena_check(arena);
    bool found = false;
    for (size_t i = 0; i < 10 * count + 200 && !found; i++) {
        found = arena_take(arena, 1024) == slots[0];
    }
    CHECK(found);
    arena_check(arena);
}

// A slab whose last slot is freed goes at once; the descriptor serves again.
static void check_empty_slab(void) {
    struct arena *arena = arena_make(6, 0);
    struct bin *bin = arena_bin_for(arena, 2048);
    void *slots[64];
    REQUIRE(pma_arena_refill(arena, bin));
    struct slab *slab = bin->current;
    size_t count = slab_slots(slab);
    uint32_t incarnation = slab_incarnation_of(slab_load_state(slab));
    for (size_t i = 0; i < count; i++) {
        slots[i] = arena_take(arena, 2048);
    }
    REQUIRE(pma_arena_refill(arena, bin));
    size_t before = pma_pageheap.live;
    size_t bytes = (size_t)slab->run.npages << pma_page_shift;
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(pma_pageheap.live, before);
        CHECK(arena_give(arena, slots[i]));
    }
    CHECK_EQ(pma_pageheap.live, before - bytes);
    CHECK_EQ(slab_state_of(slab_load_state(slab)), SLAB_UNUSED);
    struct slab *again = pma_supply_take(&arena->supply, pma_slab_capacities[slab->run.capacity]);
    CHECK(again == slab);
    CHECK_EQ(slab_incarnation_of(slab_load_state(slab)), incarnation);
}

// ---- remote frees

// The last remote free gives the pages back while the owner sleeps; its next drain finds the husk.
static void check_sleeping_owner(void) {
    enum { SLOTS = 3000 };
    static void *slots[SLOTS];
    struct arena *arena = arena_make(8, 0);
    size_t before = pma_pageheap.live;
    for (size_t i = 0; i < SLOTS; i++) {
        slots[i] = arena_take(arena, 500);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        CHECK(remote_give(slots[i]) != REMOTE_NOT_LIVE);
    }
    // All but the current slab are gone.
    struct slabs slabs = { .arena = arena };
    pma_pagemap_walk(slabs_visit, &slabs);
    CHECK_EQ(slabs.count, 1);
    CHECK_EQ(slabs.states[SLAB_CURRENT], 1);
    CHECK_EQ(pma_pageheap.live - before, slabs.pages << pma_page_shift);
    pma_arena_drain(arena);
    arena_check(arena);
    CHECK(inbox_is_empty(&arena->inbox));
    // The husks' descriptors are of use again.
    size_t spare = arena->supply.start;
    for (size_t i = 0; i < SLOTS / 2; i++) {
        REQUIRE(arena_take(arena, 500) != NULL);
    }
    CHECK_EQ(arena->supply.start, spare);
    arena_check(arena);
}

// Before a new slab is made, the inbox is looked at.
static void check_inbox_before_pages(void) {
    struct arena *arena = arena_make(9, 0);
    struct bin *bin = arena_bin_for(arena, 4096);
    void *slots[200];
    for (size_t i = 0; i < 200; i++) {
        slots[i] = arena_take(arena, 4096);
    }
    while (bin->window != 0) {
        arena_take(arena, 4096);
    }
    for (size_t i = 0; i < 200; i += 2) {
        remote_give(slots[i]);
    }
    size_t before = pma_pageheap.live;
    for (size_t i = 0; i < 100; i++) {
        REQUIRE(arena_take(arena, 4096) != NULL);
    }
    CHECK_AT_MOST(pma_pageheap.live, before);
    arena_check(arena);
}

// ---- freed twice, in each order

enum order { LOCAL_LOCAL, LOCAL_REMOTE, REMOTE_REMOTE, REMOTE_LOCAL_REFILL, REMOTE_LOCAL_DRAIN };

// The first three are refused at once. Freed remotely, then locally, the slot could be handed out
// while its bit is on the way: it is found before.
static void free_twice(void *argument) {
    enum order how = *(const enum order *)argument;
    struct arena *arena = arena_make(10, 0);
    void *slot = arena_take(arena, 100);
    void *other = arena_take(arena, 100);
    REQUIRE(slot != NULL && other != NULL);
    if (how == LOCAL_LOCAL || how == LOCAL_REMOTE) {
        CHECK(arena_give(arena, slot));
    } else {
        CHECK_EQ(remote_give(slot), REMOTE_PUSHED);
    }
    switch (how) {
    case LOCAL_LOCAL:
        CHECK(!arena_give(arena, slot));
        break;
    case LOCAL_REMOTE:
    case REMOTE_REMOTE:
        CHECK_EQ(remote_give(slot), REMOTE_NOT_LIVE);
        break;
    case REMOTE_LOCAL_REFILL:
        CHECK(arena_give(arena, slot));
        for (int i = 0; i < 10000; i++) {
            CHECK(arena_take(arena, 100) != slot);
        }
        break;
    case REMOTE_LOCAL_DRAIN:
        CHECK(arena_give(arena, slot));
        pma_arena_drain(arena);
        break;
    }
}

static void check_double_frees(void) {
    for (enum order how = LOCAL_LOCAL; how <= REMOTE_REMOTE; how++) {
        struct child_end end = run_child(free_twice, &how, 20);
        expect_exit(&end, 0, "freed twice, refused at once");
    }
    for (enum order how = REMOTE_LOCAL_REFILL; how <= REMOTE_LOCAL_DRAIN; how++) {
        expect_abort(free_twice, &how, "free(): double free: 0x");
    }
}

// ---- zero

// fresh is said of slots only that were never handed out since their pages were zero.
static void check_fresh(struct dice *dice) {
    struct arena *arena = arena_make(11, 0);
    void *held[100] = { NULL };
    size_t size_of[100];
    size_t fresh = 0;
    for (int round = 0; round < 3000; round++) {
        size_t i = dice_below(dice, 100);
        if (held[i] != NULL) {
            CHECK(arena_give(arena, held[i]));
            held[i] = NULL;
            continue;
        }
        size_of[i] = 1 + dice_below(dice, PMA_SLOT_MAX);
        struct bin *bin = arena_bin_for(arena, size_of[i]);
        held[i] = arena_take(arena, size_of[i]);
        REQUIRE(held[i] != NULL);
        uint64_t bit = ((uintptr_t)held[i] - bin->base) / bin->unit;
        if ((bin->fresh >> bit & 1) != 0) {
            CHECK(is_zero(held[i], bin_size(arena, bin)));
            fresh++;
        }
        memset(held[i], 0xff, size_of[i]);
        if (round % 300 == 0) {
            pma_arena_rest(arena);
        }
    }
    CHECK(fresh > 0);
}

// ---- failures

static void check_refused(void) {
    struct arena *arena = arena_make(12, 0);
    struct slabs before = arena_check(arena);
    pma_os_fail_at(1, true);
    size_t count = 0;
    // What is committed already may be used; then no more.
    while (arena_take(arena, 32768) != NULL) {
        count++;
        REQUIRE(count < 10000);
    }
    CHECK(!pma_arena_refill(arena, arena_bin_for(arena, 32768)));
    pma_os_fail_at(0, false);
    struct slabs after = arena_check(arena);
    CHECK_EQ(after.live, before.live + count);
    for (uint64_t n = 1; n < 12; n++) {
        for (int forever = 0; forever < 2; forever++) {
            size_t size = 10000 + 2000 * (size_t)n;
            pma_os_fail_at(n, forever);
            void *slot = arena_take(arena, size);
            pma_os_fail_at(0, false);
            after = arena_check(arena);
            check_pages(&(struct slabs){ .pages = pma_pageheap.live >> pma_page_shift });
            CHECK(slot == NULL || arena_give(arena, slot));
            REQUIRE(arena_take(arena, size) != NULL);
        }
    }
}

// ---- at random

#define HELD 3000

static struct held {
    void *slot;
    size_t size;
    uint64_t mark;
} held[HELD];

static size_t random_size(struct dice *dice) {
    return dice_below(dice, 8) == 0 ? dice_below(dice, PMA_SLOT_MAX + 1) : dice_below(dice, 700);
}

static void check_at_random(struct dice *dice) {
    struct arena *arena = arena_make(13, 1);
    size_t count = 0;
    unsigned rounds = 60000 / slow_factor();
    for (unsigned round = 0; round < rounds; round++) {
        struct held *one = &held[dice_below(dice, HELD)];
        size_t die = dice_below(dice, 10000);
        if (one->slot != NULL) {
            CHECK(slot_is_live(one->slot));
            CHECK(slot_has_mark(one->slot, one->size, one->mark));
            bool local = dice_below(dice, 2) == 0;
            CHECK(local ? arena_give(arena, one->slot) : remote_give(one->slot) != REMOTE_NOT_LIVE);
            one->slot = NULL;
            count--;
        } else if (round % 20000 < 15000 || dice_below(dice, 8) == 0) {
            one->size = random_size(dice);
            one->mark = dice_draw(dice);
            one->slot = arena_take(arena, one->size);
            REQUIRE(one->slot != NULL);
            slot_mark(one->slot, one->size, one->mark);
            count++;
        }
        if (die < 3) {
            pma_arena_rest(arena);
        } else if (die < 40) {
            pma_arena_drain(arena);
            struct slabs slabs = arena_check(arena);
            CHECK_EQ(slabs.live, count);
        }
    }
    for (size_t i = 0; i < HELD; i++) {
        if (held[i].slot != NULL) {
            CHECK(slot_has_mark(held[i].slot, held[i].size, held[i].mark));
            CHECK(arena_give(arena, held[i].slot));
        }
    }
    arena_end(arena);
}

// ---- threads

#define RING 256

// From the owner to one thread: a slot is put where there is none.
struct ring {
    void *places[RING]; // atomic
    uint32_t over;      // atomic
    uint64_t freed;
};

static bool ring_take(struct ring *ring, size_t i) {
    void *slot = __atomic_load_n(&ring->places[i], __ATOMIC_ACQUIRE);
    if (slot == NULL) {
        return false;
    }
    CHECK(slot_has_mark(slot, 64, (uintptr_t)slot));
    slot_mark(slot, 64, 0);
    CHECK(remote_give(slot) != REMOTE_NOT_LIVE);
    __atomic_store_n(&ring->places[i], NULL, __ATOMIC_RELEASE);
    ring->freed++;
    return true;
}

static void *thread_free(void *argument) {
    struct ring *ring = argument;
    for (bool over = false, found = true; !over || found;) {
        over = __atomic_load_n(&ring->over, __ATOMIC_ACQUIRE) != 0;
        found = false;
        for (size_t i = 0; i < RING; i++) {
            found = ring_take(ring, i) || found;
        }
        if (!found) {
            pma_os_yield();
        }
    }
    return NULL;
}

static void ring_put(struct ring *ring, size_t *place, void *slot) {
    while (__atomic_load_n(&ring->places[*place], __ATOMIC_ACQUIRE) != NULL) {
        *place = (*place + 1) % RING;
        if (*place == 0) {
            pma_os_yield();
        }
    }
    __atomic_store_n(&ring->places[*place], slot, __ATOMIC_RELEASE);
}

// The owner takes, and frees some itself; two threads free the others.
static void check_threads(struct dice *dice) {
    static struct ring rings[2];
    pthread_t threads[2];
    struct arena *arena = arena_make(14, 0);
    size_t before = pma_pageheap.live;
    size_t place[2] = { 0, 0 };
    size_t sizes[] = { 64, 80, 100, 300, 1000, 5000, 20000 };
    for (size_t i = 0; i < 2; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, thread_free, &rings[i]) == 0);
    }
    unsigned rounds = 300000 / slow_factor();
    for (unsigned round = 0; round < rounds; round++) {
        size_t size = sizes[dice_below(dice, dice_below(dice, 4) == 0 ? 7 : 4)];
        void *slot = arena_take(arena, size);
        REQUIRE(slot != NULL);
        slot_mark(slot, 64, (uintptr_t)slot);
        size_t to = dice_below(dice, 3);
        if (to == 2) {
            CHECK(slot_has_mark(slot, 64, (uintptr_t)slot));
            CHECK(arena_give(arena, slot));
        } else {
            ring_put(&rings[to], &place[to], slot);
        }
    }
    for (size_t i = 0; i < 2; i++) {
        __atomic_store_n(&rings[i].over, 1, __ATOMIC_RELEASE);
    }
    for (size_t i = 0; i < 2; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    arena_end(arena);
    CHECK_EQ(pma_pageheap.live, before);
    CHECK(rings[0].freed > 0 && rings[1].freed > 0);
}

int main(void) {
    test_begin(120);
    struct dice dice = { test_seed() };
    pma_os_init();
    pma_random_set_seed(dice_draw(&dice));
    pma_pageheap_init(2);
    check_tables();
    check_splits();
    struct child_end narrowed = run_child(narrow, NULL, 20);
    expect_exit(&narrowed, 0, "windows of a thread that makes few calls");
    struct child_end end = run_child(check_used, NULL, 20);
    expect_exit(&end, 0, "bins in use");
    check_windows();
    check_whole_slabs();
    check_levels();
    check_heat();
    check_attach();
    check_empty_slab();
    check_sleeping_owner();
    check_inbox_before_pages();
    check_double_frees();
    check_fresh(&dice);
    check_refused();
    check_at_random(&dice);
    check_threads(&dice);
    return test_end();
}

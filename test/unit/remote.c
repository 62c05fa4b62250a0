// remote.c - whoever frees a slab's last slot gives its pages back, no bit is lost, and what is
// freed twice is found.
#include <config.h>

#include "arenas.h"
#include "base.h"
#include "harness.h"
#include "lock.h"
#include "os.h"
#include "pageheap.h"
#include "pagemap.h"
#include "random.h"
#include "remote.h"
#include "slab.h"
#include "supply.h"

#include <pthread.h>

static struct stream stream;
static struct supply supply;
static struct inbox inbox;

// A slab all of whose slots are live, in some state. Nobody here looks at its owner.
static struct slab *slab_make(size_t size, unsigned level, enum slab_state state) {
    struct shape shape = pma_class_shape(size, level);
    struct slab *slab = pma_supply_take(&supply, pma_slab_span_words(size, shape));
    struct pages pages;
    REQUIRE(slab != NULL && pma_pageheap_take(0, shape.npages, 1, &stream, &pages));
    slab->run.shard = pages.shard;
    pma_slab_init(slab, pages.start, size, shape, NULL, 0);
    slab_set_state(slab, SLAB_CURRENT);
    for (size_t word = 0; word < shape.words; word++) {
        slab_set_live(slab, word, shape_mask(shape.shift));
    }
    pma_pagemap_fill(pages.start, (size_t)pages.npages << pma_page_shift, &slab->run);
    if (state != SLAB_CURRENT) {
        slab_set_state(slab, state);
    }
    return slab;
}

static enum slab_state state_of(const struct slab *slab) {
    return slab_state_of(slab_load_state(slab));
}

static uint64_t index_of(const struct slab *slab, size_t slot) {
    return (uint64_t)slot << slab->run.shift;
}

static enum remote_outcome give(struct slab *slab, size_t slot) {
    return pma_remote_free(slab, index_of(slab, slot), &inbox);
}

static bool bit_of(const uint64_t *words, uint64_t index) {
    return (words[index / 64] >> index % 64 & 1) != 0;
}

static size_t live_bytes(void) {
    return __atomic_load_n(&pma_pageheap.live, __ATOMIC_RELAXED);
}

// ---- states

static void check_states(void) {
    struct slab *slab = slab_make(64, 0, SLAB_CURRENT);
    uint64_t state = slab_load_state(slab);
    CHECK_EQ(slab_incarnation_of(state), 1);
    CHECK(!slab_is_settled(state));
    CHECK(slab_change_state(slab, state, SLAB_ATTACHED));
    CHECK_EQ(state_of(slab), SLAB_ATTACHED);
    CHECK(slab_is_settled(slab_load_state(slab)));
    // There and back again is not the state that was seen.
    CHECK(!slab_change_state(slab, state, SLAB_GONE));
    CHECK(slab_change_state(slab, slab_load_state(slab), SLAB_CURRENT));
    CHECK_EQ(state_of(slab), SLAB_CURRENT);
    CHECK(slab_load_state(slab) != state);
    CHECK(!slab_change_state(slab, state, SLAB_GONE));
    slab_set_state(slab, SLAB_DETACHED);
    CHECK(slab_is_settled(slab_load_state(slab)));
    CHECK_EQ(slab_incarnation_of(slab_load_state(slab)), 1);
    slab_set_state(slab, SLAB_UNUSED);
    CHECK_EQ(slab_incarnation_of(slab_load_state(slab)), 1);
    slab_set_state(slab, SLAB_CURRENT);
    CHECK_EQ(slab_incarnation_of(slab_load_state(slab)), 2);
    // The count of changes wraps within its bits.
    slab->run.remote->state |= (uint64_t)UINT32_MAX & ~(uint64_t)7;
    CHECK(slab_change_state(slab, slab_load_state(slab), SLAB_DETACHED));
    CHECK_EQ(slab_load_state(slab), (uint64_t)2 << 32 | SLAB_DETACHED);
    slab->run.remote->state |= (uint64_t)UINT32_MAX & ~(uint64_t)7;
    slab_set_state(slab, SLAB_GONE);
    CHECK_EQ(slab_load_state(slab), (uint64_t)2 << 32 | SLAB_GONE);
}

// ---- one free after the other

static void check_outcomes(void) {
    struct slab *slab = slab_make(64, 3, SLAB_CURRENT);
    struct remote *remote = slab->run.remote;
    CHECK(inbox_is_empty(&inbox) && !slab_is_queued(slab));
    CHECK_EQ(give(slab, 5), REMOTE_PUSHED);
    CHECK(slab_is_queued(slab) && !inbox_is_empty(&inbox));
    CHECK(bit_of(remote->bits, index_of(slab, 5)));
    CHECK(bit_of(slab->live, index_of(slab, 5)));
    CHECK_EQ(give(slab, 6), REMOTE_DONE);
    CHECK_EQ(give(slab, 100), REMOTE_DONE);
    // A second time, and what was not live.
    CHECK_EQ(give(slab, 5), REMOTE_NOT_LIVE);
    slab_set_live(slab, 0, slab_live(slab, 0) & ~((uint64_t)1 << index_of(slab, 7)));
    CHECK_EQ(give(slab, 7), REMOTE_NOT_LIVE);
    CHECK(!bit_of(remote->bits, index_of(slab, 7)));
    size_t before = pma_slab_count_live(slab);
    CHECK(pma_inbox_take_all(&inbox) == slab);
    CHECK(pma_inbox_next(slab) == NULL);
    CHECK(inbox_is_empty(&inbox) && !slab_is_queued(slab));
    // Set after it was taken, before its words are: queued again.
    CHECK_EQ(give(slab, 60), REMOTE_DONE);
    CHECK_EQ(pma_remote_collect(slab), 4);
    CHECK_EQ(pma_slab_count_live(slab), before - 4);
    CHECK_EQ(remote->bits[0] | remote->bits[1], 0);
    CHECK_EQ(pma_remote_collect(slab), 0);
    CHECK_EQ(give(slab, 61), REMOTE_PUSHED);
    CHECK_EQ(give(slab, 60), REMOTE_NOT_LIVE);
    // In a forked child what is in the inbox stays there, once.
    pma_remote_after_fork();
    pma_inbox_after_fork(&inbox);
    CHECK_EQ(give(slab, 101), REMOTE_DONE);
    CHECK(pma_inbox_take_all(&inbox) == slab);
    // Marked by a thread that is gone, and in no inbox: pushed again.
    CHECK_EQ(pma_remote_collect(slab), 2);
    CHECK_EQ(give(slab, 20), REMOTE_DONE);
    CHECK_EQ(pma_remote_collect(slab), 1);
    pma_remote_after_fork();
    pma_inbox_after_fork(&inbox);
    CHECK_EQ(give(slab, 21), REMOTE_PUSHED);
    CHECK(pma_inbox_take_all(&inbox) == slab && pma_inbox_next(slab) == NULL);
}

// A stack of slabs, each of them once.
static void check_inbox(void) {
    enum { SLABS = 50 };
    struct slab *slabs[SLABS];
    size_t seen[SLABS] = { 0 };
    for (size_t i = 0; i < SLABS; i++) {
        slabs[i] = slab_make(32, 0, SLAB_CURRENT);
        CHECK_EQ(give(slabs[i], i % 16), REMOTE_PUSHED);
    }
    struct slab *slab = pma_inbox_take_all(&inbox);
    for (size_t count = 0; slab != NULL; count++) {
        REQUIRE(count < SLABS);
        size_t i = 0;
        while (slabs[i] != slab) {
            REQUIRE(++i < SLABS);
        }
        seen[i]++;
        slab = pma_inbox_next(slab);
        CHECK_EQ(pma_remote_collect(slabs[i]), 1);
        CHECK(!bit_of(slabs[i]->live, index_of(slabs[i], i % 16)));
    }
    for (size_t i = 0; i < SLABS; i++) {
        CHECK_EQ(seen[i], 1);
    }
    CHECK(pma_inbox_take_all(&inbox) == NULL);
}

// ---- the last slot

// Freed one by one in random order, some by the owner before: the last one gives the pages back.
static void claim(struct dice *dice, size_t size, unsigned level, enum slab_state state) {
    struct slab *slab = slab_make(size, level, state);
    uintptr_t start = slab->run.start;
    size_t bytes = (size_t)slab->run.npages << pma_page_shift;
    size_t slots = slab_slots(slab);
    size_t order[64 * PMA_SLAB_WORDS_MAX];
    size_t before = live_bytes();
    for (size_t i = 0; i < slots; i++) {
        size_t j = dice_below(dice, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    size_t local = dice_below(dice, slots);
    for (size_t i = 0; i < slots; i++) {
        CHECK_EQ(state_of(slab), state);
        CHECK_EQ(pma_remote_is_complete(slab, slab->run.words), false);
        if (i < local) {
            uint64_t index = index_of(slab, order[i]);
            slab_set_live(slab, index / 64,
                          slab_live(slab, index / 64) & ~((uint64_t)1 << index % 64));
        } else {
            CHECK(give(slab, order[i]) != REMOTE_NOT_LIVE);
        }
    }
    CHECK(pma_remote_is_complete(slab, slab->run.words));
    if (state == SLAB_CURRENT) {
        CHECK_EQ(state_of(slab), SLAB_CURRENT);
        CHECK_EQ(live_bytes(), before);
    } else {
        CHECK_EQ(state_of(slab), SLAB_GONE);
        CHECK_EQ(live_bytes(), before - bytes);
        // Free runs are in the page map by their ends.
        for (size_t at = 0; at < bytes; at += PMA_GRANULE) {
            CHECK(pagemap_find(start + at) != &slab->run);
        }
    }
    // The husk is still in the inbox.
    CHECK(pma_inbox_take_all(&inbox) == slab);
    pma_inbox_next(slab);
}

static void check_claims(struct dice *dice) {
    for (unsigned level = 0; level < PMA_LEVELS; level++) {
        for (size_t size = 16; size <= PMA_SLOT_MAX; size *= 2) {
            claim(dice, size, level, SLAB_DETACHED);
            claim(dice, size, level, SLAB_ATTACHED);
            claim(dice, size, level, SLAB_CURRENT);
        }
    }
}

// ---- freed twice

struct twice {
    struct slab *slab;
    size_t slot;
};

// The owner frees what another has freed: the drain finds it.
static void collect_double(void *argument) {
    const struct twice *twice = argument;
    struct slab *slab = twice->slab;
    uint64_t index = index_of(slab, twice->slot);
    give(slab, twice->slot);
    slab_set_live(slab, index / 64, slab_live(slab, index / 64) & ~((uint64_t)1 << index % 64));
    pma_remote_collect(slab);
}

// It says which slot of which size it was.
static void check_double(size_t size, unsigned level) {
    struct twice twice = { slab_make(size, level, SLAB_CURRENT), 0 };
    twice.slot = slab_slots(twice.slab) - 1;
    char text[128];
    (void)snprintf(text, sizeof(text), "free(): double free: %#zx (size %zu, slot %zu)",
                   (size_t)(twice.slab->run.base + twice.slot * size), size, twice.slot);
    expect_abort(collect_double, &twice, text);
}

// ---- threads

#define THREADS 3
#define SLABS 64

static struct slab *shared[SLABS];
static uint32_t freed; // atomic; slots that threads freed

// Each frees every third slot of every slab, in an order of its own.
static void *thread_give(void *argument) {
    size_t own = (size_t)(uintptr_t)argument;
    struct dice dice = { own };
    size_t first = dice_below(&dice, SLABS);
    for (size_t i = 0; i < SLABS; i++) {
        struct slab *slab = shared[(first + i * 7) % SLABS];
        size_t slots = slab_slots(slab);
        uint32_t count = 0;
        for (size_t slot = own; slot < slots; slot += THREADS) {
            CHECK(give(slab, slot) != REMOTE_NOT_LIVE);
            count++;
        }
        __atomic_fetch_add(&freed, count, __ATOMIC_RELAXED);
    }
    return NULL;
}

// The owner's part: what is complete goes, by itself or by whoever is first.
static void owner_look(struct slab *slab) {
    for (;;) {
        uint64_t state = slab_load_state(slab);
        if (!slab_is_settled(state) || !pma_remote_is_complete(slab, slab->run.words)) {
            return;
        }
        struct pages pages = { slab->run.start, slab->run.npages, slab->run.shard, false };
        if (slab_change_state(slab, state, SLAB_GONE)) {
            pma_slab_give_pages(pages);
            return;
        }
    }
}

static size_t owner_drain(void) {
    size_t count = 0;
    struct slab *slab = pma_inbox_take_all(&inbox);
    while (slab != NULL) {
        struct slab *next = pma_inbox_next(slab);
        if (state_of(slab) != SLAB_GONE) {
            count += pma_remote_collect(slab);
            owner_look(slab);
        }
        slab = next;
    }
    return count;
}

static void race(bool drains, unsigned round) {
    pthread_t threads[THREADS];
    size_t before = live_bytes();
    size_t slots = 0;
    size_t collected = 0;
    freed = 0;
    for (size_t i = 0; i < SLABS; i++) {
        shared[i] = slab_make(256, (unsigned)(i + round) % 4, SLAB_DETACHED);
        slots += slab_slots(shared[i]);
    }
    for (uintptr_t i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, thread_give, (void *)i) == 0);
    }
    while (drains && __atomic_load_n(&freed, __ATOMIC_RELAXED) < slots) {
        collected += owner_drain();
    }
    for (size_t i = 0; i < THREADS; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    // Without a drain the threads did it all: the owner may sleep for ever.
    CHECK(drains || live_bytes() == before);
    collected += owner_drain();
    CHECK_EQ(live_bytes(), before);
    for (size_t i = 0; i < SLABS; i++) {
        CHECK_EQ(state_of(shared[i]), SLAB_GONE);
        collected += pma_slab_count_live(shared[i]);
        slab_set_state(shared[i], SLAB_UNUSED);
        pma_supply_give(&supply, shared[i]);
    }
    // Every slot was collected, or was there when the slab went.
    CHECK_EQ(collected, slots);
    CHECK(inbox_is_empty(&inbox));
}

int main(void) {
    test_begin(120);
    struct dice dice = { test_seed() };
    pma_os_init();
    pma_random_set_seed(dice_draw(&dice));
    pma_pageheap_init(1);
    check_states();
    check_outcomes();
    check_inbox();
    check_claims(&dice);
    check_double(64, PMA_LEVELS - 1);
    check_double(4096, 0);
    check_double(20480, 0);
    unsigned rounds = 60 / slow_factor() + 2;
    for (unsigned round = 0; round < rounds; round++) {
        race(round % 2 == 0, round);
    }
    return test_end();
}

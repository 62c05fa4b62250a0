// shard.c - free runs join, part and change state, and no page is lost or in two runs.
#include <config.h>

#include "base.h"
#include "census.h"
#include "harness.h"
#include "lock.h"
#include "os.h"
#include "pageheap.h"
#include "pagemap.h"
#include "random.h"
#include "run.h"
#include "shard.h"

// One stretch of address space, and what the test knows of each of its pages.
#define PAGES 2048

enum page { AWAY, LIVE, DIRTY, CLEAN, CLOSED, LEAVING };

static uintptr_t start;
static unsigned char pages[PAGES];
static struct stream stream;
static struct shard *shard;
static struct census census;

static enum run_kind kind_of(enum page page) {
    return page == DIRTY ? RUN_DIRTY : page == CLEAN ? RUN_CLEAN : RUN_CLOSED;
}

static enum page page_of(enum run_kind kind) {
    return kind == RUN_DIRTY ? DIRTY : kind == RUN_CLEAN ? CLEAN : CLOSED;
}

static size_t index_of(uintptr_t address) {
    return (address - start) >> pma_page_shift;
}

static uintptr_t address_of(size_t page) {
    return start + (page << pma_page_shift);
}

static void mark(size_t from, size_t count, enum page page) {
    REQUIRE(from + count <= PAGES);
    memset(pages + from, (int)page, count);
}

// How many pages from here on are in the same state.
static size_t stretch_at(size_t from) {
    size_t count = 1;
    while (from + count < PAGES && pages[from + count] == pages[from]) {
        count++;
    }
    return count;
}

// ---- comparing

static size_t count_pages(enum page page) {
    size_t count = 0;
    for (size_t i = 0; i < PAGES; i++) {
        count += pages[i] == page;
    }
    return count;
}

// Every free stretch is one run, and there is no other run.
static void check_all(void) {
    size_t expected = 0;
    census_take(&census);
    for (size_t i = 0; i < PAGES; i += stretch_at(i)) {
        if (pages[i] == DIRTY || pages[i] == CLEAN || pages[i] == CLOSED) {
            struct run *run = pagemap_find(address_of(i));
            REQUIRE(run != NULL);
            CHECK_EQ(run->start, address_of(i));
            CHECK_EQ(run->npages, stretch_at(i));
            CHECK_EQ(run_kind(run), kind_of(pages[i]));
            CHECK(run->owner == NULL);
            expected++;
        }
    }
    CHECK_EQ(expected,
             census.kinds[RUN_DIRTY] + census.kinds[RUN_CLEAN] + census.kinds[RUN_CLOSED]);
    CHECK_EQ(census.count, expected + census.kinds[RUN_PURGING]);
    census_check(&census, count_pages(LIVE), false);
    // The header's equation.
    CHECK_EQ(shard_pages(shard), PAGES - count_pages(AWAY));
    CHECK_EQ(shard->pages[0], count_pages(DIRTY) + count_pages(LEAVING));
}

// ---- steps

static void give(size_t from, size_t count, enum page page) {
    pma_shard_count_live(shard, -(ptrdiff_t)count);
    pma_shard_join_pages(shard, address_of(from), count, kind_of(page));
    mark(from, count, page);
}

// A part of a live stretch, with a descriptor of its own or without.
static void step_give(struct dice *dice) {
    size_t at = dice_below(dice, PAGES);
    if (pages[at] == LIVE) {
        size_t count = 1 + dice_below(dice, size_min(stretch_at(at), 40));
        enum page page = (enum page)(DIRTY + dice_below(dice, 3));
        if (dice_below(dice, 2) == 0) {
            give(at, count, page);
            return;
        }
        struct run *run = pma_shard_take_descriptor(shard);
        REQUIRE(run != NULL && run->shard == 0);
        run->start = address_of(at);
        run->npages = (uint32_t)count;
        run->age = pma_os_time();
        pma_shard_count_live(shard, -(ptrdiff_t)count);
        pma_shard_join(shard, run, kind_of(page));
        mark(at, count, page);
    }
}

static void step_take(struct dice *dice) {
    enum run_kind kind = (enum run_kind)(RUN_DIRTY + dice_below(dice, 3));
    size_t npages = 1 + dice_below(dice, 40);
    size_t align = (size_t)1 << dice_below(dice, 5);
    const struct runlist *list = &shard->lists[kind - RUN_DIRTY];
    struct run *run = pma_runlist_find(list, npages + align - 1, &stream);
    if (run == NULL) {
        return;
    }
    pma_shard_remove(shard, run);
    REQUIRE(pma_shard_cut(shard, run, npages, align, kind));
    CHECK_EQ(run->npages, npages);
    CHECK_EQ(run->start % (align << pma_page_shift), 0);
    for (size_t i = 0; i < npages; i++) {
        CHECK_EQ(pages[index_of(run->start) + i], page_of(kind));
    }
    pma_shard_count_live(shard, (ptrdiff_t)npages);
    mark(index_of(run->start), npages, LIVE);
    pma_shard_give_descriptor(shard, run);
}

// At most one run is on its way, from one state to another, while other steps happen.
static void step_move(struct dice *dice) {
    static struct run *away;
    if (away != NULL) {
        enum page page = (enum page)(DIRTY + dice_below(dice, 3));
        CHECK_EQ(run_kind(away), RUN_PURGING);
        mark(index_of(away->start), away->npages, page);
        pma_shard_arrive(shard, away, kind_of(page));
        away = NULL;
        return;
    }
    struct run *run = pagemap_find(address_of(dice_below(dice, PAGES)));
    if (run != NULL) {
        mark(index_of(run->start), run->npages, LEAVING);
        pma_shard_depart(shard, run);
        away = run;
    }
}

static void check_at_random(struct dice *dice) {
    unsigned rounds = 30000 / slow_factor();
    for (unsigned round = 0; round < rounds; round++) {
        size_t die = dice_below(dice, 8);
        if (die < 4) {
            step_give(dice);
        } else if (die < 7) {
            step_take(dice);
        } else {
            step_move(dice);
        }
        if (round % 16 == 0) {
            check_all();
        }
    }
}

// ---- neighbours

// A run of one state and of this shard that begins or ends there, and no other.
static void check_neighbour(void) {
    give(10, 5, DIRTY);
    give(15, 5, CLEAN);
    struct run *dirty = pagemap_find(address_of(10));
    struct run *clean = pagemap_find(address_of(15));
    CHECK(pma_shard_neighbour(shard, address_of(10), RUN_DIRTY) == dirty);
    CHECK(pma_shard_neighbour(shard, address_of(15) - PMA_GRANULE, RUN_DIRTY) == dirty);
    CHECK(pma_shard_neighbour(shard, address_of(15), RUN_CLEAN) == clean);
    CHECK(pma_shard_neighbour(shard, address_of(15), RUN_DIRTY) == NULL);
    CHECK(pma_shard_neighbour(shard, address_of(20), RUN_CLEAN) == NULL);
    CHECK(pma_shard_neighbour(&pma_pageheap.shards[1], address_of(15), RUN_CLEAN) == NULL);
    // In the other shard it is a run of its own, although it touches both.
    struct shard *other = &pma_pageheap.shards[1];
    mark(8, 2, AWAY);
    pma_shard_count_live(shard, -2);
    pma_shard_join_pages(other, address_of(8), 2, RUN_DIRTY);
    CHECK_EQ(pagemap_find(address_of(8))->npages, 2);
    CHECK_EQ(dirty->npages, 5);
    CHECK_EQ(other->pages[0], 2);
    struct run *run = pma_shard_neighbour(other, address_of(8), RUN_DIRTY);
    REQUIRE(run != NULL);
    pma_shard_remove(other, run);
    pma_shard_give_descriptor(other, run);
    pma_shard_count_live(shard, 2);
    mark(8, 2, LIVE);
    check_all();
}

// ---- without descriptors

static struct run *hoard;

// Takes every descriptor out of reserve, and lets the kernel refuse more.
static void descriptors_exhaust(void) {
    pma_os_fail_at(1, true);
    for (struct run *run; (run = pma_shard_take_descriptor(shard)) != NULL;) {
        run->next = hoard;
        hoard = run;
    }
}

static void descriptors_return(size_t most) {
    for (struct run *run; most > 0 && (run = hoard) != NULL; most--) {
        hoard = run->next;
        pma_shard_give_descriptor(shard, run);
    }
}

// Freed pages without a descriptor remember themselves, and are found when there are descriptors
// again.
static void check_lost(void) {
    size_t before = shard_pages(shard);
    CHECK(pma_shard_find_lost(shard));
    descriptors_exhaust();
    for (size_t i = 0; i < 3; i++) {
        pma_shard_count_live(shard, -7);
        pma_shard_join_pages(shard, address_of(200 + i * 20), 7, RUN_DIRTY);
    }
    CHECK(shard->lost != NULL);
    CHECK(!pma_shard_find_lost(shard));
    CHECK(pagemap_find(address_of(200)) == NULL);
    CHECK_EQ(shard_pages(shard), before - 21);
    descriptors_return(1);
    CHECK(!pma_shard_find_lost(shard));
    CHECK_EQ(shard_pages(shard), before - 14);
    pma_os_fail_at(0, false);
    CHECK(pma_shard_find_lost(shard));
    CHECK(shard->lost == NULL);
    for (size_t i = 0; i < 3; i++) {
        mark(200 + i * 20, 7, DIRTY);
    }
    descriptors_return(SIZE_MAX);
    check_all();
}

// Growing is worth it while three descriptors are there, or can be had.
static void check_may_grow(void) {
    for (size_t reserve = 0; reserve < 5; reserve++) {
        descriptors_exhaust();
        descriptors_return(reserve);
        CHECK_EQ(pma_shard_may_grow(shard), reserve >= 3);
        pma_os_fail_at(0, false);
        CHECK(pma_shard_may_grow(shard));
        descriptors_return(SIZE_MAX);
    }
}

// A run is not cut when a rest would have no descriptor, be it the first or the second.
static void check_cut_refused(void) {
    give(300, 64, CLEAN);
    struct run *run = pagemap_find(address_of(300));
    size_t align = 16;
    CHECK(address_of(300) % (align << pma_page_shift) != 0);
    for (size_t reserve = 0; reserve < 3; reserve++) {
        pma_shard_remove(shard, run);
        descriptors_exhaust();
        descriptors_return(reserve);
        bool cut = pma_shard_cut(shard, run, 8, align, RUN_CLEAN);
        CHECK_EQ(cut, reserve == 2);
        pma_os_fail_at(0, false);
        descriptors_return(SIZE_MAX);
        if (!cut) {
            CHECK_EQ(run->start, address_of(300));
            CHECK_EQ(run->npages, 64);
            pma_shard_insert(shard, run, RUN_CLEAN);
            check_all();
        }
    }
    CHECK_EQ(run->start, address_of(304));
    CHECK_EQ(run->npages, 8);
    pma_shard_count_live(shard, 8);
    mark(304, 8, LIVE);
    pma_shard_give_descriptor(shard, run);
    check_all();
}

// ---- age

static void check_due(void) {
    struct shard *other = &pma_pageheap.shards[1];
    CHECK_EQ(other->due, UINT64_MAX);
    mark(500, 10, AWAY);
    pma_shard_count_live(shard, -10);
    for (size_t i = 0; i < 5; i++) {
        struct run *run = pma_shard_take_descriptor(other);
        REQUIRE(run != NULL && run->shard == 1);
        run->start = address_of(500 + 2 * i);
        run->npages = 1;
        run->age = 1000 + i;
        pma_shard_join(other, run, RUN_DIRTY);
        CHECK_EQ(other->due, 1000 + PMA_DIRTY_AGE);
    }
    for (size_t i = 0; i < 5; i++) {
        struct run *run = other->oldest;
        REQUIRE(run != NULL);
        CHECK_EQ(run->age, 1000 + i);
        CHECK_EQ(other->due, 1000 + i + PMA_DIRTY_AGE);
        pma_shard_remove(other, run);
        pma_shard_give_descriptor(other, run);
    }
    CHECK_EQ(other->due, UINT64_MAX);
    CHECK(other->newest == NULL);
    mark(500, 10, LIVE);
    pma_shard_count_live(shard, 10);
}

static void join_aged(struct shard *other, size_t page, size_t npages, uint64_t age) {
    struct run *run = pma_shard_take_descriptor(other);
    REQUIRE(run != NULL);
    run->start = address_of(page);
    run->npages = (uint32_t)npages;
    run->age = age;
    pma_shard_join(other, run, RUN_DIRTY);
}

// What is joined is as old as its longer part, whichever comes first, and the oldest is the first to go.
static void check_joined_age(void) {
    struct shard *other = &pma_pageheap.shards[1];
    mark(600, 101, AWAY);
    pma_shard_count_live(shard, -101);
    for (int longer_first = 0; longer_first < 2; longer_first++) {
        join_aged(other, 700, 1, 3000);
        join_aged(other, 600, longer_first ? 20 : 3, longer_first ? 1000 : 2000);
        join_aged(other, longer_first ? 620 : 603, longer_first ? 3 : 20,
                  longer_first ? 2000 : 1000);
        struct run *joined = pagemap_find(address_of(600));
        REQUIRE(joined != NULL && joined->npages == 23);
        CHECK_EQ(joined->age, 1000);
        CHECK(other->oldest == joined && other->oldest->newer == other->newest);
        CHECK_EQ(other->newest->age, 3000);
        CHECK_EQ(other->due, 1000 + PMA_DIRTY_AGE);
        for (struct run *run; (run = other->oldest) != NULL;) {
            pma_shard_remove(other, run);
            pma_shard_give_descriptor(other, run);
        }
    }
    mark(600, 101, LIVE);
    pma_shard_count_live(shard, 101);
}

int main(void) {
    test_begin(60);
    struct dice dice = { test_seed() };
    pma_os_init();
    pma_random_set_seed(dice_draw(&dice));
    pma_pageheap_init(2);
    shard = &pma_pageheap.shards[0];
    start = (uintptr_t)pma_os_map(NULL, (PAGES + 16) << pma_page_shift);
    REQUIRE(start != 0 && pma_pagemap_prepare(start, (PAGES + 16) << pma_page_shift, 0));
    // A place in the middle of an alignment, whatever the kernel chose.
    start = align_up(start, 16 << pma_page_shift);
    lock_lock(&shard->lock);
    pma_shard_count_live(shard, PAGES);
    mark(0, PAGES, LIVE);
    check_neighbour();
    check_lost();
    check_may_grow();
    check_cut_refused();
    check_due();
    check_joined_age();
    check_at_random(&dice);
    lock_unlock(&shard->lock);
    return test_end();
}

// pagemap.c - what is entered is found, every other address leads nowhere, and no address is
// refused.
//
// The page map never touches what it describes, so that nothing needs to be mapped there.
#include <config.h>

#include "base.h"
#include "harness.h"
#include "lock.h"
#include "os.h"
#include "pagemap.h"
#include "probe.h"
#include "run.h"

#include <pthread.h>

// Two leaves meet here.
#define BORDER ((uintptr_t)5 << 40)
#define LEAF_SPAN ((size_t)1 << PMA_LEAF_SHIFT)

static struct run some PMA_ALIGNED(PMA_APART);
static struct run other PMA_ALIGNED(PMA_APART);

// ---- addresses of all kinds

static void check_wild(void) {
    CHECK(pagemap_find(0) == NULL);
    for (unsigned bit = 0; bit < 64; bit++) {
        uintptr_t address = (uintptr_t)1 << bit;
        CHECK(pagemap_find(address) == NULL);
        CHECK(pagemap_find(address - 1) == NULL);
        CHECK(pagemap_find(-address) == NULL);
        CHECK(pma_pagemap_find_cover(address) == NULL);
        CHECK(pma_pagemap_find_cover(-address) == NULL);
    }
}

static void check_limits(void) {
    uintptr_t top = (uintptr_t)1 << PMA_ADDRESS_BITS;
    CHECK(!pma_pagemap_prepare(top, pma_page_size, 0));
    CHECK(!pma_pagemap_prepare(top - pma_page_size, 2 * pma_page_size, 0));
    CHECK(!pma_pagemap_prepare((uintptr_t)0 - pma_page_size, pma_page_size, 0));
    REQUIRE(pma_pagemap_prepare(top - pma_page_size, pma_page_size, 0));
    pma_pagemap_fill(top - pma_page_size, pma_page_size, &some);
    CHECK(pagemap_find(top - 1) == &some);
    CHECK(pagemap_find(top) == NULL);
    CHECK(pagemap_find(top - pma_page_size - 1) == NULL);
    pma_pagemap_fill(top - pma_page_size, pma_page_size, NULL);
    REQUIRE(pma_pagemap_prepare(0, pma_page_size, 0));
    pagemap_set(0, &some);
    CHECK(pagemap_find(PMA_GRANULE - 1) == &some);
    CHECK(pagemap_find(PMA_GRANULE) == NULL);
    pagemap_set(0, NULL);
}

// ---- ranges

static void check_fill(void) {
    size_t size = 8 * pma_page_size;
    uintptr_t start = BORDER - size / 2;
    REQUIRE(pma_pagemap_prepare(start, size, 0));
    CHECK(pagemap_find(start) == NULL && pagemap_find(start + size - 1) == NULL);
    pma_pagemap_fill(start, size, &some);
    for (uintptr_t at = start; at < start + size; at += PMA_GRANULE / 4) {
        CHECK(pagemap_find(at) == &some);
    }
    CHECK(pagemap_find(start - 1) == NULL);
    CHECK(pagemap_find(start + size) == NULL);
    pagemap_set(BORDER, &other);
    CHECK(pagemap_find(BORDER) == &other && pagemap_find(BORDER + PMA_GRANULE - 1) == &other);
    CHECK(pagemap_find(BORDER - 1) == &some);
    CHECK(pagemap_find(BORDER + PMA_GRANULE) == &some);
    pma_pagemap_fill(start, size, NULL);
    for (uintptr_t at = start - size; at < start + 2 * size; at += PMA_GRANULE) {
        CHECK(pagemap_find(at) == NULL);
    }
}

// The first page and the last granule, of runs of one page, two and many.
static void check_ends(void) {
    for (size_t npages = 1; npages <= 4; npages++) {
        size_t size = npages * pma_page_size;
        uintptr_t start = BORDER - pma_page_size;
        REQUIRE(pma_pagemap_prepare(start, size, 0));
        pma_pagemap_set_ends(start, size, &some);
        for (uintptr_t at = start - PMA_GRANULE; at < start + size + PMA_GRANULE;
             at += PMA_GRANULE) {
            bool first = at >= start && at < start + pma_page_size;
            bool last = at == start + size - PMA_GRANULE;
            CHECK(pagemap_find(at) == (first || last ? &some : NULL));
        }
        pma_pagemap_set_ends(start, size, NULL);
        CHECK(pagemap_find(start) == NULL && pagemap_find(start + size - 1) == NULL);
    }
}

// ---- what covers an address

static void check_cover(void) {
    uintptr_t start = BORDER + 3 * LEAF_SPAN - pma_page_size;
    size_t size = 4 * LEAF_SPAN;
    // Only the ends are prepared, as huge blocks do: whole leaves between them are never made.
    REQUIRE(pma_pagemap_prepare(start, pma_page_size, 0));
    REQUIRE(pma_pagemap_prepare(start + size - PMA_GRANULE, PMA_GRANULE, 0));
    pma_pagemap_set_ends(start, size, &some);
    for (uintptr_t at = start; at < start + size; at += LEAF_SPAN / 8 + 12345) {
        CHECK(pma_pagemap_find_cover(at) == &some);
    }
    CHECK(pma_pagemap_find_cover(start + size - 1) == &some);
    REQUIRE(pma_pagemap_prepare(start + LEAF_SPAN, PMA_GRANULE, 0));
    pagemap_set(start + LEAF_SPAN, &other);
    CHECK(pma_pagemap_find_cover(start + LEAF_SPAN - 1) == &some);
    CHECK(pma_pagemap_find_cover(start + LEAF_SPAN) == &other);
    CHECK(pma_pagemap_find_cover(start + LEAF_SPAN + PMA_GRANULE) == &other);
    pagemap_set(start + LEAF_SPAN, NULL);
    pma_pagemap_set_ends(start, size, NULL);
    CHECK(pma_pagemap_find_cover(start + size) == NULL);
}

// ---- walking

#define WALKED 200

static struct run walked[WALKED] PMA_ALIGNED(PMA_APART);
static unsigned visits[WALKED];

static void count_visit(struct run *run, void *context) {
    CHECK(context == &visits);
    REQUIRE(run >= walked && run < walked + WALKED);
    visits[run - walked]++;
}

static void enter(size_t i, bool whole, struct run *run) {
    size_t size = (size_t)walked[i].npages << pma_page_shift;
    if (whole) {
        pma_pagemap_fill(walked[i].start, size, run);
    } else {
        pma_pagemap_set_ends(walked[i].start, size, run);
    }
}

// Slabs and other runs over several leaves, each met once however many of its granules are entered.
static void check_walk(struct dice *dice) {
    // The first begins where a leaf does.
    uintptr_t at = BORDER + 16 * LEAF_SPAN;
    bool whole[WALKED];
    pma_pagemap_walk(count_visit, &visits);
    for (size_t i = 0; i < WALKED; i++) {
        at += i > 0 && dice_below(dice, 3) == 0 ? dice_below(dice, LEAF_SPAN) : 0;
        at = align_up(at, pma_page_size);
        walked[i].start = at;
        walked[i].npages = 1 + (uint32_t)dice_below(dice, 20);
        size_t size = (size_t)walked[i].npages << pma_page_shift;
        REQUIRE(pma_pagemap_prepare(at, size, 0));
        at += size;
        whole[i] = dice_below(dice, 2) == 0;
        enter(i, whole[i], &walked[i]);
    }
    pma_pagemap_walk(count_visit, &visits);
    for (size_t i = 0; i < WALKED; i++) {
        CHECK_EQ(visits[i], 1);
        if (i % 2 == 0) {
            enter(i, whole[i], NULL);
        }
    }
    pma_pagemap_walk(count_visit, &visits);
    for (size_t i = 0; i < WALKED; i++) {
        CHECK_EQ(visits[i], 1 + i % 2);
        enter(i, whole[i], NULL);
    }
}

// ---- at random, against an array

#define PAGES 4096

static void check_at_random(struct dice *dice) {
    static struct run *shadow[PAGES];
    uintptr_t start = BORDER + 64 * LEAF_SPAN - PAGES / 2 * PMA_GRANULE;
    unsigned rounds = 20000 / slow_factor();
    REQUIRE(pma_pagemap_prepare(start, PAGES * PMA_GRANULE, 0));
    for (unsigned round = 0; round < rounds; round++) {
        size_t from = dice_below(dice, PAGES);
        size_t count = 1 + dice_below(dice, size_min(PAGES - from, 50));
        struct run *run = dice_below(dice, 3) == 0 ? NULL : &walked[dice_below(dice, WALKED)];
        pma_pagemap_fill(start + from * PMA_GRANULE, count * PMA_GRANULE, run);
        for (size_t i = from; i < from + count; i++) {
            shadow[i] = run;
        }
        size_t looked = dice_below(dice, PAGES);
        uintptr_t address = start + looked * PMA_GRANULE + dice_below(dice, PMA_GRANULE);
        CHECK(pagemap_find(address) == shadow[looked]);
        while (looked > 0 && shadow[looked] == NULL) {
            looked--;
        }
        CHECK(pma_pagemap_find_cover(address) == shadow[looked]);
    }
    pma_pagemap_fill(start, PAGES * PMA_GRANULE, NULL);
}

// ---- failures

// Each call that preparing needs is refused in turn: nothing may be entered then, and the next try
// does the rest.
static void check_refused(void) {
    uintptr_t start = BORDER + 128 * LEAF_SPAN - pma_page_size;
    size_t size = 2 * pma_page_size;
    uint64_t calls = 0;
    bool ready = false;
    for (uint64_t n = 1; !ready; n++) {
        pma_os_fail_at(1, true);
        CHECK(!pma_pagemap_prepare(start, size, 0));
        uint64_t before = pma_os_calls();
        pma_os_fail_at(n, false);
        ready = pma_pagemap_prepare(start, size, 0);
        calls += pma_os_calls() - before;
        pma_os_fail_at(0, false);
        CHECK(pagemap_find(start) == NULL);
        CHECK(pagemap_find(start + size - 1) == NULL);
        REQUIRE(n < 20);
    }
    CHECK(calls >= 4);
    pma_pagemap_fill(start, size, &some);
    CHECK(pagemap_find(start) == &some && pagemap_find(start + size - 1) == &some);
    pma_pagemap_fill(start, size, NULL);
    // What is ready stays so without any call.
    uint64_t before = pma_os_calls();
    CHECK(pma_pagemap_prepare(start, size, 0));
    CHECK_EQ(pma_os_calls(), before);
    CHECK(pma_lock_none_held());
}

// A leaf costs address space; what can be written of it is what was prepared.
static void check_thrift(void) {
    // The fifth piece of a leaf, and nothing of its neighbours.
    size_t entries = PMA_LEAF_PIECE / sizeof(uintptr_t);
    uintptr_t start = BORDER + 256 * LEAF_SPAN + 4 * entries * PMA_GRANULE;
    REQUIRE(pma_pagemap_prepare(start, entries * PMA_GRANULE, 0));
    struct leaf *leaf = pagemap_leaf(start >> PMA_LEAF_SHIFT);
    REQUIRE(leaf != NULL);
    CHECK(is_writable(&leaf->entries[4 * entries]));
    CHECK(is_writable(&leaf->entries[5 * entries - 1]));
    CHECK(!is_writable(&leaf->entries[4 * entries - 1]));
    CHECK(!is_writable(&leaf->entries[5 * entries]));
    CHECK(is_writable(&leaf->next));
    uintptr_t *far = &leaf->entries[PMA_LEAF_ENTRIES - 1];
    CHECK(is_readable(far) && !is_writable(far));
    CHECK_EQ(leaf->top, start >> PMA_LEAF_SHIFT);
}

// What is prepared ahead lies behind the range or below it, and is none of what is ready anyway.
static void check_ahead(void) {
    size_t entries = PMA_LEAF_PIECE / sizeof(uintptr_t);
    size_t span = entries * PMA_GRANULE;
    uintptr_t start = BORDER + 320 * LEAF_SPAN + 8 * span;
    REQUIRE(pma_pagemap_prepare_below(start, span, 2 * span));
    struct leaf *leaf = pagemap_leaf(start >> PMA_LEAF_SHIFT);
    CHECK_EQ(leaf->pieces, 7u << 6);
    CHECK(is_writable(&leaf->entries[6 * entries]) &&
          !is_writable(&leaf->entries[6 * entries - 1]));
    REQUIRE(pma_pagemap_prepare(start + span, span, 3 * span));
    CHECK_EQ(leaf->pieces, 0x7fu << 6);
    REQUIRE(pma_pagemap_prepare_below(start + span, span, 30 * span));
    CHECK_EQ(leaf->pieces, 0x7fu << 6);
    CHECK(is_writable(&leaf->entries[13 * entries - 1]) &&
          !is_writable(&leaf->entries[13 * entries]));
    // Below address 0 is nothing.
    CHECK(pma_pagemap_prepare_below(PMA_GRANULE, PMA_GRANULE, LEAF_SPAN));
}

// ---- threads

#define LOOKERS 2

static uint32_t stop; // atomic

// Whatever a reader sees is an entry of some time.
static void *thread_look(void *argument) {
    uintptr_t start = (uintptr_t)argument;
    while (__atomic_load_n(&stop, __ATOMIC_RELAXED) == 0) {
        for (size_t i = 0; i < 64; i++) {
            struct run *run = pagemap_find(start + i * LEAF_SPAN);
            CHECK(run == NULL || run == &some || run == &other);
        }
        struct run *cover = pma_pagemap_find_cover(start + LEAF_SPAN);
        CHECK(cover == NULL || cover == &some || cover == &other);
    }
    return NULL;
}

static void *thread_enter(void *argument) {
    uintptr_t start = (uintptr_t)argument;
    for (size_t i = 0; i < 64; i++) {
        uintptr_t at = start + i * LEAF_SPAN;
        REQUIRE(pma_pagemap_prepare(at, PMA_GRANULE, 0));
        for (int round = 0; round < 50; round++) {
            pagemap_set(at, round % 2 == 0 ? &some : &other);
            CHECK(pagemap_find(at) == (round % 2 == 0 ? &some : &other));
        }
        pagemap_set(at, NULL);
    }
    return NULL;
}

// Two writers make the same leaves, each entering granules of its own; two readers look meanwhile.
static void check_threads(void) {
    pthread_t threads[LOOKERS + 2];
    uintptr_t start = BORDER + 512 * LEAF_SPAN;
    for (size_t i = 0; i < LOOKERS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, thread_look, (void *)start) == 0);
    }
    for (size_t i = LOOKERS; i < LOOKERS + 2; i++) {
        void *place = (void *)(start + i * 100 * PMA_GRANULE);
        REQUIRE(pthread_create(&threads[i], NULL, thread_enter, place) == 0);
    }
    for (size_t i = LOOKERS + 2; i-- > 0;) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
        if (i == LOOKERS) {
            __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
        }
    }
}

int main(void) {
    test_begin(60);
    struct dice dice = { test_seed() };
    pma_os_init();
    check_wild();
    check_fill();
    check_ends();
    check_cover();
    check_walk(&dice);
    check_at_random(&dice);
    check_refused();
    check_thrift();
    check_ahead();
    check_threads();
    check_limits();
    return test_end();
}

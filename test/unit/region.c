// region.c - the heap grows in few steps and little ahead of use, and takes what it can get.
#include <config.h>

#include "base.h"
#include "harness.h"
#include "limits.h"
#include "lock.h"
#include "os.h"
#include "pagemap.h"
#include "probe.h"
#include "region.h"
#include "run.h"
#include "tune.h"

#include <pthread.h>

static struct run run PMA_ALIGNED(PMA_APART);
static size_t handed; // bytes that the test has

static struct extent take(size_t need, size_t want) {
    struct extent extent = pma_region_take(need, want);
    handed += extent.size;
    return extent;
}

static void check_extent(struct extent extent, size_t want) {
    CHECK(extent.size >= pma_page_size && extent.size <= want);
    CHECK_EQ((extent.start | extent.size) % pma_page_size, 0);
    for (size_t at = 0; at < extent.size; at += pma_page_size) {
        unsigned char *page = (unsigned char *)extent.start + at;
        CHECK(page[0] == 0 && page[pma_page_size - 1] == 0);
        page[0] = page[pma_page_size - 1] = 1;
    }
    pma_pagemap_fill(extent.start, extent.size, &run);
    CHECK(pagemap_find(extent.start + extent.size - 1) == &run);
    pma_pagemap_fill(extent.start, extent.size, NULL);
    CHECK_AT_MOST(handed, pma_region_committed());
    CHECK(pma_lock_none_held());
}

// ---- growth

// What may be ahead of use when so much is committed: with one thread a step, and from the step on
// at which they stop doubling no more than that; with several a step for those who come, and one
// that is taken before it is needed.
static size_t ahead_most(size_t committed, bool shared) {
    if (!shared) {
        size_t step =
            size_max(size_max(PMA_STEP_MAX, 2 * pma_page_size), committed / PMA_STEP_FRACTION);
        return size_min(handed, step + pma_page_size);
    }
    size_t rising = size_min(committed / PMA_STEP_RISE_SHARED, PMA_STEP_MAX_SHARED);
    size_t step =
        size_max(size_max(rising, PMA_STEP_MIN_SHARED), committed / PMA_STEP_FRACTION_SHARED);
    return 2 * step + pma_page_size;
}

// Page by page to 256 MiB.
static void grow(void *argument) {
    size_t target = ((size_t)256 << 20) / slow_factor();
    uint64_t calls = pma_os_calls();
    size_t steps = 0;
    bool shared = argument != NULL;
    if (shared) {
        pma_region_share();
    }
    CHECK_EQ(pma_region_is_shared(), shared);
    for (size_t committed = 0; committed < target; committed = pma_region_committed()) {
        struct extent extent = take(pma_page_size, pma_page_size);
        REQUIRE(extent.size == pma_page_size);
        size_t now = pma_region_committed();
        steps += now != committed;
        CHECK_AT_MOST(now - handed, ahead_most(now, shared));
        // Shared, the heap is ready before it is asked. Where a checker leaves room for short
        // regions only, each of them ends without.
        CHECK(!shared || now > handed || IS_SANITIZED);
    }
    if (IS_SANITIZED) {
        return;
    }
    // 5 MiB in steps of 128 KiB, and 80 for each factor e from there to 256 MiB; a step is one call
    // for the pages, and now and then one for the page map. Shared: 8 of 1 MiB, 8 for each factor e
    // to 192 MiB, 3 of 24 MiB.
    size_t most = shared ? 8 + 8 * 4 + 4 + 8 : 40 + 80 * 4 + 20;
    CHECK_AT_MOST(steps, most);
    CHECK_AT_MOST(pma_os_calls() - calls, 3 * most);
    CHECK(pma_lock_none_held());
}

static void start_small(void *argument) {
    (void)argument;
    struct extent extent = take(pma_page_size, pma_page_size);
    CHECK_AT_MOST(pma_region_committed(), 2 * pma_page_size);
    check_extent(extent, pma_page_size);
}

// ---- extents

#define EXTENTS 2000

static struct extent extents[EXTENTS];

static int extent_order(const void *a, const void *b) {
    const struct extent *left = a;
    const struct extent *right = b;
    return left->start < right->start ? -1 : left->start > right->start;
}

static void check_apart(size_t count) {
    qsort(extents, count, sizeof(extents[0]), extent_order);
    for (size_t i = 1; i < count; i++) {
        CHECK(extents[i - 1].start + extents[i - 1].size <= extents[i].start);
    }
}

static void take_at_random(void *argument) {
    struct dice *dice = argument;
    size_t count = 0;
    size_t times = 0;
    size_t wanted = EXTENTS * PMA_GRANULE / pma_page_size / slow_factor();
    while (count < wanted) {
        size_t need = pma_page_size << dice_below(dice, dice_below(dice, 50) == 0 ? 10 : 5);
        size_t want = need + pma_page_size * dice_below(dice, 64);
        struct extent extent = take(need, want);
        REQUIRE(extent.size > 0);
        // At the end of a region there may be fewer pages; asked again, the next region has them.
        times = extent.size < need ? times + 1 : 0;
        CHECK_AT_MOST(times, 1);
        check_extent(extent, want);
        extents[count++] = extent;
    }
    check_apart(count);
}

// Where something else lies behind a region, another one is begun; the last pages are handed out
// before, though they may be fewer than were asked for.
static void take_before_walls(void *argument) {
    (void)argument;
    size_t fewer = 0;
    for (size_t walls = 0; walls < 12; walls++) {
        size_t need = (5 + walls % 4) * pma_page_size;
        struct extent extent = take(pma_page_size, pma_page_size);
        REQUIRE(extent.size > 0);
        uintptr_t start = extent.start;
        uintptr_t wall = start + pma_page_size;
        while (pma_os_reserve((void *)wall, pma_page_size) == NULL) {
            wall += pma_page_size;
        }
        do {
            extent = take(need, need);
            REQUIRE(extent.size > 0);
            check_extent(extent, need);
            fewer += extent.size < need;
        } while (extent.start > start && extent.start < wall);
    }
    CHECK(fewer > 0);
    CHECK_AT_MOST(pma_region_committed() - handed,
                  size_max(PMA_STEP_MAX, 2 * pma_page_size) + pma_page_size);
}

// ---- giving back

static void give_top(void *argument) {
    (void)argument;
    struct extent below = take(pma_page_size, pma_page_size);
    struct extent top = take(8 * pma_page_size, 8 * pma_page_size);
    while (top.start != below.start + below.size || top.size != 8 * pma_page_size) {
        below = top;
        top = take(8 * pma_page_size, 8 * pma_page_size);
    }
    check_extent(below, below.size);
    check_extent(top, top.size);
    CHECK(!pma_region_give(below));
    CHECK(*(unsigned char *)below.start == 1);
    size_t committed = pma_region_committed();
    pma_os_fail_at(1, true);
    CHECK(!pma_region_give(top));
    pma_os_fail_at(0, false);
    CHECK_EQ(pma_region_committed(), committed);
    CHECK(is_writable((void *)top.start));
    CHECK(pma_region_give(top));
    CHECK_AT_MOST(pma_region_committed(), committed - top.size);
    CHECK(!is_readable((void *)top.start));
    CHECK(!is_readable((void *)(top.start + top.size - 1)));
    CHECK(is_writable((void *)below.start) && *(unsigned char *)below.start == 1);
    handed -= top.size;
    CHECK(pma_region_give(below));
    handed -= below.size;
    // The same address space again, and zero.
    struct extent again = take(4 * pma_page_size, 4 * pma_page_size);
    CHECK_EQ(again.start, below.start);
    check_extent(again, 4 * pma_page_size);
}

// ---- failures

// Whatever call is refused, and for how long: an extent is good, or there is none and the next try
// succeeds.
static void take_refused(void *argument) {
    struct dice *dice = argument;
    for (uint64_t n = 1; n <= 40; n++) {
        for (int forever = 0; forever < 2; forever++) {
            size_t need = pma_page_size << dice_below(dice, 6);
            pma_os_fail_at(n, forever);
            struct extent extent = take(need, 2 * need);
            pma_os_fail_at(0, false);
            CHECK(extent.size > 0 || n < 30 || forever);
            if (extent.size > 0) {
                check_extent(extent, 2 * need);
            }
            extent = take(need, need);
            REQUIRE(extent.size > 0);
            check_extent(extent, need);
        }
    }
    // Nothing at all from the kernel: what is ready, and then no more.
    pma_os_fail_at(1, true);
    struct extent extent;
    while ((extent = take(pma_page_size, pma_page_size)).size > 0) {
        check_extent(extent, pma_page_size);
    }
    CHECK_EQ(pma_region_committed() - handed, 0);
    CHECK_EQ(take(pma_page_size, pma_page_size).size, 0);
    CHECK(pma_lock_none_held());
}

// Steps shrink under a limit until one page is refused: nearly all that the limit leaves is used.
static void take_under_limit(int resource) {
    size_t more = (size_t)8 << 20;
    struct extent extent = take((size_t)1 << 20, (size_t)1 << 20);
    REQUIRE(extent.size > 0);
    size_t before = pma_region_committed();
    limit_more(resource, more);
    while ((extent = take(pma_page_size, pma_page_size)).size > 0) {
        REQUIRE(handed <= before + 2 * more);
    }
    CHECK_EQ(pma_region_committed(), handed);
    // A leaf of the page map and a reservation may be among it.
    CHECK_AT_MOST(before + more / 2, handed);
    CHECK_EQ(take(4 * pma_page_size, 4 * pma_page_size).size, 0);
}

static void take_under_as(void *argument) {
    (void)argument;
    take_under_limit(RLIMIT_AS);
}

static void take_under_data(void *argument) {
    (void)argument;
    take_under_limit(RLIMIT_DATA);
}

// ---- address space

static void check_reserve(void) {
    uintptr_t places[16];
    size_t size = 4 * pma_page_size;
    for (size_t i = 0; i < 16; i++) {
        char *start = pma_region_reserve_somewhere(size);
        REQUIRE(start != NULL);
        places[i] = (uintptr_t)start;
        CHECK_EQ(places[i] % pma_page_size, 0);
        CHECK(places[i] >= PMA_ADDRESS_LOWEST);
        CHECK((places[i] + size) >> PMA_ADDRESS_BITS == 0);
        CHECK(!is_readable(start) && !is_readable(start + size - 1));
        CHECK(pma_os_commit(start, size) && is_zero(start, size));
        for (size_t j = 0; j < i; j++) {
            uintptr_t distance =
                places[i] > places[j] ? places[i] - places[j] : places[j] - places[i];
            CHECK(distance >= size);
            // Some 2^35 pages to choose from: two of 16 that lie within 1 GiB are met once in 1000
            // runs. Where a checker leaves little room the kernel chooses.
            CHECK(IS_SANITIZED || is_under_valgrind() || distance > (uintptr_t)1 << 24);
        }
    }
    for (size_t i = 0; i < 16; i++) {
        CHECK(pma_os_unmap((void *)places[i], size));
    }
    pma_os_fail_at(1, true);
    CHECK(pma_region_reserve_somewhere(size) == NULL);
    pma_os_fail_at(0, false);
    CHECK(pma_region_reserve_somewhere(SIZE_MAX / 2 & ~(PMA_PAGE_MAX - 1)) == NULL);
}

// ---- threads

#define THREADS 3

static void *thread_take(void *argument) {
    struct extent *own = argument;
    struct dice dice = { (uintptr_t)argument };
    for (size_t i = 0; i < EXTENTS / THREADS; i++) {
        size_t need = pma_page_size << dice_below(&dice, 5);
        own[i] = pma_region_take(need, need);
        REQUIRE(own[i].size > 0);
        *(unsigned char *)own[i].start = 1;
    }
    return NULL;
}

static void check_threads(void) {
    pthread_t threads[THREADS];
    size_t count = EXTENTS / THREADS;
    size_t sum = 0;
    pma_region_share();
    for (size_t i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, thread_take, extents + i * count) == 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    for (size_t i = 0; i < THREADS * count; i++) {
        sum += extents[i].size;
    }
    CHECK_AT_MOST(sum, pma_region_committed());
    check_apart(THREADS * count);
}

// Each in a child, where there is no region yet.
static void check_in_child(void (*body)(void *), void *argument, const char *what) {
    struct child_end end = run_child(body, argument, 60);
    expect_exit(&end, 0, what);
}

int main(void) {
    test_begin(120);
    struct dice dice = { test_seed() };
    pma_os_init();
    CHECK_EQ(pma_region_committed(), 0);
    check_in_child(start_small, NULL, "the first page");
    check_in_child(grow, NULL, "growth");
    check_in_child(grow, &dice, "growth for several threads");
    check_in_child(take_at_random, &dice, "extents");
    check_in_child(take_before_walls, NULL, "walls");
    check_in_child(give_top, NULL, "giving back");
    check_in_child(take_refused, &dice, "calls that fail");
    if (limits_work()) {
        check_in_child(take_under_as, NULL, "a limit on address space");
        check_in_child(take_under_data, NULL, "a limit on memory");
    }
    check_reserve();
    check_threads();
    return test_end();
}

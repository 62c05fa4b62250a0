// pageheap.c - runs by the page: exact, apart, aligned, zero where it says so, and nothing lost
// when the kernel refuses.
#include <config.h>

#include "base.h"
#include "census.h"
#include "harness.h"
#include "limits.h"
#include "lock.h"
#include "meta.h"
#include "os.h"
#include "pageheap.h"
#include "pagemap.h"
#include "probe.h"
#include "purge.h"
#include "random.h"
#include "region.h"

#include <pthread.h>

#define SHARDS 3
#define BLOCKS 300

// What the test has taken: by value, or with a descriptor.
struct block {
    struct pages pages; // npages 0: an empty place
    struct run *run;
    uint64_t mark;
};

static struct block blocks[BLOCKS];
static struct stream stream;
static struct census census;
static size_t live;     // pages in blocks
static size_t most_all; // pages that the shards had at most; they never get fewer
static unsigned nshards;

// The linker puts this in the place of pma_meta_take, see local.mk.
void *__real_pma_meta_take(enum meta_kind kind, size_t size, size_t alignment);
void *__wrap_pma_meta_take(enum meta_kind kind, size_t size, size_t alignment);
static bool meta_refuses;

void *__wrap_pma_meta_take(enum meta_kind kind, size_t size, size_t alignment) {
    return meta_refuses ? NULL : __real_pma_meta_take(kind, size, alignment);
}

// ---- marks

static uint64_t *page_word(const struct block *block, size_t page) {
    return (uint64_t *)(block->pages.start + (page << pma_page_shift));
}

// A word at the beginning and at the end of each page says whose it is.
static void block_mark(struct block *block, uint64_t mark) {
    block->mark = mark;
    for (size_t page = 0; page < block->pages.npages; page++) {
        uint64_t *word = page_word(block, page);
        word[0] = word[pma_page_size / 8 - 1] = mark ^ page;
    }
}

static void block_check(const struct block *block) {
    size_t wrong = 0;
    for (size_t page = 0; page < block->pages.npages; page++) {
        const uint64_t *word = page_word(block, page);
        wrong += word[0] != (block->mark ^ page) || word[pma_page_size / 8 - 1] != word[0];
    }
    CHECK_SAY(wrong == 0, "%zu pages at %#zx are somebody else's, too", wrong,
              (size_t)block->pages.start);
}

// The marks' places, and some between.
static void block_check_zero(const struct block *block) {
    for (size_t page = 0; page < block->pages.npages; page++) {
        uint64_t bits = page_word(block, page)[pma_page_size / 8 - 1];
        for (size_t i = 0; i < pma_page_size / 8; i += pma_page_size / 64) {
            bits |= page_word(block, page)[i];
        }
        CHECK_EQ(bits, 0);
    }
}

// ---- steps

static void step_take(struct block *block, struct dice *dice) {
    size_t npages = 1 + dice_below(dice, dice_below(dice, 20) == 0 ? 300 : 12);
    size_t align = dice_below(dice, 4) == 0 ? (size_t)1 << dice_below(dice, 6) : 1;
    unsigned shard = (unsigned)dice_below(dice, nshards);
    if (dice_below(dice, 2) == 0) {
        struct run *run = pma_pageheap_take_run(shard, npages, align, &stream);
        if (run == NULL) {
            return;
        }
        block->run = run;
        block->pages = (struct pages){ run->start, run->npages, run->shard, run->zero != 0 };
        pma_pagemap_set_ends(run->start, npages << pma_page_shift, run);
        run->owner = NULL;
        run->base = run->start;
        run_set_kind(run, RUN_LARGE);
    } else if (!pma_pageheap_take(shard, npages, align, &stream, &block->pages)) {
        block->pages.npages = 0;
        return;
    } else {
        // The entries are prepared, as a slab needs them.
        pma_pagemap_fill(block->pages.start, npages << pma_page_shift, NULL);
    }
    CHECK_EQ(block->pages.npages, npages);
    CHECK_EQ(block->pages.start % (align << pma_page_shift), 0);
    CHECK(block->pages.shard < nshards);
    if (block->pages.zero) {
        block_check_zero(block);
    }
    live += npages;
    block_mark(block, dice_draw(dice));
}

static void step_give(struct block *block) {
    block_check(block);
    live -= block->pages.npages;
    if (block->run != NULL) {
        pma_pagemap_set_ends(block->run->start, run_bytes(block->run), NULL);
        pma_pageheap_give_run(block->run);
    } else {
        pma_pageheap_give(block->pages);
    }
    *block = (struct block){ .run = NULL };
}

// Longer or shorter, as large blocks do it: the ends leave the page map before, and enter it after.
static void step_resize(struct block *block, struct dice *dice) {
    struct run *run = block->run;
    size_t old = run->npages;
    size_t npages = 1 + dice_below(dice, 2 * old);
    if (npages == old) {
        return;
    }
    block_check(block);
    pma_pagemap_set_ends(run->start, run_bytes(run), NULL);
    if (npages < old) {
        pma_pageheap_shorten(run, npages);
        CHECK_EQ(run->npages, npages);
    } else if (pma_pageheap_extend(run, npages)) {
        CHECK_EQ(run->npages, npages);
    } else {
        CHECK_EQ(run->npages, old);
    }
    CHECK_EQ(run->start, block->pages.start);
    live += run->npages - old;
    pma_pagemap_set_ends(run->start, run_bytes(run), run);
    block->pages.npages = run->npages;
    block_mark(block, block->mark);
}

// ---- the whole

static void check_all(void) {
    size_t all = 0;
    CHECK(pma_lock_none_held());
    for (unsigned i = 0; i < nshards; i++) {
        struct shard *shard = &pma_pageheap.shards[i];
        lock_lock(&shard->lock);
        CHECK(pma_shard_find_lost(shard));
        lock_unlock(&shard->lock);
        all += shard_pages(shard);
    }
    census_take(&census);
    census_check(&census, live, false);
    CHECK_EQ(census.kinds[RUN_PURGING], 0);
    // Nothing is lost: what was taken from regions once stays in a shard.
    CHECK_AT_MOST(most_all, all);
    most_all = size_max(most_all, all);
    for (size_t i = 0; i < BLOCKS; i++) {
        // No free run is where a block is, nor another block: the marks say the rest.
        uintptr_t start = blocks[i].pages.start;
        size_t bytes = (size_t)blocks[i].pages.npages << pma_page_shift;
        for (size_t at = 0; blocks[i].run == NULL && at < bytes; at += PMA_GRANULE) {
            CHECK(pagemap_find(start + at) == NULL);
        }
    }
}

// fail: how often the kernel refuses one of the next calls, or all of them.
static void step(struct dice *dice, bool fail) {
    struct block *block = &blocks[dice_below(dice, BLOCKS)];
    if (fail && dice_below(dice, 4) == 0) {
        pma_os_fail_at(1 + dice_below(dice, 5), dice_below(dice, 2) == 0);
    }
    size_t die = dice_below(dice, 64);
    if (die == 0) {
        pma_purge(true);
    } else if (die == 1) {
        pma_purge_close();
    } else if (block->pages.npages == 0) {
        step_take(block, dice);
    } else if (block->run != NULL && dice_below(dice, 2) == 0) {
        step_resize(block, dice);
    } else {
        step_give(block);
    }
    pma_os_fail_at(0, false);
}

static void check_at_random(struct dice *dice, bool fail) {
    unsigned rounds = 8000 / slow_factor();
    rounds = pma_page_size > PMA_GRANULE ? rounds / 4 : rounds;
    for (unsigned round = 0; round < rounds; round++) {
        step(dice, fail);
        if (round % 32 == 0) {
            check_all();
        }
    }
    check_all();
}

static void give_all(void) {
    for (size_t i = 0; i < BLOCKS; i++) {
        if (blocks[i].pages.npages != 0) {
            step_give(&blocks[i]);
        }
    }
    check_all();
    CHECK_EQ(live, 0);
}

// ---- exactness

// A request of n pages takes n pages: what is written or promised beyond that is the step of the
// region.
static void take_exactly(void *argument) {
    (void)argument;
    struct pages pages;
    size_t sum = 0;
    size_t before = pma_pageheap.live;
    for (size_t npages = 1; npages < 200; npages++) {
        REQUIRE(pma_pageheap_take(0, npages, 1, &stream, &pages));
        CHECK_EQ(pages.npages, npages);
        sum += npages;
        CHECK_EQ(pma_pageheap.live - before, sum << pma_page_shift);
    }
    // All of it fresh, so all of it zero.
    CHECK(pages.zero);
}

static void check_limits(void) {
    struct pages pages;
    CHECK(!pma_pageheap_take(0, (size_t)1 << 31, 1, &stream, &pages));
    CHECK(!pma_pageheap_take(0, (size_t)1 << 40, 1, &stream, &pages));
    CHECK(!pma_pageheap_take(0, SIZE_MAX >> pma_page_shift, 1, &stream, &pages));
    CHECK(!pma_pageheap_take(0, 1, (size_t)1 << 40, &stream, &pages));
    CHECK(pma_pageheap_take_run(0, (size_t)1 << 31, 1, &stream) == NULL);
    check_all();
}

// ---- other lengths

static struct run *run_take(size_t npages) {
    struct run *run = pma_pageheap_take_run(0, npages, 1, &stream);
    REQUIRE(run != NULL);
    live += npages;
    pma_pagemap_set_ends(run->start, run_bytes(run), run);
    run->owner = NULL;
    run_set_kind(run, RUN_LARGE);
    return run;
}

// The pages behind that a run itself gave, and no more than those: behind them is another run.
static void check_extend(void) {
    struct run *run = run_take(100);
    pma_pagemap_set_ends(run->start, run_bytes(run), NULL);
    pma_pageheap_shorten(run, 60);
    live -= 40;
    pma_pagemap_set_ends(run->start, run_bytes(run), run);
    struct run *behind = pagemap_find(run_end(run));
    REQUIRE(behind != NULL && behind->npages >= 40);
    size_t room = behind->npages;
    check_all();
    CHECK(!pma_pageheap_extend(run, 60 + room + 1));
    CHECK_EQ(run->npages, 60);
    pma_pagemap_set_ends(run->start, run_bytes(run), NULL);
    CHECK(pma_pageheap_extend(run, 61));
    CHECK(pma_pageheap_extend(run, 60 + room));
    pma_pagemap_set_ends(run->start, run_bytes(run), run);
    live += room;
    CHECK_EQ(run->npages, 60 + room);
    check_all();
    // Whatever lies behind it now is not of the same state any more, or not free.
    pma_pagemap_set_ends(run->start, run_bytes(run), NULL);
    live -= run->npages;
    pma_pageheap_give_run(run);
    check_all();
}

static void check_count(void) {
    size_t bytes = pma_pageheap.live;
    size_t cached = pma_pageheap.cached;
    pma_pageheap_count(4096, 0);
    pma_pageheap_count(-96, 100);
    pma_pageheap_count(0, -30);
    CHECK_EQ(pma_pageheap.live, bytes + 4000);
    CHECK_EQ(pma_pageheap.cached, cached + 70);
    pma_pageheap_count(-4000, -70);
    CHECK_EQ(pma_pageheap.live, bytes);
    CHECK_EQ(pma_pageheap.cached, cached);
}

// ---- thrift

// Descriptors come back: however often pages are taken and given, there are no more of them.
static void check_descriptors(void) {
    struct pages pages[8];
    size_t meta = 0;
    for (int round = 0; round < 3000; round++) {
        for (size_t i = 0; i < 8; i++) {
            REQUIRE(pma_pageheap_take(0, 1 + i, 1, &stream, &pages[i]));
        }
        for (size_t i = 0; i < 8; i++) {
            pma_pageheap_give(pages[i]);
        }
        if (round == 10) {
            meta = pma_meta_committed();
        }
    }
    CHECK_EQ(pma_meta_committed(), meta);
    check_all();
}

// Closed runs are opened again before the heap grows.
static void check_reopened(void) {
    struct pages pages;
    size_t npages = 2 * PMA_CLOSE_MIN >> pma_page_shift;
    REQUIRE(pma_pageheap_take(0, npages, 1, &stream, &pages));
    pma_pageheap_give(pages);
    pma_purge(true);
    CHECK(pma_pageheap.shards[0].pages[RUN_CLOSED - RUN_DIRTY] >= npages);
    size_t committed = pma_region_committed();
    REQUIRE(pma_pageheap_take(0, npages, 1, &stream, &pages));
    CHECK_EQ(pma_region_committed(), committed);
    CHECK(pages.zero && is_writable((void *)pages.start));
    pma_pageheap_give(pages);
    check_all();
}

// ---- other shards

// When the kernel refuses more, what is free in any shard must do.
static void take_elsewhere(void *argument) {
    (void)argument;
    struct pages pages;
    REQUIRE(pma_pageheap_take(1, 60, 1, &stream, &pages));
    pma_pageheap_give(pages);
    pma_os_fail_at(1, true);
    REQUIRE(pma_pageheap_take(0, 30, 1, &stream, &pages));
    CHECK_EQ(pages.shard, 1);
    pma_os_fail_at(0, false);
    // A run returns to its own.
    size_t before = pma_pageheap.shards[1].live_pages;
    pma_pageheap_give(pages);
    CHECK_EQ(pma_pageheap.shards[1].live_pages, before - 30);
}

// The first failure is refused, and everything is as before.
static void take_nothing(void *argument) {
    (void)argument;
    struct pages pages;
    pma_os_fail_at(1, true);
    CHECK(!pma_pageheap_take(0, 1, 1, &stream, &pages));
    CHECK(pma_pageheap_take_run(0, 1, 1, &stream) == NULL);
    pma_os_fail_at(0, false);
    check_all();
    REQUIRE(pma_pageheap_take(0, 1, 1, &stream, &pages));
}

// With a single descriptor left, and no more to be had, the heap does not grow for a run that
// cannot be cut.
static void take_without_descriptors(void *argument) {
    (void)argument;
    static struct pages taken[200];
    struct pages pages;
    struct shard *shard = &pma_pageheap.shards[0];
    for (size_t i = 0; i < 200; i++) {
        REQUIRE(pma_pageheap_take(0, 1, 1, &stream, &taken[i]));
    }
    size_t committed = pma_region_committed();
    meta_refuses = true;
    for (size_t i = 0; shard->unused != NULL && shard->unused->next != NULL; i += 2) {
        REQUIRE(i < 200);
        pma_pageheap_give(taken[i]);
    }
    live = shard->live_pages;
    CHECK(!pma_pageheap_take(0, 3, 16, &stream, &pages));
    CHECK_EQ(pma_region_committed(), committed);
    check_all();
    meta_refuses = false;
    CHECK(pma_pageheap_take(0, 3, 16, &stream, &pages));
}

// Under a limit nearly everything can be had, page by page, and comes back whole.
static void take_under_limit(void *argument) {
    (void)argument;
    static struct pages taken[8192];
    size_t more = (size_t)16 << 20;
    size_t count = 0;
    limit_more(RLIMIT_DATA, more);
    while (count < 8192 && pma_pageheap_take(0, 1, 1, &stream, &taken[count])) {
        *(char *)taken[count++].start = 1;
    }
    CHECK(count < 8192);
    CHECK_AT_MOST(more - more / 8, count << pma_page_shift);
    for (size_t i = 0; i < count; i++) {
        pma_pageheap_give(taken[i]);
    }
    pma_purge(true);
    pma_purge_close();
    // One run of half of that, where single pages were.
    REQUIRE(pma_pageheap_take(0, count / 2, 1, &stream, &taken[0]));
    CHECK(is_writable((void *)taken[0].start));
    pma_pageheap_give(taken[0]);
    check_all();
}

// ---- threads

static struct block thread_blocks[3][40];

static void *thread_work(void *argument) {
    struct block *own = argument;
    struct dice dice = { (uintptr_t)argument };
    struct stream draws;
    memset(&draws, 0, sizeof(draws));
    unsigned rounds = 4000 / slow_factor();
    for (unsigned round = 0; round < rounds; round++) {
        struct block *block = &own[dice_below(&dice, 40)];
        if (block->pages.npages != 0) {
            block_check(block);
            pma_pageheap_give(block->pages);
            block->pages.npages = 0;
            continue;
        }
        REQUIRE(pma_pageheap_take((unsigned)dice_below(&dice, nshards), 1 + dice_below(&dice, 20),
                                  1, &draws, &block->pages));
        block_mark(block, dice_draw(&dice));
    }
    for (size_t i = 0; i < 40; i++) {
        if (own[i].pages.npages != 0) {
            block_check(&own[i]);
            pma_pageheap_give(own[i].pages);
        }
    }
    return NULL;
}

static void check_threads(void) {
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, thread_work, thread_blocks[i]) == 0);
    }
    for (size_t i = 0; i < 3; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    check_all();
}

static void check_in_child(void (*body)(void *), const char *what) {
    struct child_end end = run_child(body, NULL, 60);
    expect_exit(&end, 0, what);
}

int main(void) {
    test_begin(120);
    struct dice dice = { test_seed() };
    pma_os_init();
    pma_random_set_seed(dice_draw(&dice));
    nshards = SHARDS;
    pma_pageheap_init(nshards);
    check_in_child(take_nothing, "no memory at all");
    check_in_child(take_exactly, "exact pages");
    check_in_child(take_elsewhere, "another shard's pages");
    check_in_child(take_without_descriptors, "no descriptors");
    if (limits_work()) {
        check_in_child(take_under_limit, "a limit on memory");
    }
    check_limits();
    check_count();
    check_extend();
    check_descriptors();
    check_reopened();
    check_at_random(&dice, false);
    check_at_random(&dice, true);
    give_all();
    check_threads();
    return test_end();
}

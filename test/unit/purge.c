// purge.c - free memory goes back above the limit, after a while, or when asked, and never more is
// lost than contents.
#include <config.h>

#include "base.h"
#include "census.h"
#include "harness.h"
#include "lock.h"
#include "os.h"
#include "pageheap.h"
#include "probe.h"
#include "purge.h"
#include "random.h"

#include <pthread.h>
#include <sys/mman.h>

static struct stream stream;
static struct census census;

static struct shard *shard_at(unsigned i) {
    return &pma_pageheap.shards[i];
}

static size_t pages_of(size_t bytes) {
    return bytes >> pma_page_shift;
}

// Pages that were written, so that purging has something to do.
static struct pages take(unsigned shard, size_t npages) {
    struct pages pages;
    REQUIRE(pma_pageheap_take(shard, npages, 1, &stream, &pages));
    for (size_t i = 0; i < npages; i++) {
        *(char *)(pages.start + (i << pma_page_shift)) = 1;
    }
    return pages;
}

static size_t live_pages(void) {
    size_t live = 0;
    for (unsigned i = 0; i < pma_pageheap.nshards; i++) {
        live += shard_at(i)->live_pages;
    }
    return live;
}

static void check_all(void) {
    CHECK(pma_lock_none_held());
    census_take(&census);
    census_check(&census, live_pages(), false);
    CHECK_EQ(census.kinds[RUN_PURGING], 0);
}

// What is resident of a run, asked of the kernel.
static size_t resident_pages(const struct pages *pages) {
    size_t bytes = (size_t)pages->npages << pma_page_shift;
    size_t count = 0;
    size_t step = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t at = 0; at < bytes; at += step) {
        unsigned char in = 0;
        count += mincore((void *)(pages->start + at), step, &in) == 0 && (in & 1) != 0;
    }
    return count;
}

// Runs of a length with a live page behind each, so that they do not join when they are given.
#define ROW_MAX 256

static struct {
    struct pages runs[ROW_MAX];
    struct pages walls[ROW_MAX];
    size_t count;
} row;

static void row_take(size_t count, size_t npages) {
    REQUIRE(count <= ROW_MAX);
    row.count = count;
    for (size_t i = 0; i < count; i++) {
        struct pages both = take(0, npages + 1);
        row.runs[i] = row.walls[i] = both;
        row.runs[i].npages = (uint32_t)npages;
        row.walls[i].start += npages << pma_page_shift;
        row.walls[i].npages = 1;
    }
}

static void row_give(void) {
    for (size_t i = 0; i < row.count; i++) {
        pma_pageheap_give(row.runs[i]);
    }
}

static void walls_give(void) {
    for (size_t i = 0; i < row.count; i++) {
        pma_pageheap_give(row.walls[i]);
    }
}

// ---- the limit

static void check_limit(void) {
    CHECK_EQ(pma_purge_limit(), size_max(PMA_DIRTY_MIN, pma_pageheap.live / PMA_DIRTY_FRACTION));
    pma_pageheap_count((ptrdiff_t)1 << 30, 0);
    CHECK_EQ(pma_purge_limit(), pma_pageheap.live / PMA_DIRTY_FRACTION);
    CHECK(pma_purge_limit() >= (size_t)1 << 27);
    pma_pageheap_count(-((ptrdiff_t)1 << 30), 0);
    CHECK_EQ(pma_purge_limit(), PMA_DIRTY_MIN);
}

// However much is freed, never more than the limit stays dirty; what goes is the oldest.
static void keep_limit(void *argument) {
    (void)argument;
    size_t npages = size_max(pages_of(PMA_DIRTY_MIN) / 16, 1);
    row_take(40, npages);
    for (size_t i = 0; i < row.count; i++) {
        pma_pageheap_give(row.runs[i]);
        CHECK_AT_MOST(pma_pageheap.dirty, pma_purge_limit());
    }
    CHECK(pma_pageheap.dirty > 0);
    check_all();
    bool kept = false;
    for (size_t i = 0; i < row.count; i++) {
        size_t resident = resident_pages(&row.runs[i]);
        // From the first that was kept on, all were. The kernel may have given larger pages than
        // were touched.
        CHECK(resident == 0 || resident >= npages);
        CHECK(!kept || resident >= npages);
        kept = resident != 0;
    }
    CHECK(kept);
    walls_give();
    check_all();
}

// ---- age

static void keep_young(void *argument) {
    (void)argument;
    row_take(10, 2);
    row_give();
    size_t dirty = pma_pageheap.dirty;
    pma_purge_if_due(shard_at(0));
    CHECK_EQ(pma_purge(false), 0);
    CHECK_EQ(pma_pageheap.dirty, dirty);
    // Clocks for slow paths are coarse: some milliseconds more.
    struct timespec rest = { 1, 50000000 };
    REQUIRE(nanosleep(&rest, NULL) == 0);
    // Any shard's occasion: the next of this one, or one that looks at all.
    if (argument == NULL) {
        pma_purge(false);
    } else {
        pma_pageheap_give(take(0, 5));
    }
    CHECK_AT_MOST(pma_pageheap.dirty, 5 * pma_page_size);
    for (size_t i = 0; i < row.count; i++) {
        CHECK_EQ(resident_pages(&row.runs[i]), 0);
    }
    check_all();
}

// ---- everything

static size_t sum_of(int kind) {
    size_t sum = 0;
    for (unsigned i = 0; i < pma_pageheap.nshards; i++) {
        sum += shard_at(i)->pages[kind];
    }
    return sum;
}

// More runs than a batch, in two shards, short and long: the short ones are zero, the long ones
// closed.
static void purge_all(void *argument) {
    (void)argument;
    struct pages longer = take(1, pages_of(PMA_CLOSE_MIN) + 1);
    row_take(3 * PMA_PURGE_BATCH, 1);
    row_give();
    pma_pageheap_give(longer);
    size_t dirty = pma_pageheap.dirty;
    CHECK(dirty > 0);
    CHECK_EQ(pma_purge(true), dirty);
    CHECK_EQ(pma_pageheap.dirty, 0);
    CHECK_EQ(sum_of(0), 0);
    CHECK(!is_readable((void *)longer.start));
    for (size_t i = 0; i < row.count; i++) {
        CHECK(is_zero((void *)row.runs[i].start, pma_page_size));
        CHECK_EQ(*(char *)row.walls[i].start, 1);
    }
    check_all();
    CHECK_EQ(pma_purge(true), 0);
    // What was closed is opened again, and known to be zero.
    struct pages again;
    REQUIRE(pma_pageheap_take(1, longer.npages, 1, &stream, &again));
    CHECK(again.zero && is_zero((void *)again.start, (size_t)again.npages << pma_page_shift));
    pma_pageheap_give(again);
    walls_give();
    check_all();
}

// Clean runs of 16 pages and more are closed to make place; shorter ones would cost more mappings
// than they are worth.
static void close_runs(void *argument) {
    (void)argument;
    row_take(8, 16);
    struct pages shorter = take(1, 4);
    struct pages wall = take(1, 1);
    row_give();
    pma_pageheap_give(shorter);
    pma_purge(true);
    // Unless sixteen pages are so long that purging closes them.
    bool is_long = run_bytes(&(struct run){ .npages = 16 }) >= PMA_CLOSE_MIN;
    CHECK_EQ(is_readable((void *)row.runs[0].start), !is_long);
    CHECK_EQ(pma_purge_close(), !is_long);
    for (size_t i = 0; i < row.count; i++) {
        CHECK(!is_readable((void *)row.runs[i].start));
    }
    check_all();
    CHECK(!pma_purge_close());
    // Opened as it is needed.
    row_take(8, 16);
    check_all();
    pma_pageheap_give(wall);
}

// Writable memory that is free and zero is bounded like dirty memory is.
static void keep_clean_limit(void *argument) {
    (void)argument;
    size_t npages = pages_of(PMA_CLOSE_MIN) - 1;
    row_take(8, npages);
    row_give();
    pma_purge(true);
    walls_give();
    pma_purge(true);
    pma_pageheap_give(take(0, 1));
    CHECK_AT_MOST(pma_pageheap.clean, pma_purge_limit());
    check_all();
}

// ---- a kernel that refuses

// The runs stay what they were, can be used, and go another time.
static void purge_refused(void *argument) {
    (void)argument;
    row_take(2 * PMA_PURGE_BATCH, 2);
    struct pages longer = take(1, pages_of(PMA_CLOSE_MIN) + 1);
    row_give();
    pma_pageheap_give(longer);
    size_t dirty = pma_pageheap.dirty;
    pma_os_fail_at(1, true);
    CHECK_EQ(pma_purge(true), 0);
    CHECK(!pma_purge_close());
    // Of clean runs that could not be closed nobody knows whether they still are clean.
    CHECK_AT_MOST(dirty, pma_pageheap.dirty);
    check_all();
    for (uint64_t n = 1; n < 12; n++) {
        pma_os_fail_at(n, false);
        pma_purge(true);
        pma_os_fail_at(n, false);
        pma_purge_close();
        pma_os_fail_at(0, false);
        check_all();
        struct pages pages = take(n % 2, 2 * (size_t)n);
        pma_pageheap_give(pages);
        check_all();
    }
    pma_purge(true);
    CHECK_EQ(pma_pageheap.dirty, 0);
    check_all();
}

// ---- threads

static uint32_t stop; // atomic

static void *thread_use(void *argument) {
    unsigned shard = (unsigned)(uintptr_t)argument;
    struct stream draws;
    memset(&draws, 0, sizeof(draws));
    unsigned rounds = 3000 / slow_factor();
    for (size_t round = 0; round < rounds; round++) {
        struct pages pages[4];
        for (size_t i = 0; i < 4; i++) {
            REQUIRE(pma_pageheap_take(shard, 1 + (round * 7 + i) % 50, 1, &draws, &pages[i]));
            memset((void *)pages[i].start, (int)i, 64);
        }
        for (size_t i = 0; i < 4; i++) {
            CHECK(is_filled((void *)pages[i].start, (int)i, 64));
            pma_pageheap_give(pages[i]);
        }
    }
    return NULL;
}

static void *thread_purge(void *argument) {
    (void)argument;
    while (__atomic_load_n(&stop, __ATOMIC_RELAXED) == 0) {
        pma_purge(true);
        pma_purge_close();
    }
    return NULL;
}

// Two that take and give, one that purges all the time: no run is given out while it is on its way.
static void check_threads(void) {
    pthread_t threads[3];
    REQUIRE(pthread_create(&threads[0], NULL, thread_purge, NULL) == 0);
    for (uintptr_t i = 1; i < 3; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, thread_use, (void *)(i - 1)) == 0);
    }
    for (size_t i = 3; i-- > 0;) {
        if (i == 0) {
            __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
        }
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    check_all();
}

static void check_in_child(void (*body)(void *), void *argument, const char *what) {
    struct child_end end = run_child(body, argument, 60);
    expect_exit(&end, 0, what);
}

int main(void) {
    test_begin(120);
    pma_os_init();
    pma_random_set_seed(test_seed());
    pma_pageheap_init(2);
    check_limit();
    struct pages pages = take(0, 1);
    if (!advice_is_heard((void *)pages.start, pma_page_size)) {
        // Nothing is ever dropped then, and the library knows.
        CHECK_EQ(pma_purge(true), 0);
        check_threads();
        return test_end();
    }
    pma_pageheap_give(pages);
    check_in_child(keep_limit, NULL, "the limit");
    check_in_child(keep_young, NULL, "age, looked at by anybody");
    check_in_child(keep_young, &stream, "age, looked at by the next free");
    check_in_child(purge_all, NULL, "everything");
    check_in_child(close_runs, NULL, "closing");
    check_in_child(keep_clean_limit, NULL, "the limit of clean memory");
    check_in_child(purge_refused, NULL, "calls that fail");
    check_threads();
    return test_end();
}

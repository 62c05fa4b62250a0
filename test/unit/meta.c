// meta.c - memory for descriptors: zeroed, apart, between closed pages, and wiped in a child where
// that was asked for.
#include <config.h>

#include "base.h"
#include "harness.h"
#include "limits.h"
#include "lock.h"
#include "meta.h"
#include "os.h"
#include "probe.h"
#include "tune.h"

#include <pthread.h>

// ---- what is handed out

#define PIECES 20000

static struct piece {
    unsigned char *start;
    size_t size;
} pieces[PIECES];

static int piece_order(const void *a, const void *b) {
    const struct piece *left = a;
    const struct piece *right = b;
    return left->start < right->start ? -1 : left->start > right->start;
}

// Whatever is taken is aligned, zero and writable, and never handed out twice.
static void check_pieces(struct dice *dice) {
    size_t count = PIECES / slow_factor();
    size_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        enum meta_kind kind = (enum meta_kind)dice_below(dice, META_KINDS);
        size_t size = 1 + dice_below(dice, dice_below(dice, 100) == 0 ? 60000 : 400);
        size_t alignment = (size_t)1 << dice_below(dice, 8);
        unsigned char *start = pma_meta_take(kind, size, alignment);
        REQUIRE(start != NULL);
        CHECK_EQ((uintptr_t)start % alignment, 0);
        CHECK(is_zero(start, size));
        memset(start, 0xee, size);
        pieces[i] = (struct piece){ start, size };
        sum += size;
        CHECK_AT_MOST(sum, pma_meta_committed());
        // What is committed ahead of use is a fraction, or little.
        CHECK_AT_MOST(pma_meta_committed(), 2 * sum + 4 * PMA_META_RESERVE);
    }
    CHECK(pma_lock_none_held());
    qsort(pieces, count, sizeof(pieces[0]), piece_order);
    for (size_t i = 1; i < count; i++) {
        CHECK(pieces[i - 1].start + pieces[i - 1].size <= pieces[i].start);
    }
}

// More than a stretch would have, up to some MiB, and the end of it can be used.
static void check_large(void) {
    for (size_t size = PMA_META_RESERVE; size <= 8 * PMA_META_RESERVE; size *= 2) {
        unsigned char *start = pma_meta_take(META_KEPT, size, PMA_APART);
        REQUIRE(start != NULL);
        CHECK(start[0] == 0 && start[size - 1] == 0);
        start[0] = start[size - 1] = 1;
    }
}

// A stretch that holds one piece exactly lies between two closed pages.
static void check_guards(void) {
    size_t size = 64 * PMA_META_RESERVE;
    unsigned char *start = pma_meta_take(META_KEPT, size, PMA_APART);
    REQUIRE(start != NULL);
    REQUIRE((uintptr_t)start % pma_page_size == 0);
    CHECK(is_writable(start) && is_writable(start + size - 1));
    CHECK(!is_readable(start - 1) && !is_readable(start - pma_page_size));
    CHECK(!is_readable(start + size) && !is_readable(start + size + pma_page_size - 1));
}

// Kernel calls are few: 32 MiB in small pieces take some dozens.
static void check_calls(void) {
    uint64_t before = pma_os_calls();
    size_t start = pma_meta_committed();
    while (pma_meta_committed() - start < (size_t)32 << 20) {
        REQUIRE(pma_meta_take(META_KEPT, PMA_APART * 32, PMA_APART) != NULL);
    }
    CHECK_AT_MOST(pma_os_calls() - before, 100);
}

// ---- a child

struct marks {
    unsigned char *kept;
    unsigned char *wiped;
};

static void look_in_child(void *argument) {
    const struct marks *marks = argument;
    CHECK_EQ(*marks->kept, 7);
    CHECK_EQ(*marks->wiped, pma_meta_is_wiped() ? 0 : 7);
    unsigned char *more = pma_meta_take(META_WIPED, 100, 16);
    REQUIRE(more != NULL);
    *more = 1;
}

static void check_child(unsigned char *wiped) {
    struct marks marks = { pma_meta_take(META_KEPT, 16, 16), wiped };
    REQUIRE(marks.kept != NULL && marks.wiped != NULL);
    *marks.kept = *marks.wiped = 7;
    struct child_end end = run_child(look_in_child, &marks, 20);
    expect_exit(&end, 0, "what a child sees");
}

// A kernel that cannot wipe is not taken for one that does. One of the first calls for a new
// stretch asks it to; which one depends on how many places are tried.
enum { UNWIPED = 42 };

static void take_unwiped_at(void *argument) {
    CHECK(pma_meta_is_wiped());
    pma_os_fail_at(*(const uint64_t *)argument, false);
    unsigned char *start = pma_meta_take(META_WIPED, PMA_META_RESERVE, 16);
    pma_os_fail_at(0, false);
    if (!pma_meta_is_wiped() && start != NULL) {
        check_child(start);
        _exit(test_end() == 0 ? UNWIPED : 1);
    }
}

static void take_unwiped(void *argument) {
    (void)argument;
    int seen = 0;
    for (uint64_t n = 1; n < 20; n++) {
        struct child_end end = run_child(take_unwiped_at, &n, 20);
        if (!WIFEXITED(end.status) || WEXITSTATUS(end.status) != UNWIPED) {
            expect_exit(&end, 0, "a call that fails");
        } else {
            seen++;
        }
    }
    // Below a sanitizer's malloc other calls come first.
    CHECK(seen > 0 || IS_SANITIZED);
}

// ---- failures

static void take_refused(void *argument) {
    (void)argument;
    size_t committed = pma_meta_committed();
    pma_os_fail_at(1, true);
    CHECK(pma_meta_take(META_KEPT, 100, 16) == NULL);
    CHECK_EQ(pma_meta_committed(), committed);
    CHECK(pma_lock_none_held());
    for (uint64_t n = 1; n < 12; n++) {
        for (int forever = 0; forever < 2; forever++) {
            size_t size = 2 * PMA_META_RESERVE;
            pma_os_fail_at(n, forever);
            unsigned char *start = pma_meta_take(META_KEPT, size, 16);
            pma_os_fail_at(0, false);
            CHECK(start == NULL || (is_zero(start, size) && is_writable(start + size - 1)));
            start = pma_meta_take(META_KEPT, 2 * PMA_META_RESERVE, 16);
            REQUIRE(start != NULL);
            CHECK(is_zero(start, size));
        }
    }
    CHECK(pma_lock_none_held());
}

// Where large steps are refused, small ones are taken: of what the process may still map, nearly
// all is used.
static void take_under_limit(void *argument) {
    (void)argument;
    size_t taken = 0;
    REQUIRE(pma_meta_take(META_KEPT, 1, 16) != NULL);
    limit_more(RLIMIT_DATA, (size_t)1 << 20);
    while (pma_meta_take(META_KEPT, 1000, 16) != NULL) {
        taken += 1000;
        REQUIRE(taken < (size_t)2 << 20);
    }
    CHECK_AT_MOST(((size_t)1 << 20) - 3 * PMA_PAGE_MAX, taken);
}

// ---- threads

static void *thread_take(void *argument) {
    unsigned char mark = (unsigned char)(uintptr_t)argument;
    enum { COUNT = 2000 };
    unsigned char **taken = calloc(COUNT, sizeof(*taken));
    REQUIRE(taken != NULL);
    for (size_t i = 0; i < COUNT; i++) {
        taken[i] = pma_meta_take(i % 2 == 0 ? META_KEPT : META_WIPED, 200, 16);
        REQUIRE(taken[i] != NULL);
        CHECK(is_zero(taken[i], 200));
        memset(taken[i], mark, 200);
    }
    for (size_t i = 0; i < COUNT; i++) {
        CHECK(is_filled(taken[i], mark, 200));
    }
    free(taken);
    return NULL;
}

static void check_threads(void) {
    pthread_t threads[3];
    for (uintptr_t i = 0; i < 3; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, thread_take, (void *)(i + 1)) == 0);
    }
    for (size_t i = 0; i < 3; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
}

int main(void) {
    test_begin(60);
    struct dice dice = { test_seed() };
    pma_os_init();
    CHECK_EQ(pma_meta_committed(), 0);
    // In children, where nothing was taken before.
    struct child_end end = run_child(take_unwiped, NULL, 20);
    expect_exit(&end, 0, "a kernel that cannot wipe");
    end = run_child(take_refused, NULL, 20);
    expect_exit(&end, 0, "calls that fail");
    if (limits_work()) {
        end = run_child(take_under_limit, NULL, 20);
        expect_exit(&end, 0, "a limit on memory");
    }
    unsigned char *wiped = pma_meta_take(META_WIPED, PMA_PAGE_MAX, 16);
    REQUIRE(wiped != NULL);
    unsigned char *page = (unsigned char *)align_up((uintptr_t)wiped, pma_page_size);
    CHECK_EQ(pma_meta_is_wiped(), advice_is_heard(page, (size_t)sysconf(_SC_PAGESIZE)));
    check_child(wiped);
    check_pieces(&dice);
    check_large();
    check_guards();
    check_calls();
    check_threads();
    return test_end();
}

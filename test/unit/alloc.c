// alloc.c - the two ways: whatever is asked is served exactly, kept apart and given back, and what
// is no block is told apart from what was one.
//
// The meaning of each call is tested here, under the library's internal names; the exported ones
// have their tests in test/api and test/misuse.
#include <config.h>

#include "alloc.h"
#include "arena.h"
#include "base.h"
#include "harness.h"
#include "limits.h"
#include "lock.h"
#include "malloc.h"
#include "os.h"
#include "pageheap.h"
#include "pagemap.h"
#include "probe.h"
#include "purge.h"
#include "slab.h"
#include "thread.h"
#include "verify.h"

#include <pthread.h>
#include <sys/mman.h>

#define MIB ((size_t)1 << 20)

static size_t live_bytes(void) {
    return __atomic_load_n(&pma_pageheap.live, __ATOMIC_RELAXED);
}

// ---- sizes

// Every size of a slot, and those around every power of two above.
static void check_block(size_t size) {
    unsigned char *block = pma_malloc(size);
    REQUIRE(block != NULL);
    size_t usable = pma_alloc_usable("test", block);
    CHECK_EQ((uintptr_t)block % 16, 0);
    CHECK(usable >= size);
    CHECK_AT_MOST(usable, size <= 64             ? align_up(size, 16)
                          : size <= PMA_SLOT_MAX ? size + size_max(size / 4, 15)
                                                 : size + 2 * pma_page_size);
    if (usable > 0) {
        block[0] = block[usable - 1] = 0x5a;
    }
    CHECK_EQ(usable == 0, size == 0);
    // As large as it is, it stays where it is; only a run of this size would become a mapping.
    unsigned char *resized = usable > 0 ? pma_alloc_resized("test", block, usable) : block;
    CHECK(resized == block || usable == PMA_HUGE_MIN);
    block = resized;
    CHECK_EQ(pma_self->busy, 0);
    pma_free(block);
}

static void check_sizes(void) {
    for (size_t size = 0; size <= PMA_SLOT_MAX; size++) {
        check_block(size);
    }
    for (size_t size = PMA_SLOT_MAX; size <= 64 * MIB; size *= 2) {
        check_block(size - 1);
        check_block(size);
        check_block(size + 1);
        check_block(size + size / 3);
    }
    pma_verify();
}

static void check_too_large(void) {
    static const size_t sizes[] = { (size_t)PTRDIFF_MAX + 1, SIZE_MAX,    SIZE_MAX - 15,
                                    SIZE_MAX - 4095,         PTRDIFF_MAX, (size_t)1 << 47 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        errno = 0;
        CHECK(pma_malloc(sizes[i]) == NULL);
        CHECK_EQ(errno, ENOMEM);
        errno = 0;
        CHECK(pma_alloc_zeroed(sizes[i]) == NULL);
        CHECK_EQ(errno, ENOMEM);
        for (size_t alignment = 1; alignment != 0; alignment *= 2) {
            errno = 0;
            CHECK(pma_alloc_aligned(alignment, sizes[i]) == NULL);
            CHECK_EQ(errno, ENOMEM);
            errno = 0;
            CHECK(pma_alloc_aligned_quiet(alignment, sizes[i]) == NULL);
            CHECK_EQ(errno, 0);
        }
    }
    CHECK(pma_alloc_aligned_quiet((size_t)1 << 63, 1) == NULL);
    CHECK(pma_lock_none_held());
}

// ---- alignment

static void check_alignments(void) {
    for (size_t alignment = 1; alignment <= 4 * MIB; alignment *= 2) {
        for (size_t size = 0; size < 3 * MIB; size = size * 3 + 7) {
            unsigned char *block = pma_alloc_aligned(alignment, size);
            REQUIRE(block != NULL);
            CHECK_SAY((uintptr_t)block % size_max(alignment, 16) == 0, "%p for %zu", (void *)block,
                      alignment);
            CHECK(pma_alloc_usable("test", block) >= size);
            memset(block, 1, size);
            pma_alloc_free("test", block);
        }
    }
    pma_verify();
}

// A page on a page is a slot like others, and what is freed is at hand at once.
static void check_ways(void) {
    if (pma_page_size <= PMA_SLOT_MAX) {
        void *page = pma_alloc_aligned(pma_page_size, pma_page_size);
        REQUIRE(page != NULL);
        CHECK_EQ(run_kind(pagemap_find((uintptr_t)page)), RUN_SLAB);
        pma_free(page);
    }
    void *large = pma_malloc(PMA_SLOT_MAX + 1);
    REQUIRE(large != NULL);
    CHECK_EQ(run_kind(pagemap_find((uintptr_t)large)), RUN_LARGE);
    pma_alloc_trim();
    CHECK_EQ(pma_self->cache.bytes, 0);
    pma_free(large);
    CHECK(pma_self->cache.bytes > 0);
    large = pma_malloc(PMA_SLOT_MAX + 1);
    CHECK_EQ(pma_self->cache.bytes, 0);
    pma_free(large);
}

// ---- zero

static size_t resident_bytes(const unsigned char *block, size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t sum = 0;
    for (uintptr_t at = align_up((uintptr_t)block, page); at + page <= (uintptr_t)block + size;
         at += page) {
        unsigned char in = 0;
        sum += mincore((void *)at, page, &in) == 0 && (in & 1) != 0 ? page : 0;
    }
    return sum;
}

// What the kernel gave as zero is not written to make it zero.
static void zero_untouched(void *argument) {
    size_t size = *(const size_t *)argument;
    size_t sum = 0;
    size_t resident = 0;
    while (sum < 8 * MIB) {
        unsigned char *block = pma_alloc_zeroed(size);
        REQUIRE(block != NULL);
        resident += resident_bytes(block, size);
        sum += size;
    }
    CHECK_SAY(resident <= sum / 4, "%zu of %zu bytes were touched, %zu at a time", resident, sum,
              size);
}

// Zero at every age of the memory: fresh, used before, from caches and after purging.
static void check_zeroed(struct dice *dice) {
    static void *held[64];
    unsigned rounds = 6000 / slow_factor();
    for (unsigned round = 0; round < rounds; round++) {
        size_t i = dice_below(dice, 64);
        size_t size = dice_below(dice, (size_t)1 << dice_below(dice, 22));
        pma_free(held[i]);
        held[i] = pma_alloc_zeroed(size);
        REQUIRE(held[i] != NULL);
        size_t wrong = 0;
        const unsigned char *bytes = held[i];
        for (size_t at = 0; at < size; at += at < 4096 ? 1 : 61) {
            wrong += bytes[at] != 0;
        }
        CHECK_SAY(wrong == 0, "%zu bytes of %zu are not zero", wrong, size);
        memset(held[i], 0xff, size);
        if (round % 500 == 0) {
            pma_alloc_trim();
        }
    }
    for (size_t i = 0; i < 64; i++) {
        pma_free(held[i]);
    }
}

// ---- another size

static void check_resized(struct dice *dice) {
    size_t size = 1;
    uint32_t *block = pma_malloc(size * 4);
    REQUIRE(block != NULL);
    block[0] = 1;
    unsigned rounds = 3000 / slow_factor();
    for (unsigned round = 0; round < rounds; round++) {
        size_t next = 1 + dice_below(dice, (size_t)1 << dice_below(dice, 20));
        uint32_t *moved = pma_alloc_resized("test", block, next * 4);
        REQUIRE(moved != NULL);
        CHECK(pma_alloc_usable("test", moved) >= next * 4);
        size_t wrong = 0;
        for (size_t i = 0; i < size_min(size, next); i += 17) {
            wrong += moved[i] != (uint32_t)(i + size);
        }
        CHECK_SAY(wrong == 0 || round == 0, "from %zu to %zu: %zu words lost", size, next, wrong);
        for (size_t i = 0; i < next; i++) {
            moved[i] = (uint32_t)(i + next);
        }
        // Much smaller: it does not sit on memory that it does not need.
        CHECK(pma_alloc_usable("test", moved) <= 2 * next * 4 + 2 * pma_page_size);
        block = moved;
        size = next;
    }
    CHECK(pma_alloc_resized("test", block, SIZE_MAX) == NULL);
    CHECK_EQ(errno, ENOMEM);
    pma_free(block);
    pma_verify();
}

// Growing step by step seldom copies: a large block finds room behind it, a huge one is moved by
// the kernel.
static void check_growth(void) {
    size_t moves = 0;
    char *block = pma_malloc(PMA_SLOT_MAX + 1);
    for (size_t size = PMA_SLOT_MAX + 1; size < 900000; size += 4096) {
        char *moved = pma_alloc_resized("test", block, size);
        REQUIRE(moved != NULL);
        moves += moved != block;
        block = moved;
    }
    CHECK_AT_MOST(moves, 60);
    pma_free(block);
}

// ---- failures

// Nothing from the kernel: the call fails with ENOMEM, and a block that cannot grow is whole.
static void refuse_all(void *argument) {
    (void)argument;
    unsigned char *kept = pma_malloc(3000);
    REQUIRE(kept != NULL);
    memset(kept, 9, 3000);
    pma_os_fail_at(1, true);
    size_t count = 0;
    errno = 0;
    while (pma_malloc(MIB / 2) != NULL) {
        REQUIRE(++count < 1000);
    }
    CHECK_EQ(errno, ENOMEM);
    errno = 0;
    CHECK(pma_alloc_resized("test", kept, 8 * MIB) == NULL);
    CHECK_EQ(errno, ENOMEM);
    CHECK(is_filled(kept, 9, 3000));
    // Shrinking never fails.
    unsigned char *smaller = pma_alloc_resized("test", kept, 50);
    REQUIRE(smaller != NULL);
    CHECK(is_filled(smaller, 9, 50));
    pma_free(smaller);
    pma_verify();
    CHECK(pma_lock_none_held());
    pma_os_fail_at(0, false);
    void *block = pma_malloc(8 * MIB);
    CHECK(block != NULL);
    pma_free(block);
    pma_verify();
}

// Any call may fail, once or from then on.
static void refuse_some(void *argument) {
    struct dice *dice = argument;
    static struct {
        unsigned char *block;
        size_t size;
    } held[64];
    unsigned rounds = 6000 / slow_factor();
    for (unsigned round = 0; round < rounds; round++) {
        size_t i = dice_below(dice, 64);
        size_t size = 1 + dice_below(dice, (size_t)1 << dice_below(dice, 22));
        pma_os_fail_at(1 + dice_below(dice, 8), dice_below(dice, 2) == 0);
        errno = 0;
        if (held[i].block == NULL) {
            held[i].block = pma_malloc(size);
        } else if (dice_below(dice, 2) == 0) {
            unsigned char *moved = pma_alloc_resized("test", held[i].block, size);
            CHECK(moved != NULL || size > held[i].size);
            CHECK(moved != NULL || errno == ENOMEM);
            CHECK(moved == NULL || moved[0] == (unsigned char)i);
            size = moved == NULL ? held[i].size : size;
            held[i].block = moved == NULL ? held[i].block : moved;
        } else {
            CHECK(held[i].block[held[i].size - 1] == (unsigned char)(i + 1) || held[i].size == 1);
            pma_free(held[i].block);
            CHECK_EQ(errno, 0);
            held[i].block = NULL;
        }
        pma_os_fail_at(0, false);
        held[i].size = size;
        if (held[i].block != NULL) {
            held[i].block[size - 1] = (unsigned char)(i + 1);
            held[i].block[0] = (unsigned char)i;
        }
        if (round % 100 == 0) {
            pma_verify();
        }
    }
}

// Under a limit, everything that is freed can be had again in another shape.
static void use_under_limit(void *argument) {
    (void)argument;
    static void *small[40000];
    size_t count = 0;
    REQUIRE(pma_malloc(1) != NULL);
    limit_more(RLIMIT_DATA, 32 * MIB);
    while (count < 40000 && (small[count] = pma_malloc(1000)) != NULL) {
        memset(small[count++], 1, 1000);
    }
    CHECK(count > 24000 && count < 40000);
    for (size_t i = 0; i < count; i++) {
        pma_free(small[i]);
    }
    void *large = pma_malloc(20 * MIB);
    CHECK(large != NULL);
    pma_free(large);
    for (size_t i = 0; i < 24; i++) {
        small[i] = pma_malloc(900000);
        CHECK(small[i] != NULL);
    }
    pma_verify();
}

// ---- giving back

// What lay unused for a second goes back while the thread makes calls.
static void check_tick(void) {
    static void *blocks[100];
    for (size_t i = 0; i < 100; i++) {
        blocks[i] = pma_malloc(30000);
        REQUIRE(blocks[i] != NULL);
        memset(blocks[i], 1, 30000);
    }
    for (size_t i = 0; i < 100; i++) {
        pma_free(blocks[i]);
    }
    size_t dirty = pma_pageheap.dirty;
    CHECK(dirty > 0);
    for (int round = 0; round < 25; round++) {
        struct timespec rest = { 0, 100000000 };
        REQUIRE(nanosleep(&rest, NULL) == 0);
        for (int i = 0; i < 3000; i++) {
            pma_free(pma_malloc(100));
        }
    }
    // But for what the thread itself just let go of.
    CHECK_AT_MOST(pma_pageheap.dirty, dirty / 4);
    CHECK_EQ(pma_self->cache.bytes, 0);
}

static void check_trim(void) {
    static void *blocks[4000];
    pma_alloc_trim();
    size_t before = live_bytes();
    for (size_t i = 0; i < 4000; i++) {
        blocks[i] = pma_malloc(i * 9);
        memset(blocks[i], 1, i * 9);
    }
    for (size_t i = 0; i < 4000; i++) {
        if (i < 2000) {
            pma_free(blocks[i]);
        } else {
            pma_alloc_free("test", blocks[i]);
        }
    }
    CHECK(pma_alloc_trim());
    CHECK_EQ(pma_self->busy, 0);
    CHECK(!pma_alloc_trim());
    CHECK_AT_MOST(live_bytes(), before);
    pma_verify();
}

// ---- no block

static void *chosen; // by whoever makes a wrong pointer

static void free_chosen(void *argument) {
    (void)argument;
    pma_alloc_free("test", chosen);
}

static void ask_chosen(void *argument) {
    (void)argument;
    (void)pma_alloc_usable("test", chosen);
}

static void resize_chosen(void *argument) {
    (void)argument;
    (void)pma_alloc_resized("test", chosen, 100);
}

// Each judge of a pointer comes to the same sentence.
static void refuse(void *pointer, const char *sentence) {
    char text[128];
    (void)snprintf(text, sizeof(text), "test(): %s: %p", sentence, pointer);
    chosen = pointer;
    expect_abort(free_chosen, NULL, text);
    expect_abort(ask_chosen, NULL, text);
    expect_abort(resize_chosen, NULL, text);
}

static void check_refused(void) {
    static const char *const middle = "pointer into the middle of a block";
    int local = 0;
    static int object;
    size_t sizes[] = { 48, 1000, 5000, 30000, 100000, 2 * MIB };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char *block = pma_malloc(sizes[i]);
        REQUIRE(block != NULL);
        refuse(block + 16, middle);
        refuse(block + 8, "misaligned pointer");
        refuse(block + align_down(sizes[i] - 1, 16), middle);
        pma_free(block);
        refuse(block, "double free");
    }
    // Right behind a block that ends where nothing of ours begins.
    char *huge = pma_malloc(2 * MIB);
    struct run *run = pagemap_find((uintptr_t)huge);
    char *behind = (char *)run->base + run->size;
    if (pagemap_find((uintptr_t)behind) == NULL) {
        refuse(behind, "not a block of pamalloc");
    }
    refuse(&local, "not a block of pamalloc");
    refuse(&object, "not a block of pamalloc");
    refuse((void *)align_down((uintptr_t)&check_refused, 16), "not a block of pamalloc");
    refuse((void *)(uintptr_t)16, "not a block of pamalloc");
    refuse(pma_self, "not a block of pamalloc");
    refuse((void *)((uintptr_t)1 << PMA_ADDRESS_BITS), "not a user address");
    refuse((void *)((uintptr_t)0 - 16), "not a user address");
    // And nothing at all is fine.
    pma_alloc_free("test", NULL);
    CHECK_EQ(pma_alloc_usable("test", NULL), 0);
}

// Small steps move a block seldom: each time it gets an eighth more than it had.
static void check_small_steps(void) {
    char *block = pma_malloc(1000);
    size_t moves = 0;
    REQUIRE(block != NULL);
    for (size_t size = 1016; size <= PMA_SLOT_MAX; size += 16) {
        char *grown = pma_realloc(block, size);
        REQUIRE(grown != NULL);
        moves += grown != block;
        block = grown;
    }
    // 1.125 ^ 30 is 34; with fine classes a block may move a few times more.
    CHECK_AT_MOST(moves, 34);
    pma_free(block);
}

// ---- threads

#define PLACES 256

static void *places[PLACES]; // atomic

static void *thread_exchange(void *argument) {
    struct dice dice = { (uintptr_t)argument };
    unsigned rounds = 40000 / slow_factor();
    for (unsigned round = 0; round < rounds; round++) {
        size_t top = dice_below(&dice, 200) == 0 ? 21 : dice_below(&dice, 12);
        size_t size = sizeof(uint64_t) + dice_below(&dice, (size_t)1 << top);
        uint64_t *block = pma_malloc(size);
        REQUIRE(block != NULL);
        *block = (uintptr_t)block;
        size_t place = dice_below(&dice, PLACES);
        block = __atomic_exchange_n(&places[place], block, __ATOMIC_ACQ_REL);
        if (block != NULL) {
            CHECK_EQ(*block, (uintptr_t)block);
            pma_free(block);
        }
    }
    return NULL;
}

static void check_threads(uint64_t seed) {
    pthread_t threads[3];
    pma_alloc_trim();
    size_t before = live_bytes();
    for (size_t i = 0; i < 3; i++) {
        void *own = (void *)(uintptr_t)(seed + i);
        REQUIRE(pthread_create(&threads[i], NULL, thread_exchange, own) == 0);
    }
    for (size_t i = 0; i < 3; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    for (size_t i = 0; i < PLACES; i++) {
        pma_free(places[i]);
    }
    pma_verify();
    pma_alloc_trim();
    CHECK_EQ(live_bytes(), before);
}

static void check_in_child(void (*body)(void *), void *argument, const char *what) {
    struct child_end end = run_child(body, argument, 60);
    expect_exit(&end, 0, what);
}

int main(void) {
    test_begin(120);
    struct dice dice = { test_seed() };
    check_in_child(refuse_all, NULL, "no memory at all");
    check_in_child(refuse_some, &dice, "calls that fail");
    if (limits_work()) {
        check_in_child(use_under_limit, NULL, "a limit on memory");
    }
    for (size_t size = 40960; size <= 4 * MIB; size *= 4) {
        check_in_child(zero_untouched, &size, "zeroes from the kernel");
    }
    check_sizes();
    check_too_large();
    check_alignments();
    check_ways();
    check_zeroed(&dice);
    check_resized(&dice);
    check_growth();
    check_trim();
    void *page = pma_os_map(NULL, pma_page_size);
    if (page != NULL && pma_os_purge(page, pma_page_size)) {
        check_tick();
    }
    check_small_steps();
    check_refused();
    check_threads(dice_draw(&dice));
    return test_end();
}

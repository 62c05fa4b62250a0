// malloc.c - the argument rules and errno of every exported C name of allocation.
#include <config.h>

#include "alloc.h"
#include "base.h"
#include "harness.h"
#include "malloc.h"
#include "os.h"
#include "probe.h"

// Nobody's value of errno: a call that must leave it alone leaves this.
#define UNTOUCHED 4711

// Sizes that the compiler would rather not see.
#define MOST any(SIZE_MAX)
#define HALF any(PTRDIFF_MAX)

static size_t usable(void *block) {
    return pma_malloc_usable_size(block);
}

// A block of so many bytes at least, aligned, and errno as it was.
static void check_block(void *block, size_t size, size_t alignment) {
    REQUIRE(block != NULL);
    CHECK_EQ(errno, UNTOUCHED);
    CHECK_EQ((uintptr_t)block % alignment, 0);
    CHECK(usable(block) >= size);
    memset(block, 0xa5, size);
    pma_free(block);
    CHECK_EQ(errno, UNTOUCHED);
}

static void check_refused(void *block, int error) {
    CHECK(block == NULL);
    CHECK_EQ(errno, error);
    errno = UNTOUCHED;
}

// ---- malloc and calloc

static void check_plain(void) {
    errno = UNTOUCHED;
    for (size_t size = 0; size < 3000000; size = size * 2 + 1) {
        check_block(pma_malloc(size), size, 16);
        check_block(pma___libc_malloc(size), size, 16);
        unsigned char *block = pma_calloc(size, 1);
        CHECK(is_zero(block, size));
        check_block(block, size, 16);
        block = pma___libc_calloc(1, size);
        CHECK(is_zero(block, size));
        check_block(block, size, 16);
    }
    check_block(pma_calloc(0, MOST), 0, 16);
    check_block(pma_calloc(MOST, 0), 0, 16);
    check_refused(pma_calloc(MOST, 2), ENOMEM);
    check_refused(pma_calloc(any((size_t)1 << 32), (size_t)1 << 32), ENOMEM);
    check_refused(pma_calloc(any((size_t)1 << 32), ((size_t)1 << 32) + 1), ENOMEM);
    check_refused(pma___libc_calloc(3, MOST / 2), ENOMEM);
    check_refused(pma_malloc(MOST), ENOMEM);
    check_refused(pma___libc_malloc((size_t)HALF + 1), ENOMEM);
}

// ---- realloc

static void check_resize(void) {
    errno = UNTOUCHED;
    unsigned char *block = pma_realloc(NULL, 100);
    REQUIRE(block != NULL);
    memset(block, 3, 100);
    block = pma_realloc(block, 100000);
    REQUIRE(block != NULL && is_filled(block, 3, 100));
    block = pma___libc_realloc(block, 60);
    REQUIRE(block != NULL && is_filled(block, 3, 60));
    block = pma_reallocarray(block, 50, 40);
    REQUIRE(block != NULL && is_filled(block, 3, 60));
    CHECK_EQ(errno, UNTOUCHED);
    // A refusal leaves the block.
    check_refused(pma_realloc(block, MOST), ENOMEM);
    check_refused(pma_reallocarray(block, MOST, 2), ENOMEM);
    check_refused(pma_reallocarray(block, (size_t)1 << 33, (size_t)1 << 31), ENOMEM);
    CHECK(is_filled(block, 3, 60));
    // As in the GNU C library, no bytes are freed and NULL comes back, errno untouched.
    CHECK(pma_realloc(block, 0) == NULL);
    CHECK_EQ(errno, UNTOUCHED);
    block = pma_malloc(10);
    CHECK(pma_reallocarray(block, 0, 10) == NULL);
    block = pma_malloc(10);
    CHECK(pma_reallocarray(block, 10, 0) == NULL);
    CHECK_EQ(errno, UNTOUCHED);
    check_block(pma_realloc(NULL, 0), 0, 16);
    check_block(pma_reallocarray(NULL, 10, 10), 100, 16);
}

// ---- aligned

static void check_posix(int (*place)(void **, size_t, size_t)) {
    static char nowhere;
    void *const before = &nowhere;
    void *block = before;
    errno = UNTOUCHED;
    static const size_t bad[] = { 0, 1, 2, 4, 3, 7, 12, 24, 48, 4095, SIZE_MAX };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK_EQ(place(&block, bad[i], 100), EINVAL);
        CHECK(block == before);
    }
    CHECK_EQ(place(&block, 16, MOST), ENOMEM);
    CHECK_EQ(place(&block, (size_t)1 << 63, 1), ENOMEM);
    CHECK(block == before);
    CHECK_EQ(errno, UNTOUCHED);
    for (size_t alignment = sizeof(void *); alignment <= 1 << 20; alignment *= 2) {
        for (size_t size = 0; size < 200000; size = size * 5 + 1) {
            CHECK_EQ(place(&block, alignment, size), 0);
            check_block(block, size, alignment);
        }
    }
}

static void check_aligned(void) {
    errno = UNTOUCHED;
    for (size_t alignment = 1; alignment <= 1 << 20; alignment *= 2) {
        for (size_t size = 0; size < 200000; size = size * 5 + 1) {
            check_block(pma_aligned_alloc(alignment, size), size, alignment);
            check_block(pma_memalign(alignment, size), size, alignment);
            check_block(pma___libc_memalign(alignment, size), size, alignment);
            // memalign rounds what is no power of two up.
            if (alignment > 2) {
                check_block(pma_memalign(alignment - 1, size), size, alignment);
            }
        }
    }
    check_block(pma_memalign(0, 10), 10, 16);
    check_refused(pma_aligned_alloc(0, 10), EINVAL);
    check_refused(pma_aligned_alloc(3, 10), EINVAL);
    check_refused(pma_aligned_alloc(48, 96), EINVAL);
    check_refused(pma_aligned_alloc(16, MOST), ENOMEM);
    check_refused(pma_memalign(MOST, 10), EINVAL);
    check_refused(pma_memalign(((size_t)1 << 63) + 1, 10), EINVAL);
    check_refused(pma_memalign((size_t)1 << 63, 10), ENOMEM);
    check_refused(pma___libc_memalign(64, MOST), ENOMEM);
}

static void check_pages(void) {
    size_t page = pma_page_size;
    errno = UNTOUCHED;
    for (size_t size = 0; size < 10 * page; size += page / 4 + 1) {
        check_block(pma_valloc(size), size, page);
        check_block(pma___libc_valloc(size), size, page);
        check_block(pma_pvalloc(size), align_up(size, page), page);
        check_block(pma___libc_pvalloc(size), align_up(size, page), page);
    }
    check_block(pma_valloc(0), page, page);
    check_block(pma_pvalloc(0), page, page);
    check_refused(pma_valloc(MOST), ENOMEM);
    check_refused(pma_pvalloc(MOST), ENOMEM);
    check_refused(pma_pvalloc(HALF), ENOMEM);
    check_refused(pma_pvalloc(MOST - page + 2), ENOMEM);
}

// ---- free

static void check_free(void) {
    errno = UNTOUCHED;
    pma_free(NULL);
    pma_cfree(NULL);
    pma___libc_free(NULL);
    pma___libc_cfree(NULL);
    pma_free_sized(NULL, 10);
    pma_free_aligned_sized(NULL, 64, 10);
    pma_freezero(NULL, 10);
    CHECK_EQ(usable(NULL), 0);
    for (size_t size = 0; size < 3000000; size = size * 2 + 1) {
        pma_cfree(pma_malloc(size));
        pma___libc_free(pma_malloc(size));
        pma___libc_cfree(pma_malloc(size));
        pma_free_sized(pma_malloc(size), size);
        pma_free_aligned_sized(pma_aligned_alloc(64, size), 64, size);
        pma_freezero(pma_malloc(size), size);
    }
    CHECK_EQ(errno, UNTOUCHED);
    CHECK_EQ(usable(pma_malloc(0)), 0);
}

// Each call that frees says its own name.
static void *freed;

#define FREE_TWICE(name, ...) \
    static void twice_##name(void *argument) { \
        (void)argument; \
        pma_##name(freed __VA_ARGS__); \
    }

FREE_TWICE(free, )
FREE_TWICE(cfree, )
FREE_TWICE(free_sized, , 100)
FREE_TWICE(free_aligned_sized, , 16, 100)
FREE_TWICE(freezero, , 100)

static void resize_twice(void *argument) {
    (void)argument;
    (void)!pma_realloc(freed, 10);
}

static void resize_array_twice(void *argument) {
    (void)argument;
    (void)!pma_reallocarray(freed, 10, 10);
}

static void clear_twice(void *argument) {
    (void)argument;
    (void)!pma_recallocarray(freed, 10, 20, 10);
}

static void usable_twice(void *argument) {
    (void)argument;
    (void)pma_malloc_usable_size(freed);
}

static void check_names(void) {
    freed = pma_malloc(100);
    pma_free(freed);
    expect_abort(twice_free, NULL, "pamalloc: free(): double free: 0x");
    expect_abort(twice_cfree, NULL, "pamalloc: cfree(): double free: 0x");
    expect_abort(twice_free_sized, NULL, "pamalloc: free_sized(): double free: 0x");
    expect_abort(twice_free_aligned_sized, NULL, "pamalloc: free_aligned_sized(): double free: 0x");
    expect_abort(twice_freezero, NULL, "pamalloc: freezero(): double free: 0x");
    expect_abort(resize_twice, NULL, "pamalloc: realloc(): double free: 0x");
    expect_abort(resize_array_twice, NULL, "pamalloc: reallocarray(): double free: 0x");
    expect_abort(clear_twice, NULL, "pamalloc: recallocarray(): double free: 0x");
    expect_abort(usable_twice, NULL, "pamalloc: malloc_usable_size(): double free: 0x");
}

// ---- OpenBSD's

static void check_recallocarray(void) {
    errno = UNTOUCHED;
    unsigned char *block = pma_recallocarray(NULL, 7, 10, 10);
    REQUIRE(block != NULL && is_zero(block, 100));
    memset(block, 5, 100);
    block = pma_recallocarray(block, 10, 1000, 10);
    REQUIRE(block != NULL);
    CHECK(is_filled(block, 5, 100) && is_zero(block + 100, 9900));
    memset(block, 6, 10000);
    unsigned char *before = block;
    block = pma_recallocarray(block, 1000, 3, 10);
    REQUIRE(block != NULL && is_filled(block, 6, 30));
    // The old place was cleared; it is not unmapped, since it was a slot.
    CHECK(block == before || is_zero(before, 30));
    CHECK_EQ(errno, UNTOUCHED);
    check_refused(pma_recallocarray(block, 3, MOST, 2), ENOMEM);
    check_refused(pma_recallocarray(block, MOST, 3, 2), EINVAL);
    check_refused(pma_recallocarray(block, usable(block) + 1, 10, 1), EINVAL);
    CHECK(is_filled(block, 6, 30));
    block = pma_recallocarray(block, 3, 0, 10);
    check_block(block, 0, 16);
    check_refused(pma_recallocarray(NULL, 0, MOST, 2), ENOMEM);
}

static void check_freezero(void) {
    unsigned char *block = pma_malloc(64);
    memset(block, 7, 64);
    pma_freezero(block, 40);
    CHECK(is_zero(block, 40) && is_filled(block + 40, 7, 24));
    // More than the block has is not touched.
    block = pma_malloc(64);
    unsigned char *other = pma_malloc(64);
    memset(other, 7, 64);
    pma_freezero(block, MOST);
    CHECK(is_filled(other, 7, 64));
    pma_free(other);
}

int main(void) {
    test_begin(60);
    check_plain();
    check_resize();
    check_posix(pma_posix_memalign);
    check_posix(pma___posix_memalign);
    check_aligned();
    check_pages();
    check_free();
    check_names();
    check_recallocarray();
    check_freezero();
    return test_end();
}

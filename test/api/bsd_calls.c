// Do recallocarray and freezero behave as OpenBSD's: what is added is zero, what is dropped is
// cleared before it is freed, and wrong counts are told apart from missing memory?
#include "entry.h"

static void growth_is_zero_and_contents_stay(void) {
    const size_t sizes[] = { 1, 16, 100, 1000, 4096, 5000, 32768, 40000, 200000, 1 << 20, 3 << 20 };
    enum { COUNT = sizeof(sizes) / sizeof(sizes[0]) };
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t k = 0; k < COUNT; k++) {
            size_t from = sizes[i];
            size_t to = sizes[k];
            size_t kept = from < to ? from : to;
            char *block = (char *)call.recallocarray(NULL, 0, from, 1);
            REQUIRE(block != NULL && all_bytes(block, 0, from));
            // The slack may hold anything; none of it may come up in the grown part.
            memset(block, 0xee, call.malloc_usable_size(block));
            memset(block, 0x33, from);
            errno = ERANGE;
            block = (char *)call.recallocarray(block, from, to, 1);
            REQUIRE(block != NULL);
            CHECK_EQ(errno, ERANGE);
            CHECK(all_bytes(block, 0x33, kept));
            CHECK_SAY(all_bytes(block + kept, 0, to - kept), "recallocarray %zu to %zu", from, to);
            call.free(block);
        }
    }
}

// A chain through one block: shrunk and grown again, the tail must come back as zeroes.
static void a_discarded_tail_is_gone(void) {
    for (size_t size = 64; size <= (1 << 20); size *= 2) {
        char *block = (char *)call.recallocarray(NULL, 0, size, 1);
        REQUIRE(block != NULL);
        memset(block, 0x44, size);
        block = (char *)call.recallocarray(block, size, size - size / 8, 1);
        REQUIRE(block != NULL);
        block = (char *)call.recallocarray(block, size - size / 8, size, 1);
        REQUIRE(block != NULL);
        CHECK_SAY(all_bytes(block + size - size / 8, 0, size / 8), "tail of %zu", size);
        CHECK(all_bytes(block, 0x44, size - size / 8));
        call.free(block);
    }
}

static void counts_are_checked(void) {
    char *block = (char *)call.recallocarray(NULL, 5, 10, 8);
    REQUIRE(block != NULL && all_bytes(block, 0, 80));
    memset(block, 3, 80);
    errno = 0;
    CHECK(call.recallocarray(block, 10, SIZE_MAX / 4, 8) == NULL);
    CHECK_EQ(errno, ENOMEM);
    errno = 0;
    CHECK(call.recallocarray(block, SIZE_MAX / 4, 10, 8) == NULL);
    CHECK_EQ(errno, EINVAL);
    errno = 0;
    CHECK(call.recallocarray(block, 10, (size_t)PTRDIFF_MAX / 8, 8) == NULL);
    CHECK_EQ(errno, ENOMEM);
    CHECK(all_bytes(block, 3, 80));
    errno = 0;
    CHECK(call.recallocarray(NULL, 0, SIZE_MAX / 4, 8) == NULL);
    CHECK_EQ(errno, ENOMEM);
    // Unlike realloc's, a new size of nothing is a block of nothing.
    char *none = (char *)call.recallocarray(block, 10, 0, 8);
    CHECK(none != NULL);
    call.free(none);
}

// Freed memory cannot be read by a correct program; a reader of this process's memory can. Page
// sized slots may have lost their page by then, which is as good.
static bool still_holds_secret(const char *address, size_t size) {
    char copy[256];
    int file = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    size_t length = size < sizeof(copy) ? size : sizeof(copy);
    ssize_t n = file >= 0 ? pread(file, copy, length, (off_t)(uintptr_t)address) : -1;
    if (file >= 0) {
        (void)close(file);
    }
    for (ssize_t i = 0; i < n; i++) {
        if (copy[i] == 'S') {
            return true;
        }
    }
    return false;
}

static void freezero_clears(void) {
    for (size_t size = 16; size <= (4 << 20); size = size * 3 / 2 + 1) {
        char *block = (char *)call.malloc(size);
        REQUIRE(block != NULL);
        char *place = (char *)hide(block);
        memset(block, 'S', size);
        errno = ERANGE;
        call.freezero(block, size);
        CHECK_EQ(errno, ERANGE);
        CHECK_SAY(!still_holds_secret(place, size), "freezero of %zu leaves the secret", size);
    }
    call.freezero(NULL, 100);
    // As OpenBSD's: no more than the block's own memory is touched, however large the size said.
    char *victim = (char *)call.malloc(48);
    char *neighbours[200];
    for (size_t i = 0; i < 200; i++) {
        neighbours[i] = (char *)call.malloc(48);
        memset(neighbours[i], 9, 48);
    }
    call.freezero(victim, 48);
    for (size_t i = 0; i < 200; i++) {
        CHECK(all_bytes(neighbours[i], 9, 48));
        call.free(neighbours[i]);
    }
}

static void recallocarray_leaves_no_copy(void) {
    for (size_t size = 64; size <= (1 << 20); size *= 4) {
        char *block = (char *)call.recallocarray(NULL, 0, size, 1);
        REQUIRE(block != NULL);
        memset(block, 'S', size);
        char *place = (char *)hide(block);
        block = (char *)call.recallocarray(block, size, 8 * size, 1);
        REQUIRE(block != NULL && block[0] == 'S');
        CHECK_SAY(block == place || !still_holds_secret(place, size), "a copy of %zu is left",
                  size);
        call.free(block);
    }
}

int main(void) {
    entry_begin(30);
    growth_is_zero_and_contents_stay();
    a_discarded_tail_is_gone();
    counts_are_checked();
    freezero_clears();
    recallocarray_leaves_no_copy();
    return test_end();
}

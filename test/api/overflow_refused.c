// Is every request that is too large, or that wraps round on the way, refused, in the first call of
// a thread too, and does the heap work on?
#include "entry.h"

#include <pthread.h>

static const size_t alignments[] = { 16, 64, 4096, 1 << 21, (size_t)1 << 40, (size_t)1 << 62 };

static void refuse(const struct entry_point *entry, size_t alignment, size_t size) {
    int code = 0;
    errno = 0;
    void *block = entry->get(alignment, size, &code);
    if (entry->rule == RULE_POSIX) {
        CHECK_SAY(code == ENOMEM && block == UNTOUCHED && errno == 0, "%s(%#zx, %#zx): %d, %p",
                  entry->name, alignment, size, code, block);
    } else {
        CHECK_SAY(block == NULL && errno == ENOMEM, "%s(%#zx, %#zx): %p, errno %d", entry->name,
                  alignment, size, block, errno);
    }
}

static void refuse_everywhere(size_t size) {
    for (size_t e = 0; e < ENTRIES; e++) {
        const struct entry_point *entry = &entries[e];
        bool aligned = entry->rule != RULE_NONE && entry->rule != RULE_PAGE;
        size_t n = aligned ? sizeof(alignments) / sizeof(alignments[0]) : 1;
        for (size_t a = 0; a < n && !entry_missing(entry); a++) {
            refuse(entry, alignments[a], size);
        }
    }
}

static void *sizes_near_the_ends(void *unused) {
    (void)unused;
    refuse_everywhere((size_t)PTRDIFF_MAX + 1);
    refuse_everywhere(SIZE_MAX / 2 + 2);
    for (size_t k = 0; k <= 70000; k += 7) {
        refuse_everywhere(SIZE_MAX - k);
        if (k % 70 == 0) {
            refuse_everywhere((size_t)PTRDIFF_MAX - k);
            refuse_everywhere((size_t)PTRDIFF_MAX + 1 + k);
        }
    }
    void *block = call.malloc(100);
    CHECK(block != NULL);
    call.free(block);
    return NULL;
}

// A small size does not help when the alignment alone is beyond the address space.
static void alignments_beyond_the_address_space(void) {
    for (unsigned shift = 48; shift < 64; shift++) {
        int code = 0;
        errno = 0;
        CHECK(call.aligned_alloc((size_t)1 << shift, 1) == NULL);
        CHECK_EQ(errno, ENOMEM);
        CHECK(call.memalign((size_t)1 << shift, 1) == NULL);
        void *block = get_posix_memalign((size_t)1 << shift, 1, &code);
        CHECK(block == UNTOUCHED);
        CHECK_EQ(code, ENOMEM);
    }
}

// Factors whose product wraps to a small number, and some that do not wrap but are too large.
static void products_that_wrap(void) {
    const size_t half = (size_t)1 << 32;
    const size_t pairs[][2] = {
        { half, half },         { half + 1, half },       { half, half + 1 },
        { SIZE_MAX, 2 },        { SIZE_MAX / 2 + 1, 2 },  { SIZE_MAX / 3 + 1, 3 },
        { SIZE_MAX, SIZE_MAX }, { (size_t)1 << 63, 2 },   { SIZE_MAX / 16 + 2, 16 },
        { half, half / 2 },     { SIZE_MAX / 48 + 1, 48 }
    };
    char *block = (char *)call.malloc(100);
    REQUIRE(block != NULL);
    memset(block, 7, 100);
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        size_t a = pairs[i][0];
        size_t b = pairs[i][1];
        errno = 0;
        CHECK_SAY(call.calloc(a, b) == NULL && errno == ENOMEM, "calloc(%#zx, %#zx)", a, b);
        errno = 0;
        CHECK_SAY(call.__libc_calloc(a, b) == NULL && errno == ENOMEM, "calloc(%#zx, %#zx)", a, b);
        errno = 0;
        CHECK_SAY(call.reallocarray(NULL, a, b) == NULL && errno == ENOMEM, "(%#zx, %#zx)", a, b);
        errno = 0;
        CHECK_SAY(call.reallocarray(block, a, b) == NULL && errno == ENOMEM, "(%#zx, %#zx)", a, b);
        CHECK(all_bytes(block, 7, 100));
    }
    errno = 0;
    CHECK(call.realloc(block, SIZE_MAX - 10) == NULL);
    CHECK_EQ(errno, ENOMEM);
    CHECK(all_bytes(block, 7, 100));
    call.free(block);
}

int main(void) {
    entry_begin(60);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, sizes_near_the_ends, NULL) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
    sizes_near_the_ends(NULL);
    alignments_beyond_the_address_space();
    products_that_wrap();
    return test_end();
}

// Is a request for nothing a block like any other, from every entry point, and is realloc(p, 0) as
// glibc's?
#include "entry.h"
#include "../figures.h"

static void every_entry_gives_a_block_of_its_own(void) {
    void *blocks[2 * ENTRIES];
    int code = 0;
    for (size_t i = 0; i < 2 * ENTRIES; i++) {
        const struct entry_point *entry = &entries[i % ENTRIES];
        blocks[i] = entry_missing(entry) ? call.malloc(0) : entry->get(16, 0, &code);
        CHECK_SAY(blocks[i] != NULL && blocks[i] != UNTOUCHED && code == 0, "%s", entry->name);
        CHECK_EQ((uintptr_t)blocks[i] % 16, 0);
        for (size_t k = 0; k < i; k++) {
            CHECK_SAY(blocks[k] != blocks[i], "%s gives a block twice", entry->name);
        }
    }
    void *product[2] = { call.calloc(0, 8), call.calloc(8, 0) };
    CHECK(product[0] != NULL && product[1] != NULL && product[0] != product[1]);
    call.free(product[0]);
    call.free(product[1]);
    for (size_t i = 0; i < 2 * ENTRIES; i++) {
        call.free(blocks[i]);
    }
    call.free(NULL);
    CHECK_EQ(call.malloc_usable_size(NULL), 0);
}

static int by_address(const void *a, const void *b) {
    void *const *left = (void *const *)a;
    void *const *right = (void *const *)b;
    return (*left > *right) - (*left < *right);
}

// A page for each block of nothing would be 400 MB here.
static void a_hundred_thousand_stay_small(void) {
    enum { COUNT = 100000 };
    static void *blocks[COUNT];
    memset(blocks, 1, sizeof(blocks));
    long before = rss_kib();
    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = call.malloc(any(0));
        REQUIRE(blocks[i] != NULL);
    }
    CHECK_AT_MOST(rss_kib() - before, 4096);
    qsort(blocks, COUNT, sizeof(blocks[0]), by_address);
    for (size_t i = 1; i < COUNT; i++) {
        CHECK(blocks[i] != blocks[i - 1]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        call.free(blocks[i]);
    }
}

// The block is freed, the result is NULL, errno stays: a caller who then frees the result is right,
// and so is one who forgets the block.
static void realloc_to_nothing_frees(size_t size, size_t rounds) {
    long before = 0;
    for (size_t i = 0; i < rounds; i++) {
        if (i == rounds / 10) {
            before = rss_kib();
        }
        void *block = call.malloc(size);
        REQUIRE(block != NULL);
        memset(block, 1, size < 65536 ? size : 65536);
        errno = ERANGE;
        void *result =
            i % 2 == 0 ? call.realloc(block, any(0)) : call.reallocarray(block, any(0), 8);
        CHECK(result == NULL);
        CHECK_EQ(errno, ERANGE);
        call.free(result);
    }
    CHECK_AT_MOST(rss_kib() - before, 2048);
}

int main(void) {
    entry_begin(60);
    every_entry_gives_a_block_of_its_own();
    a_hundred_thousand_stay_small();
    realloc_to_nothing_frees(64, 1000000);
    realloc_to_nothing_frees(1 << 20, 1000);
    return test_end();
}

// Does every alignment up to gigabytes hold, at what price, and does every call find such a block
// again? Is every small block 16-byte aligned, whatever its size?
#include "entry.h"
#include "../figures.h"

static void *aligned(size_t turn, size_t alignment, size_t size) {
    void *block = NULL;
    if (turn % 3 == 0 && alignment >= sizeof(void *)) {
        CHECK_EQ(call.posix_memalign(&block, alignment, size), 0);
        return block;
    }
    return turn % 3 == 1 ? call.memalign(alignment, size) : call.aligned_alloc(alignment, size);
}

static void every_alignment_and_size(void) {
    for (size_t alignment = 1; alignment <= (size_t)1 << 30; alignment *= 2) {
        const size_t sizes[] = { 0,
                                 1,
                                 17,
                                 100,
                                 1000,
                                 5000,
                                 40000,
                                 alignment / 2,
                                 alignment - 1,
                                 alignment,
                                 70000,
                                 alignment + 1,
                                 2 * alignment };
        enum { COUNT = sizeof(sizes) / sizeof(sizes[0]) };
        char *blocks[COUNT];
        for (size_t i = 0; i < COUNT; i++) {
            blocks[i] = (char *)aligned(i, alignment, sizes[i]);
            CHECK_SAY(blocks[i] != NULL, "alignment %zu, size %zu", alignment, sizes[i]);
            CHECK_EQ((uintptr_t)blocks[i] % alignment, 0);
            CHECK_EQ((uintptr_t)blocks[i] % 16, 0);
            if (blocks[i] != NULL && sizes[i] > 0) {
                blocks[i][0] = (char)i;
                blocks[i][sizes[i] - 1] = (char)i;
            }
        }
        for (size_t i = 0; i < COUNT; i++) {
            CHECK(sizes[i] < 2 || (blocks[i][0] == (char)i && blocks[i][sizes[i] - 1] == (char)i));
            CHECK(call.malloc_usable_size(blocks[i]) >= sizes[i]);
            call.free(blocks[i]);
        }
    }
}

// Address space and memory come back, and a block of a page costs about a page.
static void gigabyte_alignments_cost_no_memory(void) {
    enum { LIVE = 10 };
    char *blocks[LIVE];
    call.free(call.memalign(1 << 20, 1));
    long size_before = status_kib("VmSize:");
    long rss_before = rss_kib();
    for (size_t alignment = 1 << 20; alignment <= (size_t)4 << 30; alignment *= 2) {
        for (size_t i = 0; i < LIVE; i++) {
            blocks[i] = (char *)aligned(i, alignment, i % 2 == 0 ? page : 2 << 20);
            REQUIRE(blocks[i] != NULL);
            CHECK_EQ((uintptr_t)blocks[i] % alignment, 0);
            blocks[i][0] = 1;
        }
        CHECK_AT_MOST(rss_kib() - rss_before, 64 * LIVE);
        for (size_t i = 0; i < LIVE; i++) {
            call.free(blocks[i]);
        }
    }
    CHECK_AT_MOST(status_kib("VmSize:") - size_before, 64 << 10);
}

struct held {
    unsigned char *start;
    size_t size;
    unsigned char mark;
};

static void check_and_free(struct held *held) {
    if (held->start == NULL) {
        return;
    }
    CHECK(all_bytes(held->start, held->mark, held->size));
    call.free(held->start);
    held->start = NULL;
}

// An address inside a slot must be mapped to its slot by every call.
static void aligned_blocks_through_every_call(void) {
    enum { HELD = 300 };
    static struct held held[HELD];
    struct dice dice = { test_seed() };
    for (size_t i = 0; i < 200000; i++) {
        struct held *one = &held[dice_below(&dice, HELD)];
        size_t size = dice_below(&dice, dice_below(&dice, 8) == 0 ? 50000 : 2000) + 1;
        if (one->start != NULL && i % 4 != 0) {
            size_t kept = size < one->size ? size : one->size;
            one->start = (unsigned char *)call.realloc(one->start, size);
            REQUIRE(one->start != NULL);
            CHECK(all_bytes(one->start, one->mark, kept));
        } else {
            size_t alignment = (size_t)16 << dice_below(&dice, 12);
            check_and_free(one);
            one->start = (unsigned char *)aligned(i, alignment, size);
            REQUIRE(one->start != NULL);
            CHECK_EQ((uintptr_t)one->start % alignment, 0);
        }
        one->size = call.malloc_usable_size(one->start);
        CHECK(one->size >= size);
        one->mark = (unsigned char)i;
        memset(one->start, one->mark, one->size);
        CHECK_EQ(call.malloc_usable_size(one->start), one->size);
    }
    for (size_t i = 0; i < HELD; i++) {
        check_and_free(&held[i]);
    }
}

// The compiler assumes 16 from malloc and moves vectors by it, blocks of a byte included.
static void small_blocks_are_aligned_to_16(void) {
    enum { LIVE = 100 };
    void *blocks[4 * LIVE];
    for (size_t size = 0; size <= 1024; size++) {
        for (size_t i = 0; i < LIVE; i++) {
            blocks[4 * i] = call.malloc(size);
            blocks[4 * i + 1] = call.calloc(1, size);
            blocks[4 * i + 2] = call.realloc(NULL, size);
            blocks[4 * i + 3] = call.realloc(call.malloc(size), (size * 7 + i * 31) % 1500 + 1);
        }
        for (size_t i = 0; i < 4 * LIVE; i++) {
            CHECK_SAY(blocks[i] != NULL && (uintptr_t)blocks[i] % 16 == 0, "%p of %zu", blocks[i],
                      size);
            call.free(blocks[i]);
        }
    }
}

int main(void) {
    entry_begin(60);
    every_alignment_and_size();
    gigabyte_alignments_cost_no_memory();
    aligned_blocks_through_every_call();
    small_blocks_are_aligned_to_16();
    return test_end();
}

// Does realloc keep the contents on every way between small, page, large and huge; does shrinking
// never fail; does a failed growth leave the block as it was?
#include "entry.h"
#include "../figures.h"

static const size_t sizes[] = { 1,       15,      16,      17,      100,    255,     256,
                                257,     1000,    1024,    1025,    2048,   4095,    4096,
                                4097,    8192,    12288,   30000,   32767,  32768,   32769,
                                40000,   65536,   65537,   200000,  262144, 1000000, 1048575,
                                1048576, 1048577, 3000000, 16 << 20 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

// Byte i of a block of this tag: the whole usable size is written, as programs do that ask for it.
static unsigned char pattern(size_t tag, size_t i) {
    return (unsigned char)(tag * 37 + i * 11 + (i >> 8));
}

static void fill(unsigned char *block, size_t tag, size_t size) {
    for (size_t i = 0; i < size; i++) {
        block[i] = pattern(tag, i);
    }
}

static bool holds(const unsigned char *block, size_t tag, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (block[i] != pattern(tag, i)) {
            return false;
        }
    }
    return true;
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

// One step; the block comes from malloc or, with an alignment, from memalign.
static void step(size_t alignment, size_t from, size_t to) {
    unsigned char *block =
        (unsigned char *)(alignment == 0 ? call.malloc(from) : call.memalign(alignment, from));
    REQUIRE(block != NULL);
    size_t usable = call.malloc_usable_size(block);
    fill(block, from, usable);
    errno = ERANGE;
    unsigned char *moved =
        (unsigned char *)(to % 2 == 0 ? call.realloc(block, to) : call.reallocarray(block, to, 1));
    REQUIRE(moved != NULL);
    CHECK_EQ(errno, ERANGE);
    CHECK_EQ((uintptr_t)moved % 16, 0);
    CHECK_SAY(call.malloc_usable_size(moved) >= to, "realloc of %zu to %zu", from, to);
    CHECK_SAY(holds(moved, from, least(usable, to)), "realloc of %zu to %zu loses bytes", from, to);
    memset(moved, 1, call.malloc_usable_size(moved));
    call.free(moved);
}

static void every_way(void) {
    for (size_t i = 0; i < SIZES; i++) {
        for (size_t k = 0; k < SIZES; k++) {
            if (sizes[i] + sizes[k] < (8 << 20) || i == k || (i + k) % 5 == 0) {
                step(0, sizes[i], sizes[k]);
            }
        }
        step(64, sizes[i] % 40000, sizes[(i * 7) % SIZES] % 100000 + 1);
        step(4096, sizes[i] % 40000, sizes[(i * 5) % SIZES] % 100000 + 1);
        step(1 << 16, sizes[i] % 40000, sizes[(i * 3) % SIZES] % 100000 + 1);
    }
}

static void slack_moves_along(void) {
    for (size_t n = 1; n <= 5000; n++) {
        step(0, n, 2 * n);
        step(0, n, 10 * n);
        step(0, n, n / 2 + 1);
    }
}

// A chain of growth and shrinking on one block, as a string buffer's life.
static void long_chain(void) {
    struct dice dice = { test_seed() };
    unsigned char *block = (unsigned char *)call.realloc(NULL, 1);
    size_t usable = call.malloc_usable_size(block);
    fill(block, 9, usable);
    for (size_t i = 0; i < 2000; i++) {
        size_t size = sizes[dice_below(&dice, SIZES - 4)] + dice_below(&dice, 100);
        block = (unsigned char *)call.realloc(block, size);
        REQUIRE(block != NULL);
        CHECK_SAY(holds(block, 9, least(usable, size)), "step %zu to %zu", i, size);
        usable = call.malloc_usable_size(block);
        fill(block, 9, usable);
    }
    call.free(block);
}

static void nothing_left(void) {
    void *unused = NULL;
    for (size_t size = 1 << 20; size >= 16; size /= 2) {
        while ((unused = call.malloc(size)) != NULL) {
            *(volatile char *)unused = 1;
        }
    }
    CHECK_EQ(errno, ENOMEM);
}

static void shrink_without_memory(void *unused) {
    (void)unused;
    const size_t from[] = { 8 << 20, 2 << 20, 1 << 16, 40000, 32768, 8192, 1000, 100 };
    enum { BLOCKS = sizeof(from) / sizeof(from[0]) };
    unsigned char *half[BLOCKS];
    unsigned char *tiny[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        half[i] = (unsigned char *)call.malloc(from[i]);
        tiny[i] = (unsigned char *)call.malloc(from[i]);
        REQUIRE(half[i] != NULL && tiny[i] != NULL);
        fill(half[i], i, from[i]);
        fill(tiny[i], i, from[i]);
    }
    unsigned char *small = (unsigned char *)call.malloc(1000);
    REQUIRE(small != NULL);
    fill(small, 5, 1000);
    size_t limit = (size_t)status_kib("VmSize:") * 1024 + (32 << 20);
    struct rlimit rlimit = { limit, limit };
    REQUIRE(setrlimit(RLIMIT_AS, &rlimit) == 0);
    nothing_left();
    // Growth first: afterwards the shrinking has freed something.
    errno = 0;
    CHECK(call.realloc(small, 64 << 20) == NULL);
    CHECK_EQ(errno, ENOMEM);
    CHECK(holds(small, 5, 1000));
    CHECK(call.realloc(half[0], 64 << 20) == NULL);
    CHECK(holds(half[0], 0, from[0]));
    for (size_t i = 0; i < BLOCKS; i++) {
        tiny[i] = (unsigned char *)call.realloc(tiny[i], any(1));
        CHECK_SAY(tiny[i] != NULL && tiny[i][0] == pattern(i, 0), "shrink of %zu to 1", from[i]);
        nothing_left();
        half[i] = (unsigned char *)call.realloc(half[i], from[i] / 2);
        CHECK_SAY(half[i] != NULL && holds(half[i], i, from[i] / 2), "shrink of %zu", from[i]);
        call.free(half[i]);
        call.free(tiny[i]);
    }
    CHECK(holds(small, 5, 1000));
    call.free(small);
}

int main(void) {
    entry_begin(90);
    every_way();
    slack_moves_along();
    long_chain();
    struct child_end end = run_child(shrink_without_memory, NULL, 30);
    expect_exit(&end, 0, "shrinking without memory");
    return test_end();
}

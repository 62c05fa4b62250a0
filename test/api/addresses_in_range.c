// Are all blocks where tagging engines and old ones can live with them: below 2^47, none below
// 4 GiB by choice, and spread so little that page tables stay small?
#include "entry.h"
#include "../figures.h"

#include <sys/mman.h>

// A port that has no such flag has no such programs either.
#ifndef MAP_32BIT
#define MAP_32BIT 0
#endif

static uintptr_t lowest = UINTPTR_MAX;
static uintptr_t highest;

static void *note(size_t size) {
    char *block = (char *)call.malloc(size);
    REQUIRE(block != NULL);
    block[0] = 1;
    uintptr_t start = (uintptr_t)block;
    lowest = start < lowest ? start : lowest;
    highest = start + size > highest ? start + size : highest;
    return block;
}

int main(void) {
    enum { SMALL = 100000, LARGE = 2000 };
    static void *blocks[SMALL + LARGE];
    entry_begin(30);
    struct dice dice = { test_seed() };
    for (size_t i = 0; i < SMALL; i++) {
        blocks[i] = note(16 + dice_below(&dice, i % 10 == 0 ? 4000 : 300));
    }
    for (size_t i = SMALL; i < SMALL + LARGE; i++) {
        blocks[i] = note(32769 + dice_below(&dice, i % 20 == 0 ? 3 << 20 : 100000));
    }
    CHECK_SAY(lowest >= (uintptr_t)1 << 32, "lowest address %#zx", (size_t)lowest);
    CHECK_SAY(highest <= (uintptr_t)1 << 47, "highest address %#zx", (size_t)highest);
    // Some 500 MiB of addresses need one MiB of page tables if compact.
    CHECK_AT_MOST(status_kib("VmPTE:"), 4096);
    void *low = mmap(NULL, (size_t)900 << 20, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_32BIT, -1, 0);
    CHECK_SAY(low != MAP_FAILED, "the low gigabytes are taken");
    for (size_t i = 0; i < SMALL + LARGE; i++) {
        call.free(blocks[i]);
    }
    return test_end();
}

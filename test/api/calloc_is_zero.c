// Is calloc's memory zero although what it gets was written and freed before, at every size?
//
// The trap is a run believed to be as the kernel gave it: after a purge that did nothing (locked
// pages), after a block shrank or moved, after a neighbour joined.
#include "entry.h"

#include <sys/mman.h>

enum { HELD = 24 };

// Writes blocks of about this size full of 0xaa and frees them in different orders.
static void make_dirty(size_t size, size_t count) {
    void *blocks[HELD];
    for (size_t i = 0; i < count; i++) {
        blocks[i] = call.malloc(size + i % 3);
        REQUIRE(blocks[i] != NULL);
        memset(blocks[i], 0xaa, call.malloc_usable_size(blocks[i]));
    }
    for (size_t i = 0; i < count; i += 2) {
        call.free(blocks[i]);
    }
    for (size_t i = 1; i < count; i += 2) {
        call.free(blocks[i]);
    }
}

static void zero_after_dirty_reuse(size_t size) {
    void *blocks[HELD];
    size_t count = size > (4 << 20) ? 2 : size > 100000 ? 6 : HELD;
    for (size_t round = 0; round < 2; round++) {
        make_dirty(size, count);
        for (size_t i = 0; i < count; i++) {
            blocks[i] = i % 2 == 0 ? call.calloc(1, size) : call.__libc_calloc(size, 1);
            REQUIRE(blocks[i] != NULL);
            CHECK_SAY(all_bytes(blocks[i], 0, size), "calloc(%zu) is dirty", size);
            memset(blocks[i], 0xbb, call.malloc_usable_size(blocks[i]));
        }
        for (size_t i = 0; i < count; i++) {
            call.free(blocks[i]);
        }
    }
}

static void every_size(void) {
    for (size_t size = 1; size <= 4200; size += size < 300 ? 1 : 17) {
        zero_after_dirty_reuse(size);
    }
    for (size_t size = 4200; size <= 140000; size += 1111) {
        zero_after_dirty_reuse(size);
    }
    for (size_t size = 4096; size <= ((size_t)16 << 20); size *= 2) {
        zero_after_dirty_reuse(size - 1);
        zero_after_dirty_reuse(size);
        zero_after_dirty_reuse(size + 1);
    }
}

// Small dirty pieces join to one run, and a large dirty run is cut: both must be known as dirty.
static void mixed_sizes(void) {
    struct dice dice = { test_seed() };
    enum { SLOTS = 400 };
    void *blocks[SLOTS] = { NULL };
    for (size_t i = 0; i < 40000; i++) {
        size_t k = dice_below(&dice, SLOTS);
        size_t size = (size_t)1 << (4 + dice_below(&dice, 15));
        size += dice_below(&dice, size);
        call.free(blocks[k]);
        if (i % 3 == 0) {
            blocks[k] = call.calloc(1, size);
            REQUIRE(blocks[k] != NULL);
            CHECK_SAY(all_bytes(blocks[k], 0, size), "calloc(%zu) is dirty", size);
        } else {
            blocks[k] = call.malloc(size);
            REQUIRE(blocks[k] != NULL);
        }
        memset(blocks[k], 0xcc, call.malloc_usable_size(blocks[k]));
        if (i % 16 == 0) {
            blocks[k] = call.realloc(blocks[k], size / 2 + 1);
            memset(blocks[k], 0xcc, call.malloc_usable_size(blocks[k]));
        }
    }
    for (size_t k = 0; k < SLOTS; k++) {
        call.free(blocks[k]);
    }
}

// A failing purge of locked pages must not be taken for a zeroing one.
static void locked_pages_freed_without_unlocking(size_t size) {
    for (size_t round = 0; round < 4; round++) {
        void *block = call.malloc(size);
        REQUIRE(block != NULL);
        if (mlock(block, size) != 0) {
            say("mlock of %zu: %s: not tested\n", size, strerror(errno));
            call.free(block);
            return;
        }
        memset(block, 0xaa, size);
        call.free(block);
        (void)call.malloc_usable_size(NULL);
        malloc_trim(0);
        void *blocks[HELD];
        for (size_t i = 0; i < HELD; i++) {
            blocks[i] = call.calloc(1, i % 2 == 0 ? size : 4096);
            REQUIRE(blocks[i] != NULL);
            CHECK_SAY(all_bytes(blocks[i], 0, i % 2 == 0 ? size : 4096), "after mlock of %zu",
                      size);
        }
        for (size_t i = 0; i < HELD; i++) {
            call.free(blocks[i]);
        }
        munlockall();
    }
}

int main(void) {
    entry_begin(90);
    every_size();
    mixed_sizes();
    locked_pages_freed_without_unlocking(4 << 20);
    locked_pages_freed_without_unlocking(200000);
    locked_pages_freed_without_unlocking(8192);
    return test_end();
}

// judge.c - every block in use is found for what it is, and every other place is refused.
#include <config.h>

#include "alloc.h"
#include "arena.h"
#include "base.h"
#include "harness.h"
#include "judge.h"
#include "os.h"
#include "pagemap.h"
#include "slab.h"

// Slots of every length, large and huge blocks.
static void check_blocks(void) {
    for (size_t size = 0; size <= (size_t)4 << 20; size += size / 5 + 1) {
        char *blocks[20];
        for (size_t i = 0; i < 20; i++) {
            blocks[i] = pma_malloc(size);
            REQUIRE(blocks[i] != NULL);
            struct block block = pma_judge_block("test", blocks[i]);
            CHECK(block.run == pagemap_find((uintptr_t)blocks[i]));
            CHECK(block.usable >= size && (block.usable == 0) == (size == 0));
            if (run_kind(block.run) == RUN_SLAB) {
                size_t unit = block.run->size >> block.run->shift;
                CHECK_EQ(block.run->base + block.index * unit, (uintptr_t)blocks[i]);
            } else {
                CHECK_EQ(block.run->base, (uintptr_t)blocks[i]);
                CHECK_EQ(block.run->size, block.usable);
            }
        }
        for (size_t i = 0; i < 20; i++) {
            pma_free(blocks[i]);
        }
    }
}

static void judge(void *pointer) {
    (void)pma_judge_block("test", pointer);
}

// A place inside a block is none, whether a slot could begin there by its unit or not.
static void check_middles(void) {
    static const size_t sizes[] = { 48, 1000, 3000, 30000, 100000, (size_t)2 << 20 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char *block = pma_malloc(sizes[i]);
        REQUIRE(block != NULL);
        const struct run *run = pagemap_find((uintptr_t)block);
        expect_abort(judge, block + 16, "pointer into the middle of a block");
        expect_abort(judge, block + 17, "misaligned pointer");
        if (run_kind(run) == RUN_SLAB && (run->size >> run->shift) % 16 == 0) {
            size_t unit = run->size >> run->shift;
            if (unit < run->size) {
                expect_abort(judge, block + unit, "pointer into the middle of a block");
            }
        }
        pma_free(block);
    }
}

// What was handed out by nobody: the end of a slab's last page, slots that are free, a run that
// waits in a cache, pages of the heap that are free, its own descriptors.
static void check_refused(void) {
    char *slot = pma_malloc(3000);
    REQUIRE(slot != NULL);
    struct run *run = pagemap_find((uintptr_t)slot);
    uintptr_t end = run->start + ((uintptr_t)run->npages << pma_page_shift);
    size_t slots = slab_slots(slab_of(run));
    if (run->base + slots * run->size < end) {
        expect_abort(judge, (void *)(end - 16), "pointer into the middle of a block");
    }
    for (size_t i = 0; i < slots; i++) {
        char *other = (char *)run->base + i * run->size;
        if (other != slot) {
            expect_abort(judge, other, "double free");
        }
    }
    expect_abort(judge, run, "not a block of pamalloc");
    char *large = pma_malloc(50000);
    struct run *cached = pagemap_find((uintptr_t)large);
    pma_free(large);
    CHECK_EQ(run_kind(cached), RUN_CACHED);
    expect_abort(judge, large, "double free");
    (void)pma_alloc_trim();
    CHECK(run_kind(cached) != RUN_CACHED);
    expect_abort(judge, large, "test(): ");
    pma_free(slot);
}

int main(void) {
    test_begin(60);
    check_blocks();
    check_middles();
    check_refused();
    return test_end();
}

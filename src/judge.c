// judge.c - is a pointer a block in use, and if not, what is wrong with it?
#include <config.h>

#include "judge.h"

#include "arena.h"
#include "fatal.h"
#include "os.h"
#include "pagemap.h"
#include "slab.h"

PMA_COLD _Noreturn void pma_judge_refuse(const char *call, const void *pointer) {
    uintptr_t address = (uintptr_t)pointer;
    struct fatal_block block = { pointer, 0, -1 };
    if (!is_user_address(address)) {
        pma_fatal(call, "not a user address", block);
    }
    const struct run *run = pagemap_find(address);
    if (run == NULL) {
        run = pma_pagemap_find_cover(address);
    }
    if (run == NULL) {
        pma_fatal(call, "not a block of pamalloc", block);
    }
    enum run_kind kind = run_kind(run);
    bool is_block = kind == RUN_HUGE || kind == RUN_LARGE;
    size_t bytes = is_block || kind == RUN_CACHED ? run->base - run->start + run->size
                                                  : (size_t)run->npages << pma_page_shift;
    bool gone = kind == RUN_UNUSED && pagemap_find(address) == run;
    if (!gone && address - run->start >= bytes) {
        pma_fatal(call, "not a block of pamalloc", block);
    }
    if (address % PMA_SLOT_MIN != 0) {
        pma_fatal(call, "misaligned pointer", block);
    }
    if (kind == RUN_SLAB) {
        struct position position = slab_position(run, address);
        uint64_t slot = position.index >> run->shift;
        block.size = run->size;
        if (position.exact && slot << run->shift == position.index) {
            block.slot = (ptrdiff_t)slot;
            pma_fatal(call, "double free", block);
        }
        pma_fatal(call, "pointer into the middle of a block", block);
    }
    block.size = gone ? 0 : bytes;
    if (is_block && address != run->base) {
        pma_fatal(call, "pointer into the middle of a block", block);
    }
    pma_fatal(call, "double free", block);
}

struct block pma_judge_block(const char *call, const void *pointer) {
    uintptr_t address = (uintptr_t)pointer;
    struct run *run = pagemap_find(address);
    if (run == NULL) {
        pma_judge_refuse(call, pointer);
    }
    enum run_kind kind = run_kind(run);
    if (kind == RUN_SLAB) {
        struct position position = slab_position(run, address);
        uint64_t live = slab_live(slab_of(run), position.index / 64);
        if (!position.exact || (live >> position.index % 64 & 1) == 0) {
            pma_judge_refuse(call, pointer);
        }
        size_t usable = run->bin == offsetof(struct arena, bins[0]) ? 0 : run->size;
        return (struct block){ run, position.index, usable };
    }
    if ((kind != RUN_LARGE && kind != RUN_HUGE) || run->base != address) {
        pma_judge_refuse(call, pointer);
    }
    return (struct block){ run, 0, run->size };
}

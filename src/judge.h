// judge.h - is a pointer a block in use, and if not, what is wrong with it?
//
// Owns the answers, and the texts that a wrong program dies with. It reads the page map and
// descriptors, takes no lock, and must not know how a block is freed.
#ifndef PMA_JUDGE_H
#define PMA_JUDGE_H

#include "base.h"
#include "run.h"

// A block in use, as far as the calling thread can know.
struct block {
    struct run *run;
    uint64_t index; // slabs: the slot's position
    size_t usable;  // bytes from its address
};

// The block at a pointer. It ends the program if there is none in use.
struct block pma_judge_block(const char *call, const void *pointer);

// The one place that finds out what is wrong with a pointer. It never returns.
PMA_COLD _Noreturn void pma_judge_refuse(const char *call, const void *pointer);

#endif

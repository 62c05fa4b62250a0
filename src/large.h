// large.h - blocks that are whole runs: large ones in the page heap, and by way of huge.h those
// with a mapping.
//
// Owns their growth in place and the run cache of an arena, which is guarded as its arena is. It
// must not know arenas.
#ifndef PMA_LARGE_H
#define PMA_LARGE_H

#include "base.h"
#include "pageheap.h"
#include "random.h"
#include "run.h"
#include "tune.h"

// Recently freed runs, to be used again without a lock. Which one is taken and which one makes
// place is drawn.
struct run_cache {
    uint32_t lengths[PMA_CACHE_RUNS] PMA_ALIGNED(16); // pages of each, 0: an empty place
    struct run *runs[PMA_CACHE_RUNS];
    size_t bytes; // all of them together, at most limit
    bool is_used; // since this was last set to false
    size_t limit; // grows with use from PMA_CACHE_MIN to PMA_CACHE_MAX
};

// What large blocks need of their arena.
struct large_source {
    struct run_cache *cache;
    struct stream *stream;
    unsigned shard;
};

// A block of at least size bytes, at most PTRDIFF_MAX, aligned to a power of two; its run, or NULL:
// no memory. run->zero says whether all of it reads as zero.
struct run *pma_large_take(struct large_source source, size_t size, size_t alignment);

// Frees a block; false if it is not in use: freed before. From any thread, and without an arena
// source.cache is NULL.
bool pma_large_give(struct large_source source, struct run *run);

// Makes the block fit another size without moving its contents in memory, as far as address and
// alignment of the block allow: shrinks, grows into free pages behind it, or lets the kernel move a
// huge mapping. The block's new address is run->base. False: unchanged.
bool pma_large_resize(struct run *run, size_t size);

// All cached runs go back to the page heap.
void pma_run_cache_empty(struct run_cache *cache);

// How a size is served: in slots up to PMA_SLOT_MAX, as a run, or huge.
PMA_INLINE bool is_huge(size_t size) {
    return size >= PMA_HUGE_MIN;
}

#endif

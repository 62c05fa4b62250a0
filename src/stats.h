// stats.h - what the heap holds, counted by walking the page map.
//
// Owns nothing: the descriptors are the truth. Other threads go on meanwhile, so the sums are exact
// only while the program stands still. It takes no lock, allocates nothing and must not know how a
// report looks.
#ifndef PMA_STATS_H
#define PMA_STATS_H

#include "base.h"

struct stats {
    size_t slabs;        // how many
    size_t slab_bytes;   // in their runs
    size_t slots_live;   // slots in use
    size_t slots_bytes;  // bytes in them
    size_t large;        // how many blocks
    size_t large_bytes;  // in their runs
    size_t huge;         // how many blocks
    size_t huge_bytes;   // in their mappings
    size_t dirty_runs;   // how many
    size_t dirty_bytes;  // free, with old contents
    size_t clean_runs;   // how many
    size_t clean_bytes;  // free, zero
    size_t closed_bytes; // free, neither memory nor a promise of it
    size_t cached_bytes; // freed blocks in caches
    size_t committed;    // writable bytes of all regions
    size_t meta;         // bytes for descriptors
    size_t arenas;       // how many
    size_t arenas_idle;  // of which no thread has
    size_t lock_waits;   // how often a thread found a lock held, since the start
};

void pma_stats_collect(struct stats *stats);

#endif

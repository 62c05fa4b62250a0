// run.h - the descriptor of a run.
//
// Owns the layout that all kinds of run share, so that the page map and the fast path of free know
// a descriptor without knowing the page heap or slabs. A run that is no slab has no owner: the fast
// path needs one test. Descriptors are never unmapped and stay descriptors, so whatever pointer a
// program frees, reading one is safe.
#ifndef PMA_RUN_H
#define PMA_RUN_H

#include "base.h"
#include "tune.h"

struct arena;

enum run_kind {
    RUN_UNUSED, // a descriptor in reserve
    RUN_SLAB,   // cut in slots
    RUN_LARGE,  // one block
    RUN_CACHED, // a large block's pages, freed, in an arena's run cache
    RUN_HUGE,   // one block with a mapping of its own
    RUN_DIRTY,  // free in a shard, with old contents
    RUN_CLEAN,  // free in a shard, known to be zero
    RUN_CLOSED, // free in a shard, PROT_NONE: neither memory nor a promise of it
    RUN_PURGING // free, on its way from one of these states to another
};

// const while the run is in use, unless said otherwise. While it is free its shard's lock guards
// all of it; for huge blocks that is the huge lock. Descriptors lie PMA_APART bytes apart or more.
struct run {
    // Cold line.
    uint8_t kind;     // atomic; enum run_kind
    uint8_t zero;     // the pages were never written: calloc need not clear them
    uint16_t shard;   // which page heap it came from
    uint32_t npages;  // its length; huge: not used
    uintptr_t start;  // its first byte
    struct run *next; // in a list: free runs, huge blocks; slabs (owner): those with room in a bin
    struct run *prev;
    size_t size; // large and huge: bytes from base that the program may use; slabs: a slot's
    union {
        struct {           // huge
            size_t mapped; // bytes of the mapping; behind what the block may use there can be more
        };
        struct { // free dirty runs: in order of age
            struct run *older;
            struct run *newer;
            uint64_t age; // when it was freed, nanoseconds
        };
        struct {                   // slabs
            struct remote *remote; // const; what other threads write, see slab.h
            uint64_t room;         // owner; words that have room, as far as is known
            uint32_t bias;         // owner; count + bias frees lead to an empty slab
            uint8_t words;         // const; how many words of slots it has
            uint8_t shift;         // const; a slot is 1 << shift bits of a word
            uint8_t capacity;      // const; which size of descriptor this is
            uint8_t enough; // const; sampled slots that must be free to use a word again at once
        };
    };
#if UINTPTR_MAX == UINT32_MAX
    uint8_t fill[16];
#endif
    // Hot line.
    uintptr_t base;      // the first slot, or the block's address
    uint64_t inverse;    // slabs: 2^64 / unit, rounded up
    struct arena *owner; // slabs only, else NULL
    uint32_t count;      // owner; slabs: frees until the slab wants attention
    uint32_t bin;        // slabs: offset of its bin in the owner
};

_Static_assert(offsetof(struct run, base) == 64, "the hot fields begin a cache line");
_Static_assert(sizeof(struct run) <= PMA_APART, "descriptors lie PMA_APART bytes apart");

PMA_INLINE enum run_kind run_kind(const struct run *run) {
    return (enum run_kind)__atomic_load_n(&run->kind, __ATOMIC_ACQUIRE);
}

PMA_INLINE void run_set_kind(struct run *run, enum run_kind kind) {
    __atomic_store_n(&run->kind, (uint8_t)kind, __ATOMIC_RELEASE);
}

#endif

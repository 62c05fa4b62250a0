// pagemap.h - address -> descriptor of the run that holds it.
//
// Owns a two-level table: 2^17 entries of 1 GiB, leaves of 2^18 entries, one per granule of 4 KiB.
// A slab enters all its granules, any other run those of its first page and of its last granule;
// what no longer belongs to a run is cleared. Look-up takes no lock and touches nothing but the
// table. Writers of one granule exclude each other by owning the pages; new leaves are made under
// the page map's lock. It must not know what a descriptor holds.
#ifndef PMA_PAGEMAP_H
#define PMA_PAGEMAP_H

#include "base.h"
#include "run.h"
#include "tune.h"

#define PMA_TOP_ENTRIES ((size_t)1 << (PMA_ADDRESS_BITS - PMA_LEAF_SHIFT))
#define PMA_LEAF_ENTRIES ((size_t)1 << (PMA_LEAF_SHIFT - PMA_GRANULE_SHIFT))

struct leaf {
    uintptr_t entries[PMA_LEAF_ENTRIES]; // atomic; the run's distance from pma_pagemap.none
    // On a page of its own, writable from the beginning.
    struct leaf *next; // const; the leaf made before this one
    size_t top;        // const; whose leaf it is
    // atomic; a bit for each piece of the entries that is writable
    uint32_t pieces;
};

struct pagemap {
    // The run of an entry that is 0: nobody's. Free compares the owner and need not look for NULL.
    struct run none;
    // atomic; where the leaf's first entry would be if it held one for every address from 0 on: so
    // a look-up needs no remainder. 0: there is no leaf. Leaves are never unmapped.
    uintptr_t top[PMA_TOP_ENTRIES];
    struct leaf *newest; // lock to write, atomic to read; all leaves, by next
};

extern struct pagemap pma_pagemap;

PMA_INLINE size_t pagemap_granule(uintptr_t address) {
    return address >> PMA_GRANULE_SHIFT & (PMA_LEAF_ENTRIES - 1);
}

PMA_INLINE struct leaf *pagemap_leaf(size_t top) {
    uintptr_t from = __atomic_load_n(&pma_pagemap.top[top], __ATOMIC_ACQUIRE);
    return from == 0 ? NULL : (struct leaf *)(from + top * PMA_LEAF_ENTRIES * sizeof(uintptr_t));
}

PMA_INLINE uintptr_t *pagemap_entry(uintptr_t from, uintptr_t address) {
    return (uintptr_t *)(from + (address >> PMA_GRANULE_SHIFT) * sizeof(uintptr_t));
}

PMA_INLINE struct run *pagemap_run(uintptr_t entry) {
    return (struct run *)((uintptr_t)&pma_pagemap.none + entry);
}

// An entry of the first level. On x86 one instruction; the compiler adds the table's offset to the
// index first.
PMA_INLINE uintptr_t pagemap_top(size_t top) {
    uintptr_t from;
#ifdef __x86_64__
    __asm__ volatile("movq %c3(%1,%2,8), %0"
                     : "=r"(from)
                     : "r"(&pma_pagemap), "r"(top), "i"(offsetof(struct pagemap, top)));
#else
    from = __atomic_load_n(&pma_pagemap.top[top], __ATOMIC_RELAXED);
#endif
    return from;
}

// The run that holds the address, as far as its granule is entered, else pma_pagemap.none. Any
// value is a valid argument.
PMA_INLINE struct run *pagemap_look(uintptr_t address) {
    size_t top = address >> PMA_LEAF_SHIFT;
    if (unlikely(top >= PMA_TOP_ENTRIES)) {
        return &pma_pagemap.none;
    }
    uintptr_t from = pagemap_top(top);
    if (unlikely(from == 0)) {
        return &pma_pagemap.none;
    }
    return pagemap_run(__atomic_load_n(pagemap_entry(from, address), __ATOMIC_RELAXED));
}

// The same, NULL for none.
PMA_INLINE struct run *pagemap_find(uintptr_t address) {
    struct run *run = pagemap_look(address);
    return run == &pma_pagemap.none ? NULL : run;
}

// Enters one granule. The range was prepared before.
PMA_INLINE void pagemap_set(uintptr_t address, struct run *run) {
    uintptr_t from = __atomic_load_n(&pma_pagemap.top[address >> PMA_LEAF_SHIFT], __ATOMIC_RELAXED);
    uintptr_t entry = run == NULL ? 0 : (uintptr_t)run - (uintptr_t)&pma_pagemap.none;
    __atomic_store_n(pagemap_entry(from, address), entry, __ATOMIC_RELEASE);
}

// Makes the entries of a range writable, and if any is not yet, those of so many bytes more behind
// it too, if that can be had. False: no memory for it, and nothing may be entered there.
bool pma_pagemap_prepare(uintptr_t start, size_t size, size_t ahead);

// The same with what is ahead of need below the range.
bool pma_pagemap_prepare_below(uintptr_t start, size_t size, size_t ahead);

// Enters all granules of a range.
void pma_pagemap_fill(uintptr_t start, size_t size, struct run *run);

// Enters the granules of the first page and the last granule, as runs that are no slabs do.
void pma_pagemap_set_ends(uintptr_t start, size_t size, struct run *run);

// The run that covers an address whose own granule is not entered: the nearest entry below, if it
// reaches that far. Slow; only for the message of a wrong free.
struct run *pma_pagemap_find_cover(uintptr_t address);

// Calls visit once for each run in the page map. Runs that come or go meanwhile may be visited or
// not; the descriptor that is handed over is always one.
void pma_pagemap_walk(void (*visit)(struct run *run, void *context), void *context);

// The page map's lock, for fork.
struct lock;
struct lock *pma_pagemap_lock(void);

#endif

// region.h - address space for the page heap.
//
// Owns where the heap lies: stretches of address space at random places, reserved PROT_NONE and
// made writable from the front in steps that grow with the heap. One lock guards growing and is
// held across the calls to the kernel, another what is handed out. It hands out committed, zeroed
// pages in order of address and takes back only its top. It must not know runs.
#ifndef PMA_REGION_H
#define PMA_REGION_H

#include "base.h"

struct lock;

// Committed pages that nobody uses. size is 0 when there are none to be had.
struct extent {
    uintptr_t start;
    size_t size;
};

// Between need and want bytes (multiples of the page); fewer than need only at the end of a region:
// the caller keeps those and asks again. The page map's entries of the range are prepared.
struct extent pma_region_take(size_t need, size_t want);

// From now on several threads take pages: larger steps, and ahead of need, so that they wait less
// for each other.
void pma_region_share(void);
bool pma_region_is_shared(void);

// Takes the extent back if it is the top of the region, and drops its pages for good (VmData
// shrinks). False: it is not, or the kernel refused; the caller keeps it. After a refusal its pages
// may read as zero or not.
bool pma_region_give(struct extent extent);

// Address space at a random place, PROT_NONE, for regions, metadata and huge blocks alike. NULL:
// refused.
void *pma_region_reserve_somewhere(size_t size);

// Committed bytes, all regions together.
size_t pma_region_committed(void);

// Its locks, for fork; the growth lock comes first.
struct lock *pma_region_growth_lock(void);
struct lock *pma_region_lock(void);

#endif

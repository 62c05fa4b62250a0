// huge.h - blocks with a mapping of their own.
//
// Owns their descriptors, the list of those in use, and the cache of mappings that were freed; the
// huge lock guards all three. No call to the kernel is made under it. A huge block is known to the
// page map by its first page and its last granule; when it is unmapped, a tombstone stays at its
// first granule, so that freeing it again is recognised.
#ifndef PMA_HUGE_H
#define PMA_HUGE_H

#include "base.h"
#include "random.h"
#include "run.h"

// See large.h, whose functions call these.
struct run *pma_huge_take(size_t size, size_t alignment, struct stream *stream);
void pma_huge_give(struct run *run);
bool pma_huge_resize(struct run *run, size_t size);

// A block's place inside its run: a random multiple of 64 within the slack.
void pma_block_place(struct run *run, size_t run_bytes, size_t size, size_t alignment,
                     struct stream *stream);

// All cached mappings go back to the kernel. The number of bytes.
size_t pma_huge_cache_empty(void);

// The same if none was put or taken for a second.
void pma_huge_cache_tick(uint64_t now);

struct lock;
struct lock *pma_huge_lock(void);

#endif

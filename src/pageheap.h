// pageheap.h - runs by the page.
//
// Owns who gets which pages: the choice of shard and run, and growing when there is none. A run
// returns to its own shard. Locks are taken and left inside. It must not know what runs are used
// for.
#ifndef PMA_PAGEHEAP_H
#define PMA_PAGEHEAP_H

#include "base.h"
#include "random.h"
#include "run.h"
#include "shard.h"

// Pages by value, for users that bring a descriptor of their own.
struct pages {
    uintptr_t start;
    uint32_t npages;
    uint16_t shard;
    bool zero;
};

void pma_pageheap_init(unsigned nshards);

// npages pages from the shard, or if need be from another; aligned to align_pages pages (a power of
// two). Nothing is entered in the page map, but its entries are prepared. False: no memory,
// everything as it was.
bool pma_pageheap_take(unsigned shard, size_t npages, size_t align_pages, struct stream *stream,
                       struct pages *pages);
void pma_pageheap_give(struct pages pages);

// The same with a descriptor, whose start, npages, shard and zero are set. NULL: no memory.
struct run *pma_pageheap_take_run(unsigned shard, size_t npages, size_t align_pages,
                                  struct stream *stream);
void pma_pageheap_give_run(struct run *run);

// Makes a run longer by taking the free pages right behind it, or shorter by giving its last pages.
// The caller enters the new ends in the page map. False: the pages behind are not free.
bool pma_pageheap_extend(struct run *run, size_t npages);
void pma_pageheap_shorten(struct run *run, size_t npages);

// Counts bytes that come alive or die, and cached ones, outside the shards: huge blocks.
void pma_pageheap_count(ptrdiff_t live, ptrdiff_t cached);

#endif

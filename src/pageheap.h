// pageheap.h - runs by the page.
//
// Owns the shards: free runs in lists, dirty and clean apart, joined with their neighbours; the descriptors of runs;
// the giving back of memory to the kernel. Each shard has a lock, which guards its runs while they are free; no call
// to the kernel is made under it but the one that grows the heap. A run returns to its own shard. It must not know
// what runs are used for.
//
//   live + dirty + clean == all pages that the shard took from regions (runs that are being purged count as dirty)
#ifndef PMA_PAGEHEAP_H
#define PMA_PAGEHEAP_H

#include "base.h"
#include "lock.h"
#include "random.h"
#include "run.h"
#include "runlist.h"

struct shard {
    struct lock lock;
    struct runlist dirty; // lock; old contents
    struct runlist clean; // lock; zero
    struct run *oldest;   // lock; of the dirty runs, by age
    struct run *newest;   // lock
    uint64_t due;         // lock to write, atomic to read; when the oldest wants to go back
    struct run *unused;   // lock; descriptors in reserve
    struct lost *lost;    // lock; runs that are free but found no descriptor
    size_t live_pages;    // lock to write, atomic to read; handed out
    size_t dirty_pages;   // lock to write, atomic to read
    size_t clean_pages;   // lock to write, atomic to read
} PMA_ALIGNED(PMA_APART);

struct pageheap {
    struct shard shards[PMA_SHARDS_MAX];
    unsigned nshards;                   // const after init
    size_t live PMA_ALIGNED(PMA_APART); // atomic; bytes handed out, all shards and huge blocks
    size_t dirty; // atomic; free bytes with old contents, all shards and the huge cache
};

extern struct pageheap pma_pageheap;

// Pages by value, for users that bring a descriptor of their own.
struct pages {
    uintptr_t start;
    uint32_t npages;
    uint16_t shard;
    bool zero;
};

void pma_pageheap_init(unsigned nshards);

// npages pages from the shard, or if need be from another; aligned to align_pages pages (a power of two). Nothing is
// entered in the page map, but its entries are prepared. False: no memory, everything as it was.
bool pma_pageheap_take(unsigned shard, size_t npages, size_t align_pages, struct stream *stream,
                       struct pages *pages);
void pma_pageheap_give(struct pages pages);

// The same with a descriptor, whose start, npages, shard and zero are set. NULL: no memory.
struct run *pma_pageheap_take_run(unsigned shard, size_t npages, size_t align_pages,
                                  struct stream *stream);
void pma_pageheap_give_run(struct run *run);

// Makes a run longer by taking the free pages right behind it, or shorter by giving its last pages. The caller enters
// the new ends in the page map. False: the pages behind are not free.
bool pma_pageheap_extend(struct run *run, size_t npages);
void pma_pageheap_shorten(struct run *run, size_t npages);

// Gives dirty runs of all shards back to the kernel: all, or those above the limit and those that are old.
// The number of bytes.
size_t pma_pageheap_purge(bool all);

// Counts bytes that come alive or die, and dirty ones, outside the shards: huge blocks.
void pma_pageheap_count(ptrdiff_t live, ptrdiff_t dirty);

// How many dirty bytes there may be.
size_t pma_pageheap_dirty_limit(void);

#endif

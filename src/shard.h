// shard.h - the free runs of one page heap, and its descriptors.
//
// Owns the lists of free runs by state, the joining of neighbours, and the reserve of run
// descriptors. One lock guards all of a shard, and whoever calls a function here holds it; nothing
// here calls the kernel but for more descriptors. It must not know who takes runs or when memory
// goes back.
//
//   live + dirty + clean + closed == all pages that the shard took from regions
//   (runs on their way between two states count as dirty)
#ifndef PMA_SHARD_H
#define PMA_SHARD_H

#include "base.h"
#include "lock.h"
#include "os.h"
#include "run.h"
#include "runlist.h"

// The states of free runs: RUN_DIRTY, RUN_CLEAN and RUN_CLOSED less RUN_DIRTY.
#define PMA_FREE_KINDS 3

struct shard {
    struct lock lock;
    struct runlist lists[PMA_FREE_KINDS]; // lock
    size_t pages[PMA_FREE_KINDS];         // lock to write, atomic to read; in the lists
    size_t live_pages;                    // lock to write, atomic to read; handed out
    struct run *oldest;                   // lock; of the dirty runs, by age
    struct run *newest;                   // lock
    uint64_t due;       // lock to write, atomic to read; when the oldest wants to go
    struct run *unused; // lock; descriptors in reserve
    struct lost *lost;  // lock; runs that are free but found no descriptor
} PMA_ALIGNED(PMA_APART);

struct pageheap {
    struct shard shards[PMA_SHARDS_MAX];
    unsigned nshards;                   // const after init
    size_t live PMA_ALIGNED(PMA_APART); // atomic; bytes handed out, all shards and huge blocks
    size_t dirty;                       // atomic; free bytes with old contents
    size_t cached;                      // atomic; the same in the cache of huge blocks
    size_t clean;                       // atomic; free bytes that are zero and writable
};

extern struct pageheap pma_pageheap;

PMA_INLINE size_t run_bytes(const struct run *run) {
    return (size_t)run->npages << pma_page_shift;
}

PMA_INLINE uintptr_t run_end(const struct run *run) {
    return run->start + run_bytes(run);
}

void pma_shard_init(struct shard *shard);

// A descriptor whose shard is set; NULL: no memory.
struct run *pma_shard_take_descriptor(struct shard *shard);
void pma_shard_give_descriptor(struct shard *shard, struct run *run);

// True if there are descriptors for new pages and for both rests when a run is cut of them.
// Without, growing would not help whoever asks, however often it is done.
bool pma_shard_may_grow(struct shard *shard);

// Puts a run into the list of its state, or takes it out. Only its ends are entered in the page
// map.
void pma_shard_insert(struct shard *shard, struct run *run, enum run_kind kind);
void pma_shard_remove(struct shard *shard, struct run *run);

// Makes a run free, together with the free runs of the same state on both sides.
void pma_shard_join(struct shard *shard, struct run *run, enum run_kind kind);

// The same for pages without a descriptor. If none can be had, the pages themselves remember that
// they are free: freeing must lose nothing even when the kernel refuses everything. Not for closed
// pages.
void pma_shard_join_pages(struct shard *shard, uintptr_t start, size_t npages, enum run_kind kind);

// Tries to find descriptors for such pages; true if there are none left.
bool pma_shard_find_lost(struct shard *shard);

// The free run of this state that has the address at one of its ends.
struct run *pma_shard_neighbour(const struct shard *shard, uintptr_t address, enum run_kind kind);

// Cuts a free run, which is in no list now, to npages at the first multiple of align_pages pages;
// what is left over becomes free again. False if descriptors for the rest are missing: nothing is
// changed.
bool pma_shard_cut(struct shard *shard, struct run *run, size_t npages, size_t align_pages,
                   enum run_kind kind);

// A run is on its way from one state to another, in no list: the page map still knows it.
void pma_shard_depart(struct shard *shard, struct run *run);
void pma_shard_arrive(struct shard *shard, struct run *run, enum run_kind kind);

// Pages are handed out, or come back.
void pma_shard_count_live(struct shard *shard, ptrdiff_t npages);

#endif

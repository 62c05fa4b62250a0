// runlist.h - free runs by length.
//
// Owns the lists: one for each page count to 128, eight for each doubling above, and a bitmap of
// those that are not empty. The lock of the shard that holds a list guards it. It must not know
// neighbours, ages or states of runs.
#ifndef PMA_RUNLIST_H
#define PMA_RUNLIST_H

#include "base.h"
#include "random.h"
#include "run.h"
#include "tune.h"

// Eight lists for each doubling from 2^7 to 2^32 pages.
#define PMA_RUNLIST_BINS (PMA_EXACT_PAGES + 1 + 8 * 25)

struct runlist {
    uint64_t filled[(PMA_RUNLIST_BINS + 63) / 64]; // a bit for each list that is not empty
    struct run *heads[PMA_RUNLIST_BINS];
};

void pma_runlist_insert(struct runlist *list, struct run *run);
void pma_runlist_remove(struct runlist *list, struct run *run);

// The shortest run of at least npages (among long ones: about the shortest), one of several equal
// ones at random; NULL if there is none. It stays in the list.
struct run *pma_runlist_find(const struct runlist *list, size_t npages, struct stream *stream);

// One of the longest runs, if it has at least npages; else NULL. It stays in the list.
struct run *pma_runlist_longest(const struct runlist *list, size_t npages);

#endif

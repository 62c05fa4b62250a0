// purge.h - giving memory back to the kernel.
//
// Owns the rules: how much free memory may stay, and for how long. The kernel is called without a
// lock, in batches; meanwhile the runs are in no list and belong to nobody. It must not know what
// runs are used for.
#ifndef PMA_PURGE_H
#define PMA_PURGE_H

#include "base.h"
#include "shard.h"

// How many free bytes may be dirty.
size_t pma_purge_limit(void);

// Gives back what is above the limits in this shard, or has lain unused for long. Called after each
// free of a run.
void pma_purge_if_due(struct shard *shard);

// The same for all shards; with all set, everything. The number of bytes that were dropped.
size_t pma_purge(bool all);

// Somebody may sleep until there is something to give back; whoever frees calls. Without a sleeper
// it is one load.
enum { PURGE_AWAKE, PURGE_SLEEPS };
extern uint32_t pma_purge_sleeper; // atomic
void pma_purge_wake(void);

// Closes free runs of any size from 16 pages on, to make place under a limit on writable memory.
// True if any was.
bool pma_purge_close(void);

#endif

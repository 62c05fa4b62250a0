// purge.c - giving memory back to the kernel.
#include <config.h>

#include "purge.h"

#include "os.h"
#include "tune.h"

uint32_t pma_purge_sleeper;

void pma_purge_wake(void) {
    if (unlikely(__atomic_load_n(&pma_purge_sleeper, __ATOMIC_RELAXED) != PURGE_AWAKE) &&
        __atomic_exchange_n(&pma_purge_sleeper, PURGE_AWAKE, __ATOMIC_SEQ_CST) != PURGE_AWAKE) {
        pma_os_wake(&pma_purge_sleeper);
    }
}

static size_t dirty_bytes(void) {
    return __atomic_load_n(&pma_pageheap.dirty, __ATOMIC_RELAXED);
}

static size_t clean_bytes(void) {
    return __atomic_load_n(&pma_pageheap.clean, __ATOMIC_RELAXED);
}

size_t pma_purge_limit(void) {
    size_t live = __atomic_load_n(&pma_pageheap.live, __ATOMIC_RELAXED);
    return size_max(PMA_DIRTY_MIN, live / PMA_DIRTY_FRACTION);
}

// Drops the pages of a run that is in no list. A long one is closed, since it costs a mapping
// either way.
static enum run_kind run_drop(const struct run *run) {
    size_t bytes = run_bytes(run);
    if (bytes >= PMA_CLOSE_MIN && pma_os_decommit((void *)run->start, bytes)) {
        return RUN_CLOSED;
    }
    return pma_os_purge((void *)run->start, bytes) ? RUN_CLEAN : RUN_DIRTY;
}

static void run_return(struct shard *shard, struct run *run, enum run_kind kind) {
    lock_lock(&shard->lock);
    pma_shard_arrive(shard, run, kind);
    lock_unlock(&shard->lock);
}

// Takes the oldest dirty runs out of reach while there is more than the limit or they are older
// than before.
static size_t batch_begin(struct shard *shard, struct run **batch, size_t limit, uint64_t before) {
    size_t count = 0;
    lock_lock(&shard->lock);
    while (count < PMA_PURGE_BATCH && shard->oldest != NULL &&
           (dirty_bytes() > limit || shard->oldest->age <= before)) {
        batch[count] = shard->oldest;
        pma_shard_depart(shard, batch[count++]);
    }
    lock_unlock(&shard->lock);
    return count;
}

// When the kernel refuses, the runs stay dirty and young, and this round ends.
static size_t shard_purge(struct shard *shard, size_t limit, uint64_t before) {
    struct run *batch[PMA_PURGE_BATCH];
    size_t sum = 0;
    for (bool refused = false; !refused;) {
        size_t count = batch_begin(shard, batch, limit, before);
        for (size_t i = 0; i < count; i++) {
            size_t bytes = run_bytes(batch[i]);
            enum run_kind kind = run_drop(batch[i]);
            run_return(shard, batch[i], kind);
            sum += kind == RUN_DIRTY ? 0 : bytes;
            refused = refused || kind == RUN_DIRTY;
        }
        if (count < PMA_PURGE_BATCH) {
            break;
        }
    }
    return sum;
}

// Closes clean runs of at least so many pages while more than limit bytes are clean.
static size_t shard_close(struct shard *shard, size_t npages, size_t limit) {
    size_t sum = 0;
    while (clean_bytes() > limit) {
        lock_lock(&shard->lock);
        struct run *run = pma_runlist_longest(&shard->lists[RUN_CLEAN - RUN_DIRTY], npages);
        if (run != NULL) {
            pma_shard_depart(shard, run);
        }
        lock_unlock(&shard->lock);
        if (run == NULL) {
            break;
        }
        size_t bytes = run_bytes(run);
        bool closed = pma_os_decommit((void *)run->start, bytes);
        // Refused, its pages may be zero or not.
        run_return(shard, run, closed ? RUN_CLOSED : RUN_DIRTY);
        if (!closed) {
            break;
        }
        sum += bytes;
    }
    return sum;
}

static size_t close_pages(size_t bytes) {
    return size_max(bytes >> pma_page_shift, 1);
}

// Down to a quarter below the limit, so that a program whose need swings a little does not call the
// kernel each time.
void pma_purge_if_due(struct shard *shard) {
    size_t limit = pma_purge_limit();
    uint64_t now = pma_os_time();
    pma_purge_wake();
    if (dirty_bytes() > limit) {
        shard_purge(shard, limit - limit / 4, 0);
    }
    if (now >= __atomic_load_n(&shard->due, __ATOMIC_RELAXED)) {
        shard_purge(shard, limit, now - PMA_DIRTY_AGE);
    }
    if (clean_bytes() > limit) {
        shard_close(shard, close_pages(PMA_CLOSE_MIN), limit / 2);
    }
}

size_t pma_purge(bool all) {
    size_t sum = 0;
    for (unsigned i = 0; i < pma_pageheap.nshards; i++) {
        struct shard *shard = &pma_pageheap.shards[i];
        if (!all) {
            pma_purge_if_due(shard);
        } else {
            sum += shard_purge(shard, 0, UINT64_MAX);
            shard_close(shard, close_pages(PMA_CLOSE_MIN), 0);
        }
    }
    return sum;
}

bool pma_purge_close(void) {
    size_t sum = 0;
    for (unsigned i = 0; i < pma_pageheap.nshards; i++) {
        sum += shard_close(&pma_pageheap.shards[i], 16, 0);
    }
    return sum > 0;
}

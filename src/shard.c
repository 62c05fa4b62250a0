// shard.c - the free runs of one page heap, and its descriptors.
#include <config.h>

#include "shard.h"

#include "meta.h"
#include "pagemap.h"
#include "tune.h"

struct pageheap pma_pageheap;

struct lost {
    struct lost *next;
    size_t npages;
};

void pma_shard_init(struct shard *shard) {
    pma_lock_init(&shard->lock, LOCK_SHARD);
    shard->due = UINT64_MAX;
}

static unsigned index_of(const struct shard *shard) {
    return (unsigned)(shard - pma_pageheap.shards);
}

// ---- counting

static void pages_count(size_t *pages, ptrdiff_t npages) {
    __atomic_store_n(pages, *pages + (size_t)npages, __ATOMIC_RELAXED);
}

static void bytes_count(size_t *bytes, ptrdiff_t npages) {
    __atomic_fetch_add(bytes, (size_t)npages << pma_page_shift, __ATOMIC_RELAXED);
}

void pma_shard_count_live(struct shard *shard, ptrdiff_t npages) {
    pages_count(&shard->live_pages, npages);
    bytes_count(&pma_pageheap.live, npages);
}

static void free_count(struct shard *shard, enum run_kind kind, ptrdiff_t npages) {
    pages_count(&shard->pages[kind - RUN_DIRTY], npages);
    if (kind != RUN_CLOSED) {
        bytes_count(kind == RUN_DIRTY ? &pma_pageheap.dirty : &pma_pageheap.clean, npages);
    }
}

// ---- descriptors

// A descriptor's shard is set once: neighbours in other shards read it at any time.
static bool descriptors_ready(struct shard *shard, unsigned wanted) {
    unsigned ready = 0;
    for (const struct run *run = shard->unused; run != NULL && ready < wanted; run = run->next) {
        ready++;
    }
    if (likely(ready == wanted)) {
        return true;
    }
    char *batch = pma_meta_take(META_KEPT, PMA_RUN_BATCH * PMA_APART, PMA_APART);
    for (size_t i = 0; batch != NULL && i < PMA_RUN_BATCH; i++) {
        struct run *run = (struct run *)(batch + i * PMA_APART);
        run->shard = (uint16_t)index_of(shard);
        run->next = shard->unused;
        shard->unused = run;
    }
    return batch != NULL;
}

bool pma_shard_may_grow(struct shard *shard) {
    return descriptors_ready(shard, 3);
}

struct run *pma_shard_take_descriptor(struct shard *shard) {
    if (!descriptors_ready(shard, 1)) {
        return NULL;
    }
    struct run *run = shard->unused;
    shard->unused = run->next;
    return run;
}

void pma_shard_give_descriptor(struct shard *shard, struct run *run) {
    run_set_kind(run, RUN_UNUSED);
    run->next = shard->unused;
    shard->unused = run;
}

// ---- dirty runs by age

static void due_update(struct shard *shard) {
    uint64_t due = shard->oldest == NULL ? UINT64_MAX : shard->oldest->age + PMA_DIRTY_AGE;
    __atomic_store_n(&shard->due, due, __ATOMIC_RELAXED);
}

// Behind the last run that is not younger: for one that was just freed that is the newest. Who would
// have to pass more than this many comes first, so that a free is not slow.
#define AGE_STEPS 64

static struct run *age_find(const struct shard *shard, uint64_t age) {
    struct run *run = shard->newest;
    for (unsigned steps = 0; run != NULL && run->age > age; steps++) {
        run = steps < AGE_STEPS ? run->older : NULL;
    }
    return run;
}

static void age_insert(struct shard *shard, struct run *run) {
    run->older = age_find(shard, run->age);
    run->newer = run->older != NULL ? run->older->newer : shard->oldest;
    if (run->older != NULL) {
        run->older->newer = run;
    } else {
        shard->oldest = run;
    }
    if (run->newer != NULL) {
        run->newer->older = run;
    } else {
        shard->newest = run;
    }
    due_update(shard);
}

static void age_remove(struct shard *shard, struct run *run) {
    if (run->older != NULL) {
        run->older->newer = run->newer;
    } else {
        shard->oldest = run->newer;
    }
    if (run->newer != NULL) {
        run->newer->older = run->older;
    } else {
        shard->newest = run->older;
    }
    due_update(shard);
}

// ---- free runs

static void ends_set(const struct run *run, struct run *entry) {
    pagemap_set(run->start, entry);
    pagemap_set(run_end(run) - PMA_GRANULE, entry);
}

void pma_shard_remove(struct shard *shard, struct run *run) {
    enum run_kind kind = run_kind(run);
    pma_runlist_remove(&shard->lists[kind - RUN_DIRTY], run);
    if (kind == RUN_DIRTY) {
        age_remove(shard, run);
    }
    free_count(shard, kind, -(ptrdiff_t)run->npages);
    ends_set(run, NULL);
}

void pma_shard_insert(struct shard *shard, struct run *run, enum run_kind kind) {
    run->base = run->start;
    run->owner = NULL;
    run_set_kind(run, kind);
    pma_runlist_insert(&shard->lists[kind - RUN_DIRTY], run);
    if (kind == RUN_DIRTY) {
        age_insert(shard, run);
    }
    free_count(shard, kind, run->npages);
    ends_set(run, run);
}

// A neighbour that belongs to another shard may change at any moment, but never into one of ours:
// that takes our lock.
struct run *pma_shard_neighbour(const struct shard *shard, uintptr_t address, enum run_kind kind) {
    struct run *run = pagemap_find(address);
    if (run == NULL || run_kind(run) != kind || run->shard != index_of(shard)) {
        return NULL;
    }
    return run;
}

static bool fits_length(const struct run *a, const struct run *b) {
    return (uint64_t)a->npages + b->npages <= UINT32_MAX;
}

// A run is as old as its longer part: else a page that is freed next to much that lies unused would
// keep all of it for a second more, and again.
static void run_absorb(struct shard *shard, struct run *run, struct run *neighbour) {
    pma_shard_remove(shard, neighbour);
    if (neighbour->npages > run->npages) {
        run->age = neighbour->age;
    }
    run->start = run->start < neighbour->start ? run->start : neighbour->start;
    run->npages += neighbour->npages;
    pma_shard_give_descriptor(shard, neighbour);
}

void pma_shard_join(struct shard *shard, struct run *run, enum run_kind kind) {
    struct run *before = pma_shard_neighbour(shard, run->start - PMA_GRANULE, kind);
    if (before != NULL && run_end(before) == run->start && fits_length(before, run)) {
        run_absorb(shard, run, before);
    }
    struct run *behind = pma_shard_neighbour(shard, run_end(run), kind);
    if (behind != NULL && behind->start == run_end(run) && fits_length(behind, run)) {
        run_absorb(shard, run, behind);
    }
    pma_shard_insert(shard, run, kind);
}

void pma_shard_join_pages(struct shard *shard, uintptr_t start, size_t npages, enum run_kind kind) {
    struct run *run = pma_shard_take_descriptor(shard);
    if (unlikely(run == NULL)) {
        struct lost *lost = (struct lost *)start;
        lost->next = shard->lost;
        lost->npages = npages;
        shard->lost = lost;
        return;
    }
    run->start = start;
    run->npages = (uint32_t)npages;
    run->age = pma_os_time();
    pma_shard_join(shard, run, kind);
}

PMA_COLD bool pma_shard_find_lost(struct shard *shard) {
    while (shard->lost != NULL && descriptors_ready(shard, 1)) {
        struct lost *lost = shard->lost;
        shard->lost = lost->next;
        pma_shard_join_pages(shard, (uintptr_t)lost, lost->npages, RUN_DIRTY);
    }
    return shard->lost == NULL;
}

// A rest keeps the age of what it is cut from.
static struct run *rest_take(struct shard *shard, const struct run *run, uintptr_t start,
                             size_t npages) {
    struct run *rest = pma_shard_take_descriptor(shard);
    if (rest != NULL) {
        rest->start = start;
        rest->npages = (uint32_t)npages;
        rest->age = run->age;
    }
    return rest;
}

bool pma_shard_cut(struct shard *shard, struct run *run, size_t npages, size_t align_pages,
                   enum run_kind kind) {
    uintptr_t start = align_up(run->start, align_pages << pma_page_shift);
    size_t before = (start - run->start) >> pma_page_shift;
    size_t behind = run->npages - npages - before;
    struct run *rests[2] = { NULL, NULL };
    if (before > 0 && (rests[0] = rest_take(shard, run, run->start, before)) == NULL) {
        return false;
    }
    if (behind > 0) {
        rests[1] = rest_take(shard, run, start + (npages << pma_page_shift), behind);
        if (rests[1] == NULL) {
            if (rests[0] != NULL) {
                pma_shard_give_descriptor(shard, rests[0]);
            }
            return false;
        }
    }
    for (int i = 0; i < 2; i++) {
        if (rests[i] != NULL) {
            pma_shard_insert(shard, rests[i], kind);
        }
    }
    run->start = start;
    run->npages = (uint32_t)npages;
    return true;
}

void pma_shard_depart(struct shard *shard, struct run *run) {
    pma_shard_remove(shard, run);
    run_set_kind(run, RUN_PURGING);
    ends_set(run, run);
    pages_count(&shard->pages[0], run->npages);
}

void pma_shard_arrive(struct shard *shard, struct run *run, enum run_kind kind) {
    pages_count(&shard->pages[0], -(ptrdiff_t)run->npages);
    ends_set(run, NULL);
    run->age = pma_os_time();
    pma_shard_join(shard, run, kind);
}

// pageheap.c - runs by the page: shards, joining, giving back.
#include <config.h>

#include "pageheap.h"

#include "meta.h"
#include "os.h"
#include "pagemap.h"
#include "region.h"
#include "tune.h"

struct pageheap pma_pageheap;

// A run that is free but for which no descriptor could be had lies in this list, through its own pages, until one
// can: free must lose nothing even when the kernel refuses everything.
struct lost {
    struct lost *next;
    size_t npages;
};

void pma_pageheap_init(unsigned nshards) {
    pma_pageheap.nshards = nshards;
    for (unsigned i = 0; i < nshards; i++) {
        pma_lock_init(&pma_pageheap.shards[i].lock, LOCK_SHARD);
        pma_pageheap.shards[i].due = UINT64_MAX;
    }
}

static size_t bytes_of(size_t npages) {
    return npages << pma_page_shift;
}

static uintptr_t end_of(const struct run *run) {
    return run->start + bytes_of(run->npages);
}

static unsigned index_of(const struct shard *shard) {
    return (unsigned)(shard - pma_pageheap.shards);
}

static void count_pages(size_t *counter, ptrdiff_t npages) {
    __atomic_store_n(counter, *counter + (size_t)npages, __ATOMIC_RELAXED);
}

void pma_pageheap_count(ptrdiff_t live, ptrdiff_t dirty) {
    if (live != 0) {
        __atomic_fetch_add(&pma_pageheap.live, (size_t)live, __ATOMIC_RELAXED);
    }
    if (dirty != 0) {
        __atomic_fetch_add(&pma_pageheap.dirty, (size_t)dirty, __ATOMIC_RELAXED);
    }
}

size_t pma_pageheap_dirty_limit(void) {
    size_t live = __atomic_load_n(&pma_pageheap.live, __ATOMIC_RELAXED);
    return size_max(PMA_DIRTY_MIN, live / PMA_DIRTY_FRACTION);
}

static size_t dirty_bytes(void) {
    return __atomic_load_n(&pma_pageheap.dirty, __ATOMIC_RELAXED);
}

// ---- descriptors

static bool descriptor_ready(struct shard *shard) {
    if (unlikely(shard->unused == NULL)) {
        char *batch = pma_meta_take(META_KEPT, PMA_RUN_BATCH * PMA_APART, PMA_APART);
        for (size_t i = 0; batch != NULL && i < PMA_RUN_BATCH; i++) {
            struct run *run = (struct run *)(batch + i * PMA_APART);
            run->next = shard->unused;
            shard->unused = run;
        }
    }
    return shard->unused != NULL;
}

static struct run *descriptor_take(struct shard *shard) {
    if (!descriptor_ready(shard)) {
        return NULL;
    }
    struct run *run = shard->unused;
    shard->unused = run->next;
    run->shard = (uint16_t)index_of(shard);
    return run;
}

static void descriptor_give(struct shard *shard, struct run *run) {
    run_set_kind(run, RUN_UNUSED);
    run->next = shard->unused;
    shard->unused = run;
}

// ---- free runs, under the shard's lock

static void due_update(struct shard *shard) {
    uint64_t due = shard->oldest == NULL ? UINT64_MAX : shard->oldest->age + PMA_DIRTY_AGE;
    __atomic_store_n(&shard->due, due, __ATOMIC_RELAXED);
}

static void age_append(struct shard *shard, struct run *run) {
    run->older = shard->newest;
    run->newer = NULL;
    if (shard->newest != NULL) {
        shard->newest->newer = run;
    } else {
        shard->oldest = run;
    }
    shard->newest = run;
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

// Only the ends of a free run are in the page map: enough for its neighbours, and for the message of a wrong free.
static void ends_set(const struct run *run, struct run *entry) {
    pagemap_set(run->start, entry);
    pagemap_set(end_of(run) - PMA_GRANULE, entry);
}

static void free_remove(struct shard *shard, struct run *run) {
    if (run->kind == RUN_DIRTY) {
        pma_runlist_remove(&shard->dirty, run);
        age_remove(shard, run);
        count_pages(&shard->dirty_pages, -(ptrdiff_t)run->npages);
        pma_pageheap_count(0, -(ptrdiff_t)bytes_of(run->npages));
    } else {
        pma_runlist_remove(&shard->clean, run);
        count_pages(&shard->clean_pages, -(ptrdiff_t)run->npages);
    }
    ends_set(run, NULL);
}

static void free_insert(struct shard *shard, struct run *run, enum run_kind kind) {
    run->base = run->start;
    run_set_kind(run, kind);
    if (kind == RUN_DIRTY) {
        pma_runlist_insert(&shard->dirty, run);
        age_append(shard, run);
        count_pages(&shard->dirty_pages, run->npages);
        pma_pageheap_count(0, (ptrdiff_t)bytes_of(run->npages));
    } else {
        pma_runlist_insert(&shard->clean, run);
        count_pages(&shard->clean_pages, run->npages);
    }
    ends_set(run, run);
}

// The free run of this shard and kind that has the address, if one begins or ends there.
static struct run *neighbour(const struct shard *shard, uintptr_t address, enum run_kind kind) {
    struct run *run = pagemap_find(address);
    if (run == NULL || run_kind(run) != kind || run->shard != index_of(shard)) {
        return NULL;
    }
    return run;
}

static bool fits_length(const struct run *a, const struct run *b) {
    return (uint64_t)a->npages + b->npages <= UINT32_MAX;
}

// Makes a run free, together with the free runs of the same kind on both sides. The younger age counts: the old
// pages were used again as neighbours of fresh ones, and purging them early would only be repeated.
static void free_join(struct shard *shard, struct run *run, enum run_kind kind) {
    struct run *before = neighbour(shard, run->start - PMA_GRANULE, kind);
    if (before != NULL && end_of(before) == run->start && fits_length(before, run)) {
        free_remove(shard, before);
        run->start = before->start;
        run->npages += before->npages;
        descriptor_give(shard, before);
    }
    struct run *behind = neighbour(shard, end_of(run), kind);
    if (behind != NULL && behind->start == end_of(run) && fits_length(behind, run)) {
        free_remove(shard, behind);
        run->npages += behind->npages;
        descriptor_give(shard, behind);
    }
    free_insert(shard, run, kind);
}

// Without a descriptor the pages themselves remember that they are free.
static void lose(struct shard *shard, uintptr_t start, size_t npages) {
    struct lost *lost = (struct lost *)start;
    lost->next = shard->lost;
    lost->npages = npages;
    shard->lost = lost;
}

static void free_pages(struct shard *shard, uintptr_t start, size_t npages, enum run_kind kind) {
    struct run *run = descriptor_take(shard);
    if (unlikely(run == NULL)) {
        lose(shard, start, npages);
        return;
    }
    run->start = start;
    run->npages = (uint32_t)npages;
    run->age = pma_os_time();
    free_join(shard, run, kind);
}

PMA_COLD static void lost_find(struct shard *shard) {
    while (shard->lost != NULL && descriptor_ready(shard)) {
        struct lost *lost = shard->lost;
        shard->lost = lost->next;
        free_pages(shard, (uintptr_t)lost, lost->npages, RUN_DIRTY);
    }
}

// ---- taking

// Cuts a free run, which is in no list now, to npages at the first suitable place; what is left over before and
// behind becomes free again. True when it is done; without descriptors for the rest it is as it was.
static bool cut(struct shard *shard, struct run *run, size_t npages, size_t align_pages,
                enum run_kind kind) {
    uintptr_t start = align_up(run->start, bytes_of(align_pages));
    size_t before = (start - run->start) >> pma_page_shift;
    size_t behind = run->npages - npages - before;
    struct run *rests[2] = { NULL, NULL };
    if (before > 0 && (rests[0] = descriptor_take(shard)) == NULL) {
        return false;
    }
    if (behind > 0 && (rests[1] = descriptor_take(shard)) == NULL) {
        if (rests[0] != NULL) {
            descriptor_give(shard, rests[0]);
        }
        return false;
    }
    if (rests[0] != NULL) {
        rests[0]->start = run->start;
        rests[0]->npages = (uint32_t)before;
    }
    if (rests[1] != NULL) {
        rests[1]->start = start + bytes_of(npages);
        rests[1]->npages = (uint32_t)behind;
    }
    for (int i = 0; i < 2; i++) {
        if (rests[i] != NULL) {
            rests[i]->age = run->age;
            free_insert(shard, rests[i], kind);
        }
    }
    run->start = start;
    run->npages = (uint32_t)npages;
    run->zero = kind == RUN_CLEAN;
    return true;
}

// A run from the lists, dirty ones first: using those again costs no fresh memory.
static struct run *take_free(struct shard *shard, size_t npages, size_t align_pages,
                             struct stream *stream) {
    size_t length = npages + align_pages - 1;
    enum run_kind kind = RUN_DIRTY;
    struct run *run = pma_runlist_find(&shard->dirty, length, stream);
    if (run == NULL) {
        kind = RUN_CLEAN;
        run = pma_runlist_find(&shard->clean, length, stream);
    }
    if (run == NULL) {
        return NULL;
    }
    free_remove(shard, run);
    if (!cut(shard, run, npages, align_pages, kind)) {
        free_insert(shard, run, kind);
        return NULL;
    }
    count_pages(&shard->live_pages, (ptrdiff_t)npages);
    pma_pageheap_count((ptrdiff_t)bytes_of(npages), 0);
    run_set_kind(run, RUN_UNUSED);
    return run;
}

// More than is needed at the moment, so that neighbouring runs of one shard can join, but little against the heap.
static size_t chunk_size(size_t need) {
    size_t chunk = size_min((size_t)1 << 20, pma_region_committed() / 512);
    return size_max(need, align_up(size_max(chunk, PMA_SLAB_BYTES_MAX), pma_page_size));
}

// Into *pages if that is given, and then the descriptor stays in reserve; the result is never read but for NULL.
static struct run *take_locked(struct shard *shard, size_t npages, size_t align_pages,
                               struct stream *stream, struct pages *pages) {
    if (unlikely(shard->lost != NULL)) {
        lost_find(shard);
    }
    struct run *run = take_free(shard, npages, align_pages, stream);
    if (run != NULL && pages != NULL) {
        *pages = (struct pages){ run->start, run->npages, run->shard, run->zero != 0 };
        descriptor_give(shard, run);
    }
    return run;
}

// The heap grows without the shard's lock: others go on meanwhile with what is free.
static struct run *take_growing(struct shard *shard, size_t npages, size_t align_pages,
                                struct stream *stream, struct pages *pages) {
    size_t need = bytes_of(npages + align_pages - 1);
    struct extent extent = { 0, 0 };
    for (;;) {
        lock_lock(&shard->lock);
        if (extent.size > 0) {
            free_pages(shard, extent.start, extent.size >> pma_page_shift, RUN_CLEAN);
        }
        bool lost = shard->lost != NULL;
        struct run *run = take_locked(shard, npages, align_pages, stream, pages);
        lock_unlock(&shard->lock);
        if (run != NULL || lost) {
            return run;
        }
        extent = pma_region_take(need, chunk_size(need));
        if (extent.size == 0) {
            return NULL;
        }
    }
}

static struct run *take_anywhere(unsigned home, size_t npages, size_t align_pages,
                                 struct stream *stream, struct pages *pages) {
    if (npages > UINT32_MAX / 4 || align_pages > UINT32_MAX / 4) {
        return NULL;
    }
    struct run *run = take_growing(&pma_pageheap.shards[home], npages, align_pages, stream, pages);
    // The kernel refused: whatever lies free elsewhere must do.
    for (unsigned i = 0; run == NULL && i < pma_pageheap.nshards; i++) {
        struct shard *shard = &pma_pageheap.shards[i];
        lock_lock(&shard->lock);
        run = take_locked(shard, npages, align_pages, stream, pages);
        lock_unlock(&shard->lock);
    }
    return run;
}

struct run *pma_pageheap_take_run(unsigned shard, size_t npages, size_t align_pages,
                                  struct stream *stream) {
    return take_anywhere(shard, npages, align_pages, stream, NULL);
}

bool pma_pageheap_take(unsigned shard, size_t npages, size_t align_pages, struct stream *stream,
                       struct pages *pages) {
    return take_anywhere(shard, npages, align_pages, stream, pages) != NULL;
}

// ---- giving

static void give_locked(struct shard *shard, uintptr_t start, size_t npages, struct run *run) {
    count_pages(&shard->live_pages, -(ptrdiff_t)npages);
    pma_pageheap_count(-(ptrdiff_t)bytes_of(npages), 0);
    if (run == NULL) {
        free_pages(shard, start, npages, RUN_DIRTY);
    } else {
        run->age = pma_os_time();
        free_join(shard, run, RUN_DIRTY);
    }
}

static size_t purge_shard(struct shard *shard, size_t limit, uint64_t before);

// What a shard holds above the limit, or for too long, goes back in batches. A quarter below the limit, so that a
// program whose need swings a little does not call the kernel at each swing.
static void purge_if_due(struct shard *shard) {
    size_t limit = pma_pageheap_dirty_limit();
    uint64_t now = pma_os_time();
    if (dirty_bytes() > limit) {
        purge_shard(shard, limit - limit / 4, 0);
    }
    if (now >= __atomic_load_n(&shard->due, __ATOMIC_RELAXED)) {
        purge_shard(shard, limit, now - PMA_DIRTY_AGE);
    }
}

void pma_pageheap_give(struct pages pages) {
    struct shard *shard = &pma_pageheap.shards[pages.shard];
    lock_lock(&shard->lock);
    give_locked(shard, pages.start, pages.npages, NULL);
    lock_unlock(&shard->lock);
    purge_if_due(shard);
}

void pma_pageheap_give_run(struct run *run) {
    struct shard *shard = &pma_pageheap.shards[run->shard];
    lock_lock(&shard->lock);
    give_locked(shard, run->start, run->npages, run);
    lock_unlock(&shard->lock);
    purge_if_due(shard);
}

bool pma_pageheap_extend(struct run *run, size_t npages) {
    struct shard *shard = &pma_pageheap.shards[run->shard];
    size_t more = npages - run->npages;
    bool extended = false;
    lock_lock(&shard->lock);
    struct run *behind = neighbour(shard, end_of(run), RUN_DIRTY);
    if (behind == NULL) {
        behind = neighbour(shard, end_of(run), RUN_CLEAN);
    }
    if (behind != NULL && behind->start == end_of(run) && behind->npages >= more) {
        enum run_kind kind = run_kind(behind);
        free_remove(shard, behind);
        behind->start += bytes_of(more);
        behind->npages -= (uint32_t)more;
        if (behind->npages > 0) {
            free_insert(shard, behind, kind);
        } else {
            descriptor_give(shard, behind);
        }
        run->npages = (uint32_t)npages;
        count_pages(&shard->live_pages, (ptrdiff_t)more);
        pma_pageheap_count((ptrdiff_t)bytes_of(more), 0);
        extended = true;
    }
    lock_unlock(&shard->lock);
    return extended;
}

void pma_pageheap_shorten(struct run *run, size_t npages) {
    struct pages tail = { run->start + bytes_of(npages), (uint32_t)(run->npages - npages),
                          run->shard, false };
    run->npages = (uint32_t)npages;
    pma_pageheap_give(tail);
}

// ---- giving back to the kernel

// Takes the oldest dirty runs out of reach while the shard holds more than the limit or they are older than before.
static size_t purge_begin(struct shard *shard, struct run **batch, size_t limit, uint64_t before) {
    size_t count = 0;
    lock_lock(&shard->lock);
    while (count < PMA_PURGE_BATCH && shard->oldest != NULL &&
           (dirty_bytes() > limit || shard->oldest->age <= before)) {
        struct run *run = shard->oldest;
        free_remove(shard, run);
        run_set_kind(run, RUN_PURGING);
        ends_set(run, run);
        count_pages(&shard->dirty_pages, run->npages);
        batch[count++] = run;
    }
    lock_unlock(&shard->lock);
    return count;
}

static void purge_end(struct shard *shard, struct run *run, bool purged) {
    lock_lock(&shard->lock);
    count_pages(&shard->dirty_pages, -(ptrdiff_t)run->npages);
    ends_set(run, NULL);
    run->age = pma_os_time();
    free_join(shard, run, purged ? RUN_CLEAN : RUN_DIRTY);
    lock_unlock(&shard->lock);
}

// Between begin and end the runs belong to nobody else, so the kernel is called without the lock. When it refuses,
// the runs stay dirty and young, and this round ends.
static size_t purge_shard(struct shard *shard, size_t limit, uint64_t before) {
    struct run *batch[PMA_PURGE_BATCH];
    size_t sum = 0;
    for (bool refused = false; !refused;) {
        size_t count = purge_begin(shard, batch, limit, before);
        for (size_t i = 0; i < count; i++) {
            size_t size = bytes_of(batch[i]->npages);
            bool purged = pma_os_purge((void *)batch[i]->start, size);
            purge_end(shard, batch[i], purged);
            sum += purged ? size : 0;
            refused = refused || !purged;
        }
        if (count < PMA_PURGE_BATCH) {
            break;
        }
    }
    return sum;
}

size_t pma_pageheap_purge(bool all) {
    size_t sum = 0;
    for (unsigned i = 0; i < pma_pageheap.nshards; i++) {
        struct shard *shard = &pma_pageheap.shards[i];
        if (all) {
            sum += purge_shard(shard, 0, UINT64_MAX);
        } else {
            purge_if_due(shard);
        }
    }
    return sum;
}

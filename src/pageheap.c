// pageheap.c - runs by the page: who gets which.
#include <config.h>

#include "pageheap.h"

#include "os.h"
#include "purge.h"
#include "region.h"
#include "tune.h"

void pma_pageheap_init(unsigned nshards) {
    pma_pageheap.nshards = nshards;
    for (unsigned i = 0; i < nshards; i++) {
        pma_shard_init(&pma_pageheap.shards[i]);
    }
}

void pma_pageheap_count(ptrdiff_t live, ptrdiff_t cached) {
    if (live != 0) {
        __atomic_fetch_add(&pma_pageheap.live, (size_t)live, __ATOMIC_RELAXED);
    }
    if (cached != 0) {
        __atomic_fetch_add(&pma_pageheap.cached, (size_t)cached, __ATOMIC_RELAXED);
    }
}

// What is asked for: npages at a multiple of align_pages, and, if pages is given, without a
// descriptor.
struct wish {
    size_t npages;
    size_t align_pages;
    struct stream *stream;
    struct pages *pages;
};

static size_t wish_length(const struct wish *wish) {
    return wish->npages + wish->align_pages - 1;
}

// ---- taking

// A run from the lists, dirty ones first: using those again costs no fresh memory.
static struct run *take_free(struct shard *shard, const struct wish *wish) {
    enum run_kind kind = RUN_DIRTY;
    struct run *run = pma_runlist_find(&shard->lists[0], wish_length(wish), wish->stream);
    if (run == NULL) {
        kind = RUN_CLEAN;
        run = pma_runlist_find(&shard->lists[1], wish_length(wish), wish->stream);
    }
    if (run == NULL) {
        return NULL;
    }
    pma_shard_remove(shard, run);
    if (!pma_shard_cut(shard, run, wish->npages, wish->align_pages, kind)) {
        pma_shard_insert(shard, run, kind);
        return NULL;
    }
    run->zero = kind == RUN_CLEAN;
    pma_shard_count_live(shard, (ptrdiff_t)wish->npages);
    run_set_kind(run, RUN_UNUSED);
    return run;
}

// The result is never read but for NULL when the wish is for pages: the descriptor stays in
// reserve.
static struct run *take_locked(struct shard *shard, const struct wish *wish) {
    if (unlikely(shard->lost != NULL)) {
        pma_shard_find_lost(shard);
    }
    struct run *run = take_free(shard, wish);
    if (run != NULL && wish->pages != NULL) {
        *wish->pages = (struct pages){ run->start, run->npages, run->shard, run->zero != 0 };
        pma_shard_give_descriptor(shard, run);
    }
    return run;
}

// More than is needed at the moment, so that neighbouring runs of one shard can join, but little
// against the heap.
static size_t chunk_size(size_t need) {
    size_t chunk = size_min((size_t)1 << 20, pma_region_committed() / 512);
    return size_max(need, align_up(size_max(chunk, PMA_SLAB_BYTES_MAX), pma_page_size));
}

// Opens a closed run again, as much of it as a chunk. False: there is none, or the kernel refused.
static bool reopen(struct shard *shard, const struct wish *wish) {
    size_t need = wish_length(wish);
    size_t chunk = chunk_size(need << pma_page_shift) >> pma_page_shift;
    lock_lock(&shard->lock);
    struct run *run = pma_runlist_find(&shard->lists[RUN_CLOSED - RUN_DIRTY], need, wish->stream);
    if (run != NULL) {
        size_t npages = size_min(run->npages, chunk);
        pma_shard_remove(shard, run);
        if (!pma_shard_cut(shard, run, npages, 1, RUN_CLOSED)) {
            pma_shard_insert(shard, run, RUN_CLOSED);
            run = NULL;
        } else {
            pma_shard_insert(shard, run, RUN_CLOSED);
            pma_shard_depart(shard, run);
        }
    }
    lock_unlock(&shard->lock);
    if (run == NULL) {
        return false;
    }
    bool opened = pma_os_commit((void *)run->start, run_bytes(run));
    lock_lock(&shard->lock);
    pma_shard_arrive(shard, run, opened ? RUN_CLEAN : RUN_CLOSED);
    lock_unlock(&shard->lock);
    return opened;
}

// The heap grows without the shard's lock: others go on meanwhile with what is free.
static bool grow(struct shard *shard, const struct wish *wish) {
    size_t need = wish_length(wish) << pma_page_shift;
    if (reopen(shard, wish)) {
        return true;
    }
    struct extent extent = pma_region_take(need, chunk_size(need));
    if (extent.size == 0) {
        return false;
    }
    lock_lock(&shard->lock);
    pma_shard_join_pages(shard, extent.start, extent.size >> pma_page_shift, RUN_CLEAN);
    bool lost = shard->lost != NULL;
    lock_unlock(&shard->lock);
    return !lost;
}

static struct run *take(struct shard *shard, const struct wish *wish, bool may_grow) {
    for (;;) {
        lock_lock(&shard->lock);
        struct run *run = take_locked(shard, wish);
        bool more = run == NULL && may_grow && pma_shard_may_grow(shard);
        lock_unlock(&shard->lock);
        if (!more || !grow(shard, wish)) {
            return run;
        }
    }
}

static struct run *take_anywhere(unsigned home, const struct wish *wish) {
    size_t most = size_min(UINT32_MAX, SIZE_MAX >> pma_page_shift) / 4;
    if (wish->npages > most || wish->align_pages > most) {
        return NULL;
    }
    struct run *run = take(&pma_pageheap.shards[home], wish, true);
    // The kernel refused: whatever lies free elsewhere must do.
    for (unsigned i = 0; run == NULL && i < pma_pageheap.nshards; i++) {
        run = take(&pma_pageheap.shards[i], wish, false);
    }
    return run;
}

struct run *pma_pageheap_take_run(unsigned shard, size_t npages, size_t align_pages,
                                  struct stream *stream) {
    struct wish wish = { npages, align_pages, stream, NULL };
    return take_anywhere(shard, &wish);
}

bool pma_pageheap_take(unsigned shard, size_t npages, size_t align_pages, struct stream *stream,
                       struct pages *pages) {
    struct wish wish = { npages, align_pages, stream, pages };
    return take_anywhere(shard, &wish) != NULL;
}

// ---- giving

void pma_pageheap_give(struct pages pages) {
    struct shard *shard = &pma_pageheap.shards[pages.shard];
    lock_lock(&shard->lock);
    pma_shard_count_live(shard, -(ptrdiff_t)pages.npages);
    pma_shard_join_pages(shard, pages.start, pages.npages, RUN_DIRTY);
    lock_unlock(&shard->lock);
    pma_purge_if_due(shard);
}

void pma_pageheap_give_run(struct run *run) {
    struct shard *shard = &pma_pageheap.shards[run->shard];
    lock_lock(&shard->lock);
    pma_shard_count_live(shard, -(ptrdiff_t)run->npages);
    run->age = pma_os_time();
    pma_shard_join(shard, run, RUN_DIRTY);
    lock_unlock(&shard->lock);
    pma_purge_if_due(shard);
}

// ---- another length

static struct run *free_behind(const struct shard *shard, const struct run *run, size_t npages) {
    for (enum run_kind kind = RUN_DIRTY; kind <= RUN_CLEAN; kind++) {
        struct run *behind = pma_shard_neighbour(shard, run_end(run), kind);
        if (behind != NULL && behind->start == run_end(run) && behind->npages >= npages) {
            return behind;
        }
    }
    return NULL;
}

bool pma_pageheap_extend(struct run *run, size_t npages) {
    struct shard *shard = &pma_pageheap.shards[run->shard];
    size_t more = npages - run->npages;
    lock_lock(&shard->lock);
    struct run *behind = free_behind(shard, run, more);
    if (behind != NULL) {
        enum run_kind kind = run_kind(behind);
        pma_shard_remove(shard, behind);
        behind->start += more << pma_page_shift;
        behind->npages -= (uint32_t)more;
        if (behind->npages > 0) {
            pma_shard_insert(shard, behind, kind);
        } else {
            pma_shard_give_descriptor(shard, behind);
        }
        run->npages = (uint32_t)npages;
        pma_shard_count_live(shard, (ptrdiff_t)more);
    }
    lock_unlock(&shard->lock);
    return behind != NULL;
}

void pma_pageheap_shorten(struct run *run, size_t npages) {
    struct pages tail = { run->start + (npages << pma_page_shift), (uint32_t)(run->npages - npages),
                          run->shard, false };
    run->npages = (uint32_t)npages;
    pma_pageheap_give(tail);
}

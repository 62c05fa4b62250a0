// large.c - blocks that are whole runs: exact pages, and the cache of runs.
#include <config.h>

#include "large.h"

#include "huge.h"
#include "os.h"
#include "pagemap.h"

static size_t bytes_of(const struct run *run) {
    return (size_t)run->npages << pma_page_shift;
}

static size_t pages_for(size_t size) {
    return (size + pma_page_size - 1) >> pma_page_shift;
}

// ---- the run cache

// A bit for each place with a run of this length. Four places at a time: with one after the other
// malloc and free of 40,000 bytes took 543 instructions instead of 445.
static unsigned places_of(const struct run_cache *cache, uint32_t npages) {
    typedef uint32_t four __attribute__((vector_size(16), may_alias));
    const four *lengths = (const four *)cache->lengths;
    four bits = { 1, 2, 4, 8 };
    four found = { 0, 0, 0, 0 };
    for (unsigned i = 0; i < PMA_CACHE_RUNS / 4; i++) {
        found |= (four)(lengths[i] == npages) & bits;
        bits <<= 4;
    }
    return found[0] | found[1] | found[2] | found[3];
}

// The first run of this length from a drawn place on.
static struct run *cache_take(struct run_cache *cache, size_t npages, struct stream *stream) {
    if (cache->bytes < npages << pma_page_shift) {
        return NULL;
    }
    unsigned found = places_of(cache, (uint32_t)npages);
    if (found == 0) {
        return NULL;
    }
    unsigned from = stream_nibble(stream);
    unsigned turned = found >> from | found << (PMA_CACHE_RUNS - from);
    unsigned place = (from + bits_lowest(turned)) % PMA_CACHE_RUNS;
    cache->lengths[place] = 0;
    cache->is_used = true;
    cache->bytes -= npages << pma_page_shift;
    return cache->runs[place];
}

static void run_leave(struct run *run) {
    pma_pagemap_set_ends(run->start, bytes_of(run), NULL);
    pma_pageheap_give_run(run);
}

static void cache_evict(struct run_cache *cache, unsigned place) {
    if (cache->lengths[place] != 0) {
        cache->bytes -= (size_t)cache->lengths[place] << pma_page_shift;
        cache->lengths[place] = 0;
        run_leave(cache->runs[place]);
    }
}

// A run freed into a full cache takes the place of one that is drawn. While the cache is too small
// for what comes, its limit grows.
static void cache_give(struct run_cache *cache, struct run *run, struct stream *stream) {
    size_t bytes = bytes_of(run);
    cache->limit = size_max(cache->limit, PMA_CACHE_MIN);
    if (cache->bytes + bytes > cache->limit && cache->limit < PMA_CACHE_MAX) {
        cache->limit *= 2;
    }
    if (bytes > cache->limit) {
        run_leave(run);
        return;
    }
    unsigned place = stream_nibble(stream);
    for (unsigned i = 0; i < PMA_CACHE_RUNS && cache->lengths[place] != 0; i++) {
        place = (place + 1) % PMA_CACHE_RUNS;
    }
    cache_evict(cache, place);
    for (unsigned i = 0; cache->bytes + bytes > cache->limit; i++) {
        cache_evict(cache, (place + i) % PMA_CACHE_RUNS);
    }
    cache->runs[place] = run;
    cache->lengths[place] = run->npages;
    cache->is_used = true;
    cache->bytes += bytes;
}

void pma_run_cache_empty(struct run_cache *cache) {
    for (unsigned place = 0; place < PMA_CACHE_RUNS; place++) {
        cache_evict(cache, place);
    }
    cache->limit = 0;
}

// ---- large blocks

struct run *pma_large_take(struct large_source source, size_t size, size_t alignment) {
    size_t npages = pages_for(size_max(size, 1));
    size_t align_pages = size_max(alignment >> pma_page_shift, 1);
    if (is_huge(size) || is_huge(alignment)) {
        return pma_huge_take(size, alignment, source.stream);
    }
    struct run *run = align_pages > 1 ? NULL : cache_take(source.cache, npages, source.stream);
    if (run != NULL) {
        run->zero = false;
    } else {
        run = pma_pageheap_take_run(source.shard, npages, align_pages, source.stream);
        if (run == NULL) {
            return NULL;
        }
        run->owner = NULL;
        pma_pagemap_set_ends(run->start, bytes_of(run), run);
    }
    pma_block_place(run, bytes_of(run), size, alignment, source.stream);
    run_set_kind(run, RUN_LARGE);
    return run;
}

// Whoever changes the kind has freed it; of two threads that free the same block one comes too
// late.
static bool kind_change(struct run *run, enum run_kind from, enum run_kind to) {
    return byte_change(&run->kind, (uint8_t)from, (uint8_t)to);
}

bool pma_large_give(struct large_source source, struct run *run) {
    if (run_kind(run) == RUN_HUGE) {
        return kind_change(run, RUN_HUGE, RUN_CACHED) && (pma_huge_give(run), true);
    }
    if (!kind_change(run, RUN_LARGE, RUN_CACHED)) {
        return false;
    }
    if (source.cache != NULL) {
        cache_give(source.cache, run, source.stream);
    } else {
        run_leave(run);
    }
    return true;
}

static bool large_resize(struct run *run, size_t size) {
    size_t offset = run->base - run->start;
    size_t npages = pages_for(offset + size);
    size_t old_bytes = bytes_of(run);
    if (npages == run->npages) {
        return true;
    }
    if (npages > run->npages) {
        if (!pma_pageheap_extend(run, npages)) {
            return false;
        }
        pma_pagemap_set_ends(run->start, old_bytes, NULL);
    } else {
        pma_pagemap_set_ends(run->start, old_bytes, NULL);
        pma_pageheap_shorten(run, npages);
    }
    pma_pagemap_set_ends(run->start, bytes_of(run), run);
    run->zero = false;
    run->size = bytes_of(run) - offset;
    return true;
}

bool pma_large_resize(struct run *run, size_t size) {
    return run_kind(run) == RUN_HUGE ? pma_huge_resize(run, size)
                                     : !is_huge(size) && large_resize(run, size);
}

// region.c - address space for the page heap: reserve, commit in growing steps, hand out from the
// front.
#include <config.h>

#include "region.h"

#include "lock.h"
#include "os.h"
#include "pagemap.h"
#include "tune.h"

// start <= used <= committed <= reserved, all multiples of the page. Two locks, so that threads can
// go on with what is committed while one of them has the kernel commit more.
struct regions {
    struct lock growth; // held while the heap grows
    uintptr_t start;    // growth; of the region that is growing now, 0 before the first
    uintptr_t reserved; // growth; ours up to here
    uint32_t is_shared; // atomic; several threads take pages
    // growth to write, atomic to read; N of the N-th expansion, stops counting at 63
    unsigned expansions;
    size_t total;        // atomic; committed bytes, all regions together
    struct lock lock;    // held while pages are handed out
    uintptr_t used;      // lock; handed out up to here
    uintptr_t committed; // lock and growth to write, either to read; writable up to here
};

static struct regions regions = {
    .growth = LOCK_FREE(LOCK_GROWTH),
    .lock = LOCK_FREE(LOCK_REGION),
};

struct lock *pma_region_growth_lock(void) {
    return &regions.growth;
}

struct lock *pma_region_lock(void) {
    return &regions.lock;
}

size_t pma_region_committed(void) {
    return __atomic_load_n(&regions.total, __ATOMIC_RELAXED);
}

void pma_region_share(void) {
    __atomic_store_n(&regions.is_shared, 1, __ATOMIC_RELAXED);
}

// A page-aligned address from lowest on, so that size bytes end before span; 0: there is no room.
static uintptr_t random_place(uintptr_t lowest, uintptr_t span, size_t size) {
    uintptr_t place = 0;
    if (!pma_os_random(&place, sizeof(place))) {
        pma_os_random_fallback(&place, sizeof(place));
    }
    if (size >= span) {
        return 0;
    }
    place = lowest + place % (span - size);
    return align_down(place & ~PMA_PLACE_CLEAR, pma_page_size);
}

#define PLACES_SPAN (PMA_ADDRESS_HIGHEST - PMA_ADDRESS_LOWEST)

void *pma_region_reserve_somewhere(size_t size) {
    for (int tries = 0; tries < PMA_PLACE_TRIES; tries++) {
        uintptr_t place = random_place(PMA_ADDRESS_LOWEST, PLACES_SPAN, size);
        void *start = place == 0 ? NULL : pma_os_reserve((void *)place, size);
        if (start != NULL) {
            return start;
        }
    }
    return pma_os_reserve(NULL, size);
}

bool pma_region_is_shared(void) {
    return __atomic_load_n(&regions.is_shared, __ATOMIC_RELAXED) != 0;
}

// The ideal next step with several threads.
static size_t step_size_shared(size_t committed) {
    size_t rising = size_min(committed / PMA_STEP_RISE_SHARED, PMA_STEP_MAX_SHARED);
    size_t step =
        size_max(size_max(rising, PMA_STEP_MIN_SHARED), committed / PMA_STEP_FRACTION_SHARED);
    return align_up(step, pma_page_size);
}

// The ideal next step: 2^N pages until a limit, then a fraction of what there is.
static size_t step_size(void) {
    size_t committed = pma_region_committed();
    if (pma_region_is_shared()) {
        return step_size_shared(committed);
    }
    size_t doubling = PMA_STEP_MAX;
    unsigned expansions = __atomic_load_n(&regions.expansions, __ATOMIC_RELAXED);
    if (expansions < bits_highest(PMA_STEP_MAX >> pma_page_shift)) {
        doubling = pma_page_size << expansions;
    }
    return align_up(size_max(doubling, committed / PMA_STEP_FRACTION), pma_page_size);
}

// ---- growing, under the growth lock

// The wish for a new step is halved until the kernel agrees, but never below what is needed.
static size_t wish_less(size_t wish, size_t need) {
    return size_max(need, align_up(wish / 2, pma_page_size));
}

// Leaves the region that is growing for a new one at another place. What is committed of the old
// one was handed out before; the rest of its reservation goes back, and if the kernel refuses that,
// it only costs address space.
static bool region_open(size_t need) {
    for (size_t size = size_max(need, PMA_RESERVE_MIN);; size = wish_less(size, need)) {
        char *start = pma_region_reserve_somewhere(size);
        if (start != NULL) {
            if (regions.reserved != regions.committed) {
                pma_os_unmap((void *)regions.committed, regions.reserved - regions.committed);
            }
            regions.start = (uintptr_t)start;
            regions.reserved = regions.start + size;
            lock_lock(&regions.lock);
            regions.used = regions.committed = regions.start;
            lock_unlock(&regions.lock);
            return true;
        }
        if (size == need) {
            return false;
        }
    }
}

static void committed_grow(size_t size) {
    lock_lock(&regions.lock);
    regions.committed += size;
    lock_unlock(&regions.lock);
    __atomic_fetch_add(&regions.total, size, __ATOMIC_RELAXED);
    unsigned expansions = __atomic_load_n(&regions.expansions, __ATOMIC_RELAXED);
    __atomic_store_n(&regions.expansions, expansions + (expansions < 63), __ATOMIC_RELAXED);
}

// Makes more of what is reserved writable: a step, and at least need bytes, which the reservation
// has.
static bool commit_more(size_t need) {
    for (size_t more = size_min(size_max(need, step_size()), regions.reserved - regions.committed);;
         more = wish_less(more, need)) {
        if (pma_pagemap_prepare(regions.committed, more, pma_region_committed() / PMA_LEAF_AHEAD) &&
            pma_os_commit((void *)regions.committed, more)) {
            committed_grow(more);
            return true;
        }
        if (more == need) {
            return false;
        }
    }
}

// Adds writable pages behind the end of the reservation, all of which is committed: one call a
// step, and no address space ahead of use. False also if a foreign mapping is in the way.
static bool extend_more(size_t need) {
    if (regions.start == 0) {
        return false;
    }
    for (size_t more = size_max(need, step_size());; more = wish_less(more, need)) {
        if (pma_pagemap_prepare(regions.reserved, more, pma_region_committed() / PMA_LEAF_AHEAD) &&
            pma_os_map((void *)regions.reserved, more) != NULL) {
            regions.reserved += more;
            committed_grow(more);
            return true;
        }
        if (more == need) {
            return false;
        }
    }
}

// At least need bytes behind what is committed, in the region that is growing now.
static bool expand(size_t need) {
    size_t reserved = regions.reserved - regions.committed;
    if (reserved >= need) {
        return commit_more(need);
    }
    return (reserved == 0 || commit_more(reserved)) && extend_more(need - reserved);
}

static size_t ready_bytes(void) {
    lock_lock(&regions.lock);
    size_t ready = regions.committed - regions.used;
    lock_unlock(&regions.lock);
    return ready;
}

static struct extent hand_out(size_t need, size_t want) {
    struct extent extent = { 0, 0 };
    lock_lock(&regions.lock);
    size_t ready = regions.committed - regions.used;
    if (ready >= need) {
        extent = (struct extent){ regions.used, size_min(ready, want) };
        regions.used += extent.size;
    }
    lock_unlock(&regions.lock);
    return extent;
}

// A heap that is shared grows ahead of need by whoever comes by: the others need not wait for the
// kernel.
static void expand_ahead(void) {
    if (!pma_region_is_shared() || !lock_try(&regions.growth)) {
        return;
    }
    if (ready_bytes() < step_size()) {
        expand(pma_page_size);
    }
    lock_unlock(&regions.growth);
}

// Under the growth lock, which leaves need bytes ready; or hands out the region's last pages, if
// they are fewer.
static bool grow(size_t need, struct extent *last) {
    size_t ready = ready_bytes();
    if (ready >= need || expand(need - ready)) {
        return true;
    }
    *last = hand_out(pma_page_size, need);
    return last->size == 0 && region_open(need) && commit_more(need);
}

// While another thread has the kernel commit more, this one need not wait for it: it maps some of
// its own, where the kernel likes: the next such mapping is likely to lie below, and to merge with
// it.
static struct extent map_apart(size_t need) {
    size_t size = size_max(need, step_size());
    void *start = pma_os_map(NULL, size);
    if (start != NULL && !pma_pagemap_prepare_below((uintptr_t)start, size,
                                                    pma_region_committed() / PMA_LEAF_AHEAD)) {
        pma_os_unmap(start, size);
        start = NULL;
    }
    if (start == NULL) {
        return (struct extent){ 0, 0 };
    }
    __atomic_fetch_add(&regions.total, size, __ATOMIC_RELAXED);
    return (struct extent){ (uintptr_t)start, size };
}

static struct extent take_growing(size_t need, bool *again) {
    struct extent extent = { 0, 0 };
    if (!lock_try(&regions.growth)) {
        extent = map_apart(need);
        if (extent.size > 0) {
            *again = false;
            return extent;
        }
        lock_lock(&regions.growth);
    }
    *again = grow(need, &extent);
    lock_unlock(&regions.growth);
    return extent;
}

struct extent pma_region_take(size_t need, size_t want) {
    for (bool again = true; again;) {
        struct extent extent = hand_out(need, want);
        if (extent.size > 0) {
            expand_ahead();
            return extent;
        }
        extent = take_growing(need, &again);
        if (!again) {
            return extent;
        }
    }
    return (struct extent){ 0, 0 };
}

bool pma_region_give(struct extent extent) {
    bool given = false;
    lock_lock(&regions.growth);
    lock_lock(&regions.lock);
    size_t size = regions.committed - extent.start;
    if (extent.start >= regions.start && extent.start + extent.size == regions.used &&
        pma_os_decommit((void *)extent.start, size)) {
        regions.used = regions.committed = extent.start;
        __atomic_fetch_sub(&regions.total, size, __ATOMIC_RELAXED);
        given = true;
    }
    lock_unlock(&regions.lock);
    lock_unlock(&regions.growth);
    return given;
}

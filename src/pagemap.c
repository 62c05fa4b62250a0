// pagemap.c - address -> descriptor: the table's leaves and their pieces.
#include <config.h>

#include "pagemap.h"

#include "lock.h"
#include "os.h"

struct pagemap pma_pagemap;
static struct lock pagemap_lock = LOCK_FREE(LOCK_PAGEMAP);

struct lock *pma_pagemap_lock(void) {
    return &pagemap_lock;
}

#define ENTRIES_BYTES (PMA_LEAF_ENTRIES * sizeof(uintptr_t))
#define PIECES (ENTRIES_BYTES / PMA_LEAF_PIECE)
#define PIECE_ENTRIES (PMA_LEAF_ENTRIES / PIECES)
// How much address space one piece describes.
#define PIECE_SPAN (((size_t)1 << PMA_LEAF_SHIFT) / PIECES)

_Static_assert(PIECES <= 32, "a piece is a bit of leaf.pieces");
_Static_assert(PMA_LEAF_PIECE >= PMA_PAGE_MAX, "a piece is whole pages");
_Static_assert(offsetof(struct leaf, next) == ENTRIES_BYTES, "the fields begin a page");

// Under the page map's lock. A leaf starts readable and all zero, so that a wild pointer finds
// nothing in it.
static struct leaf *leaf_make(size_t top) {
    uintptr_t skipped = top * ENTRIES_BYTES;
    struct leaf *leaf = pma_os_map_readonly(NULL, ENTRIES_BYTES + pma_page_size);
    // The one place of 2^47 for which the table would say that there is no leaf.
    if (unlikely((uintptr_t)leaf == skipped) && leaf != NULL) {
        leaf = pma_os_map_readonly(NULL, ENTRIES_BYTES + pma_page_size);
        pma_os_unmap((void *)skipped, ENTRIES_BYTES + pma_page_size);
    }
    if (leaf == NULL) {
        return NULL;
    }
    if (!pma_os_commit((char *)leaf + ENTRIES_BYTES, pma_page_size)) {
        pma_os_unmap(leaf, ENTRIES_BYTES + pma_page_size);
        return NULL;
    }
    leaf->top = top;
    leaf->next = pma_pagemap.newest;
    __atomic_store_n(&pma_pagemap.newest, leaf, __ATOMIC_RELEASE);
    __atomic_store_n(&pma_pagemap.top[top], (uintptr_t)leaf - skipped, __ATOMIC_RELEASE);
    return leaf;
}

static struct leaf *leaf_find_or_make(size_t top) {
    struct leaf *leaf = pagemap_leaf(top);
    if (leaf == NULL) {
        lock_lock(&pagemap_lock);
        leaf = pagemap_leaf(top);
        if (leaf == NULL) {
            leaf = leaf_make(top);
        }
        lock_unlock(&pagemap_lock);
    }
    return leaf;
}

// Bits first to last of pieces.
static uint32_t pieces_mask(size_t first, size_t last) {
    return (uint32_t)((((uint64_t)2 << last) - 1) & ~(((uint64_t)1 << first) - 1));
}

static bool pieces_are_ready(size_t top, size_t first, size_t last) {
    uint32_t wanted = pieces_mask(first, last);
    struct leaf *leaf = pagemap_leaf(top);
    return leaf != NULL && (__atomic_load_n(&leaf->pieces, __ATOMIC_ACQUIRE) & wanted) == wanted;
}

// Makes pieces of one leaf writable, in one call. Two threads may do so at once: the second call
// changes nothing, and costs less than to wait for the first.
static bool pieces_prepare(size_t top, size_t first, size_t last) {
    struct leaf *leaf = leaf_find_or_make(top);
    if (leaf == NULL) {
        return false;
    }
    uint32_t ready = __atomic_load_n(&leaf->pieces, __ATOMIC_ACQUIRE);
    uint32_t missing = pieces_mask(first, last) & ~ready;
    if (missing == 0) {
        return true;
    }
    first = bits_lowest(missing);
    last = bits_highest(missing);
    if (!pma_os_commit((char *)leaf + first * PMA_LEAF_PIECE,
                       (last - first + 1) * PMA_LEAF_PIECE)) {
        return false;
    }
    __atomic_fetch_or(&leaf->pieces, pieces_mask(first, last), __ATOMIC_ACQ_REL);
    return true;
}

// Calls step for the pieces of each leaf that the range reaches into, while it returns true.
static bool range_walk(uintptr_t start, size_t size,
                       bool (*step)(size_t top, size_t first, size_t last)) {
    uintptr_t end = start + size - 1;
    if (end < start || !is_user_address(end)) {
        return false;
    }
    bool done = true;
    for (size_t top = start >> PMA_LEAF_SHIFT; done && top <= end >> PMA_LEAF_SHIFT; top++) {
        size_t first = top == start >> PMA_LEAF_SHIFT ? start / PIECE_SPAN % PIECES : 0;
        size_t last = top == end >> PMA_LEAF_SHIFT ? end / PIECE_SPAN % PIECES : PIECES - 1;
        done = step(top, first, last);
    }
    return done;
}

bool pma_pagemap_prepare(uintptr_t start, size_t size, size_t ahead) {
    return range_walk(start, size, pieces_are_ready) ||
           range_walk(start, size + ahead, pieces_prepare) ||
           range_walk(start, size, pieces_prepare);
}

bool pma_pagemap_prepare_below(uintptr_t start, size_t size, size_t ahead) {
    ahead = size_min(ahead, start);
    return range_walk(start, size, pieces_are_ready) ||
           range_walk(start - ahead, size + ahead, pieces_prepare) ||
           range_walk(start, size, pieces_prepare);
}

void pma_pagemap_fill(uintptr_t start, size_t size, struct run *run) {
    for (uintptr_t at = start; at < start + size; at += PMA_GRANULE) {
        pagemap_set(at, run);
    }
}

void pma_pagemap_set_ends(uintptr_t start, size_t size, struct run *run) {
    pma_pagemap_fill(start, size_min(size, pma_page_size), run);
    pagemap_set(start + size - PMA_GRANULE, run);
}

// The last entry of a leaf at or below a granule.
static struct run *leaf_find_below(struct leaf *leaf, size_t granule) {
    for (size_t i = granule + 1; i-- > 0;) {
        uintptr_t entry = __atomic_load_n(&leaf->entries[i], __ATOMIC_RELAXED);
        if (entry != 0) {
            return pagemap_run(entry);
        }
    }
    return NULL;
}

// A huge block may span whole leaves that were never made: the search goes on below them.
struct run *pma_pagemap_find_cover(uintptr_t address) {
    if (!is_user_address(address)) {
        return NULL;
    }
    size_t granule = pagemap_granule(address);
    for (size_t top = (address >> PMA_LEAF_SHIFT) + 1; top-- > 0; granule = PMA_LEAF_ENTRIES - 1) {
        struct leaf *leaf = pagemap_leaf(top);
        struct run *run = leaf == NULL ? NULL : leaf_find_below(leaf, granule);
        if (run != NULL) {
            return run;
        }
    }
    return NULL;
}

// Only pieces that were ever entered: the others would be read for nothing.
static void leaf_walk(struct leaf *leaf, void (*visit)(struct run *run, void *context),
                      void *context) {
    uintptr_t start = (uintptr_t)leaf->top << PMA_LEAF_SHIFT;
    uint32_t pieces = __atomic_load_n(&leaf->pieces, __ATOMIC_ACQUIRE);
    for (size_t granule = 0; granule < PMA_LEAF_ENTRIES; granule++) {
        if ((pieces & 1u << granule / PIECE_ENTRIES) == 0) {
            granule += PIECE_ENTRIES - 1;
            continue;
        }
        uintptr_t entry = __atomic_load_n(&leaf->entries[granule], __ATOMIC_ACQUIRE);
        struct run *run = pagemap_run(entry);
        if (entry != 0 && run->start == start + (granule << PMA_GRANULE_SHIFT)) {
            visit(run, context);
        }
    }
}

void pma_pagemap_walk(void (*visit)(struct run *run, void *context), void *context) {
    struct leaf *leaf = __atomic_load_n(&pma_pagemap.newest, __ATOMIC_ACQUIRE);
    for (; leaf != NULL; leaf = leaf->next) {
        leaf_walk(leaf, visit, context);
    }
}

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

#define LEAF_BYTES (PMA_LEAF_ENTRIES * sizeof(struct run *))
#define PIECES (LEAF_BYTES / PMA_LEAF_PIECE)
// How much address space one piece describes.
#define PIECE_SPAN (((size_t)1 << PMA_LEAF_SHIFT) / PIECES)

_Static_assert(PIECES <= 16, "a piece is a bit of pagemap.pieces");
_Static_assert(PMA_LEAF_PIECE >= PMA_PAGE_MAX, "a piece is whole pages");

// Under the page map's lock. A leaf starts readable and all zero, so that a wild pointer finds nothing in it.
static bool piece_prepare(size_t top, size_t piece) {
    struct run **leaf = pma_pagemap.top[top];
    if (leaf == NULL) {
        leaf = pma_os_map_readonly(NULL, LEAF_BYTES);
        if (leaf == NULL) {
            return false;
        }
        __atomic_store_n(&pma_pagemap.top[top], leaf, __ATOMIC_RELEASE);
        pma_pagemap.made[pma_pagemap.nmade] = (uint32_t)top;
        __atomic_store_n(&pma_pagemap.nmade, pma_pagemap.nmade + 1, __ATOMIC_RELEASE);
    }
    if ((pma_pagemap.pieces[top] & 1u << piece) != 0) {
        return true;
    }
    if (!pma_os_commit((char *)leaf + piece * PMA_LEAF_PIECE, PMA_LEAF_PIECE)) {
        return false;
    }
    uint16_t pieces = (uint16_t)(pma_pagemap.pieces[top] | 1u << piece);
    __atomic_store_n(&pma_pagemap.pieces[top], pieces, __ATOMIC_RELEASE);
    return true;
}

static bool piece_is_ready(uintptr_t address) {
    size_t top = address >> PMA_LEAF_SHIFT;
    size_t piece = address / PIECE_SPAN % PIECES;
    return (__atomic_load_n(&pma_pagemap.pieces[top], __ATOMIC_ACQUIRE) & 1u << piece) != 0;
}

bool pma_pagemap_prepare(uintptr_t start, size_t size) {
    if ((start + size - 1) >> PMA_ADDRESS_BITS != 0) {
        return false;
    }
    uintptr_t last = align_down(start + size - 1, PIECE_SPAN);
    for (uintptr_t at = align_down(start, PIECE_SPAN); at <= last; at += PIECE_SPAN) {
        if (piece_is_ready(at)) {
            continue;
        }
        lock_lock(&pagemap_lock);
        bool ready = piece_prepare(at >> PMA_LEAF_SHIFT, at / PIECE_SPAN % PIECES);
        lock_unlock(&pagemap_lock);
        if (!ready) {
            return false;
        }
    }
    return true;
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

struct run *pma_pagemap_find_cover(uintptr_t address) {
    if (address >> PMA_ADDRESS_BITS != 0) {
        return NULL;
    }
    for (size_t top = address >> PMA_LEAF_SHIFT;; top--) {
        struct run **leaf = __atomic_load_n(&pma_pagemap.top[top], __ATOMIC_ACQUIRE);
        if (leaf == NULL) {
            // A huge block may span whole leaves that were never made: look further down, but not for ever.
            if (top == 0) {
                return NULL;
            }
            continue;
        }
        size_t first = top == address >> PMA_LEAF_SHIFT
                           ? address >> PMA_GRANULE_SHIFT & (PMA_LEAF_ENTRIES - 1)
                           : PMA_LEAF_ENTRIES - 1;
        for (size_t granule = first + 1; granule-- > 0;) {
            struct run *run = __atomic_load_n(&leaf[granule], __ATOMIC_RELAXED);
            if (run != NULL) {
                return run;
            }
        }
        if (top == 0) {
            return NULL;
        }
    }
}

static void leaf_walk(size_t top, void (*visit)(struct run *run, void *context), void *context) {
    struct run **leaf = __atomic_load_n(&pma_pagemap.top[top], __ATOMIC_ACQUIRE);
    uintptr_t start = (uintptr_t)top << PMA_LEAF_SHIFT;
    for (size_t granule = 0; granule < PMA_LEAF_ENTRIES; granule++) {
        struct run *run = __atomic_load_n(&leaf[granule], __ATOMIC_ACQUIRE);
        if (run != NULL && run->start == start + (granule << PMA_GRANULE_SHIFT)) {
            visit(run, context);
        }
    }
}

void pma_pagemap_walk(void (*visit)(struct run *run, void *context), void *context) {
    size_t nmade = __atomic_load_n(&pma_pagemap.nmade, __ATOMIC_ACQUIRE);
    for (size_t i = 0; i < nmade; i++) {
        leaf_walk(pma_pagemap.made[i], visit, context);
    }
}

// supply.c - descriptors of slabs.
#include <config.h>

#include "supply.h"

#include "meta.h"

// Descriptors are cut from pieces of memory: one page's worth at first, each further one twice
// that, so that arenas that grow seldom meet at the lock of metadata.
#define PIECE_MIN ((size_t)4 << 10)
#define PIECE_MAX ((size_t)64 << 10)

static bool piece_take(struct supply *supply) {
    size_t size = size_max(supply->piece, PIECE_MIN);
    char *piece = pma_meta_take(META_KEPT, size, PMA_APART);
    if (piece == NULL && size > PIECE_MIN) {
        size = PIECE_MIN;
        piece = pma_meta_take(META_KEPT, size, PMA_APART);
    }
    if (piece == NULL) {
        return false;
    }
    supply->start = (uintptr_t)piece;
    supply->end = (uintptr_t)piece + size;
    supply->piece = size_min(2 * size, PIECE_MAX);
    return true;
}

struct slab *pma_supply_take(struct supply *supply, size_t words) {
    unsigned capacity = pma_slab_capacity(words);
    struct slab *slab = supply->unused[capacity];
    if (slab != NULL) {
        supply->unused[capacity] = slab_of(slab->run.next);
        return slab;
    }
    size_t size = pma_slab_descriptor_size(capacity);
    if (supply->end - supply->start < size && !piece_take(supply)) {
        return NULL;
    }
    slab = (struct slab *)supply->start;
    supply->start += size;
    slab->run.capacity = (uint8_t)capacity;
    return slab;
}

void pma_supply_give(struct supply *supply, struct slab *slab) {
    unsigned capacity = slab->run.capacity;
    run_set_kind(&slab->run, RUN_UNUSED);
    slab->run.next = (struct run *)supply->unused[capacity];
    supply->unused[capacity] = slab;
}

// supply.c - descriptors of slabs.
#include <config.h>

#include "supply.h"

#include "meta.h"

// Descriptors are cut from pieces of this size.
#define PIECE ((size_t)4096)

static bool piece_take(struct supply *supply) {
    char *piece = pma_meta_take(META_KEPT, PIECE, PMA_APART);
    if (piece == NULL) {
        return false;
    }
    supply->start = (uintptr_t)piece;
    supply->end = (uintptr_t)piece + PIECE;
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

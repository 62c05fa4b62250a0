// supply.h - descriptors of slabs.
//
// Owns those of one arena that are not in use, by capacity, and the memory that is not cut yet;
// guarded as the arena is. A descriptor stays with its arena for ever: a thread that still holds
// the address of one after its slab is gone can at most put it into this arena's inbox once more.
// It must not know arenas.
#ifndef PMA_SUPPLY_H
#define PMA_SUPPLY_H

#include "base.h"
#include "slab.h"

struct supply {
    struct slab *unused[PMA_SLAB_CAPACITIES]; // by run.next
    uintptr_t start;                          // memory not yet cut
    uintptr_t end;
    size_t piece; // bytes of the next piece of memory; 0: none was taken yet
};

// One with room for so many live words; its capacity is set. NULL: no memory.
struct slab *pma_supply_take(struct supply *supply, size_t words);
void pma_supply_give(struct supply *supply, struct slab *slab);

#endif

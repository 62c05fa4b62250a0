// rest.h - what an arena holds in reserve, and how it lets go of it.
//
// Owns the rules for arenas at rest: when windows are put back, empty slabs and cached runs given
// back, and the pages of free slots dropped. Guarded as the arena is. It must not know threads.
#ifndef PMA_REST_H
#define PMA_REST_H

#include "arena.h"
#include "base.h"

// Puts back every window and gives back every empty slab and cached run: before a long rest, or to
// save memory.
void pma_arena_rest(struct arena *arena);

// The same, and drops the pages of free slots too, in slabs that stay. The number of bytes.
size_t pma_arena_shrink(struct arena *arena);

// About once a second, while its thread makes calls: gives back what lay unused.
void pma_arena_tick(struct arena *arena);

// Sets what follows from live again, after a fork in which threads may have stopped between two
// stores.
void pma_arena_recount(struct arena *arena);

#endif

// thread.h - which arena a thread has: birth, death, adoption.
//
// Owns the thread's pointer to its arena, the list of all arenas, and the pool of idle ones, which
// the pool's lock guards. An arena is made when no idle one is left, and never goes away. It must
// not know the entry points.
#ifndef PMA_THREAD_H
#define PMA_THREAD_H

#include "arena.h"
#include "base.h"

// The thread's arena. A thread that has none yet, or no more, points to one whose windows are empty
// and that owns no slab, so the fast paths need no test.
extern __thread struct arena *pma_self;
extern struct arena pma_nobody;

// Before the first arena: the number of shards.
void pma_thread_init(unsigned nshards);

// The thread's arena, marked busy, bound now if there was none; NULL: no memory. A thread that has
// run its destructors is lent one for the call.
PMA_SLOW struct arena *pma_arena_enter(void);
PMA_SLOW struct arena *pma_arena_enter_bound(void);
void pma_arena_leave(struct arena *arena);

// Something was put into the arena's inbox: if no thread has it, the caller drains it.
void pma_arena_visit(struct arena *arena);

// Shrinks all arenas that no thread has. The number of bytes.
size_t pma_arena_shrink_idle(void);

// For each arena, in no particular order.
void pma_arena_walk(void (*visit)(struct arena *arena, void *context), void *context);

// In a forked child: the arenas of threads that are gone become idle, but for those that were
// inside a slow path.
void pma_thread_after_fork(void);

// In the child of a process with one thread, which goes on where it was: only draws begin anew.
void pma_thread_after_fork_alone(void);

struct lock *pma_thread_lock(void);

#endif

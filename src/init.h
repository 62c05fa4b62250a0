// init.h - the order of start, and fork.
//
// Owns whether the library has started, and the fork handlers. Start needs nothing but the kernel
// and works before any constructor has run; the fork handlers are registered by the library's
// constructor, since that allocates.
#ifndef PMA_INIT_H
#define PMA_INIT_H

#include "base.h"

// 1 after start; atomic.
extern uint32_t pma_is_ready;

PMA_SLOW void pma_init(void);

// Called at the beginning of whatever may be the first call of a process, except for the fast
// paths.
PMA_INLINE void init_ensure(void) {
    if (unlikely(__atomic_load_n(&pma_is_ready, __ATOMIC_ACQUIRE) == 0)) {
        pma_init();
    }
}

// Registers the handlers of fork, once. Handlers that others registered later run while no lock is
// held, and may allocate; so this should come before all of them.
void pma_fork_register(void);

#endif

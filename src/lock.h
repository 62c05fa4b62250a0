// lock.h - locks with a rank.
//
// Owns the order in which locks may be taken: a thread takes only locks of a higher rank than any
// it holds, which the test build checks. Whoever waits spins briefly and then sleeps in the kernel.
// It must know nothing of what it guards. Fork handlers take every lock in rank order and set each
// free again in the child.
#ifndef PMA_LOCK_H
#define PMA_LOCK_H

#include "base.h"

// Lowest first; the rank of an array of locks is shared, and they are taken in order of their
// addresses.
enum lock_rank {
    LOCK_INIT,        // the order of start
    LOCK_POOL,        // the pool of idle arenas, and the list of all arenas
    LOCK_ADOPTION,    // one per arena: who may drain it while it is idle
    LOCK_HUGE,        // the list and the cache of huge blocks
    LOCK_SHARD,       // one per shard: its runs
    LOCK_GROWTH,      // growing the heap: the kernel is called under it
    LOCK_REGION,      // regions: what is handed out
    LOCK_META_GROWTH, // growing memory for descriptors: the kernel is called under it
    LOCK_META,        // memory for descriptors
    LOCK_PAGEMAP,     // the page map's new leaves
    LOCK_RANKS
};

struct lock {
    uint32_t state;    // atomic; 0 free, 1 held, 2 held and somebody may sleep
    uint32_t sleepers; // atomic; threads that sleep, are about to, or were woken and do not have it
    uint32_t rank;     // const; an enum lock_rank
    uint32_t contended; // atomic; acquisitions that had to wait
    uintptr_t owner;    // atomic; the thread that holds it, or 0 for a moment or while it is free
};

#define LOCK_FREE(rank_) \
    { .state = 0, .rank = (rank_) }

// How many processors there are: with one, waiting does not spin. Without this call, whoever waits
// first asks the kernel.
void pma_lock_know_processors(unsigned count);

void pma_lock_init(struct lock *lock, enum lock_rank rank);
void pma_lock_slow(struct lock *lock, const struct lock *outer);
void pma_unlock_slow(struct lock *lock);

// In a forked child: the lock is free, whoever held it.
void pma_lock_reset(struct lock *lock);

#if PMA_TEST
void pma_lock_note(const struct lock *lock);   // the calling thread now holds it: checks the order
void pma_unlock_note(const struct lock *lock); // and no longer
bool pma_lock_none_held(void);                 // the calling thread holds none
#else
PMA_INLINE void pma_lock_note(const struct lock *lock) {
    (void)lock;
}
PMA_INLINE void pma_unlock_note(const struct lock *lock) {
    (void)lock;
}
#endif

// The lock that the thread is just taking or leaving, when its owner is not written yet or no more:
// a signal's handler may come then too. Its address names the thread.
extern __thread const struct lock *pma_lock_between;

PMA_INLINE const struct lock *lock_begin(const struct lock *lock) {
    const struct lock *outer = pma_lock_between;
    pma_lock_between = lock;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return outer;
}

PMA_INLINE void lock_end(const struct lock *outer) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    pma_lock_between = outer;
}

PMA_INLINE bool lock_take(struct lock *lock) {
    uint32_t unheld = 0;
    return __atomic_compare_exchange_n(&lock->state, &unheld, 1, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

PMA_INLINE void lock_own(struct lock *lock) {
    __atomic_store_n(&lock->owner, (uintptr_t)&pma_lock_between, __ATOMIC_RELAXED);
}

PMA_INLINE bool lock_try(struct lock *lock) {
    const struct lock *outer = lock_begin(lock);
    bool is_taken = lock_take(lock);
    if (is_taken) {
        lock_own(lock);
    }
    lock_end(outer);
    if (is_taken) {
        pma_lock_note(lock);
    }
    return is_taken;
}

PMA_INLINE void lock_lock(struct lock *lock) {
    const struct lock *outer = lock_begin(lock);
    if (unlikely(!lock_take(lock))) {
        pma_lock_slow(lock, outer);
    }
    lock_own(lock);
    lock_end(outer);
    pma_lock_note(lock);
}

PMA_INLINE void lock_unlock(struct lock *lock) {
    pma_unlock_note(lock);
    const struct lock *outer = lock_begin(lock);
    __atomic_store_n(&lock->owner, 0, __ATOMIC_RELAXED);
    bool is_awaited = __atomic_exchange_n(&lock->state, 0, __ATOMIC_RELEASE) == 2;
    lock_end(outer);
    if (unlikely(is_awaited)) {
        pma_unlock_slow(lock);
    }
}

#endif

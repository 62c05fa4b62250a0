// remote.h - slots freed by a thread that does not own their slab.
//
// Owns the protocol between the owner of a slab and all other threads: the remote words, the slab's
// state, the inbox. There is no lock; every atomic here is sequentially consistent unless it says
// otherwise, and test/model has the protocol as a Promela model. It must not know bins, queues or
// threads.
//
// A state is three bits of enum slab_state, 29 bits that count changes, and 32 that count
// incarnations, the uses of the descriptor as another slab. Whoever changes the state compares the
// whole, so a change in between is noticed.
#ifndef PMA_REMOTE_H
#define PMA_REMOTE_H

#include "base.h"
#include "pageheap.h"
#include "slab.h"

// A stack of slabs that have remote bits: many push, the owner takes all.
struct inbox {
    struct slab *head; // atomic
};

PMA_INLINE uint64_t slab_load_state(const struct slab *slab) {
    return __atomic_load_n(&slab->run.remote->state, __ATOMIC_SEQ_CST);
}

PMA_INLINE enum slab_state slab_state_of(uint64_t state) {
    return (enum slab_state)(state & 7);
}

PMA_INLINE uint32_t slab_incarnation_of(uint64_t state) {
    return (uint32_t)(state >> 32);
}

// The slab is not current: whoever finds all of it freed may give its pages back.
PMA_INLINE bool slab_is_settled(uint64_t state) {
    return slab_state_of(state) == SLAB_ATTACHED || slab_state_of(state) == SLAB_DETACHED;
}

// From the state that was seen to another; false if it is no longer that.
PMA_INLINE bool slab_change_state(struct slab *slab, uint64_t seen, enum slab_state to) {
    uint64_t changed =
        (seen & ~(uint64_t)UINT32_MAX) | ((seen + 8) & UINT32_MAX & ~(uint64_t)7) | to;
    return __atomic_compare_exchange_n(&slab->run.remote->state, &seen, changed, false,
                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

// The owner's change where no other thread can interfere: from CURRENT, or of a descriptor in
// reserve.
PMA_INLINE void slab_set_state(struct slab *slab, enum slab_state to) {
    uint64_t seen = slab_load_state(slab);
    uint64_t incarnation = to == SLAB_CURRENT && slab_state_of(seen) == SLAB_UNUSED;
    uint64_t changed = ((seen + (incarnation << 32)) & ~(uint64_t)UINT32_MAX) |
                       ((seen + 8) & UINT32_MAX & ~(uint64_t)7) | to;
    __atomic_store_n(&slab->run.remote->state, changed, __ATOMIC_SEQ_CST);
}

enum remote_outcome {
    REMOTE_DONE,     // the bit is set, and the slab was in the inbox already
    REMOTE_PUSHED,   // the slab was put into the inbox: if its arena is idle, somebody must look
    REMOTE_NOT_LIVE, // a double free: nothing was changed
};

// Frees a slot of a slab that another thread owns. It gives the slab's pages back when this was its
// last slot.
enum remote_outcome pma_remote_free(struct slab *slab, uint64_t index, struct inbox *inbox);

PMA_INLINE bool inbox_is_empty(const struct inbox *inbox) {
    return __atomic_load_n(&inbox->head, __ATOMIC_SEQ_CST) == NULL;
}

// Takes all; the caller follows the links by pma_inbox_next, once for each, before it looks at the
// slab's words.
struct slab *pma_inbox_take_all(struct inbox *inbox);
struct slab *pma_inbox_next(struct slab *slab);

// In a forked child, which is alone yet: first the one, then for each inbox the other. What is in
// an inbox stays there; what was on its way is queued again by its next free, or found by other
// means.
void pma_remote_after_fork(void);
void pma_inbox_after_fork(struct inbox *inbox);

// True if every live slot of the slab was freed remotely. What is read may change meanwhile, but
// whoever changes it in a way that matters changes the state too: load that before, and compare
// after.
bool pma_remote_is_complete(const struct slab *slab, size_t words);

// The owner clears the slots of its slab that were freed remotely; how many there were. A remote
// bit on a slot that is not live was freed twice: that ends the program.
size_t pma_remote_collect(struct slab *slab);

// True while there may be remote bits that no drain has seen.
PMA_INLINE bool slab_is_queued(const struct slab *slab) {
    return __atomic_load_n(&slab->run.remote->queued, __ATOMIC_RELAXED) != 0;
}

// A slab's run goes back to the page heap: nothing of it is in the page map any more.
void pma_slab_give_pages(struct pages pages);

#endif

// remote.c - slots freed by a thread that does not own their slab.
#include <config.h>

#include "remote.h"

#include "fatal.h"
#include "os.h"
#include "pagemap.h"

// The mark of a slab in an inbox. A forked child has a new one, since threads that are gone in it
// may have set the old one and not come to push the slab.
static uint32_t generation = 1;

void pma_slab_give_pages(struct pages pages) {
    pma_pagemap_fill(pages.start, (size_t)pages.npages << pma_page_shift, NULL);
    pma_pageheap_give(pages);
}

bool pma_remote_is_complete(const struct slab *slab, size_t words) {
    for (size_t word = 0; word < words; word++) {
        uint64_t bits = __atomic_load_n(&slab->run.remote->bits[word], __ATOMIC_SEQ_CST);
        if (bits != __atomic_load_n(&slab->live[word], __ATOMIC_SEQ_CST)) {
            return false;
        }
    }
    return true;
}

// The last slot of a slab was freed, perhaps: its owner may sleep for ever, so whoever notices
// gives the pages back. The slab's own fields may no longer be read after the change of state,
// since the owner may use the descriptor again at once; pages was read before the caller's slot was
// freed, while the slab could not go away. A change that fails may be the owner's, who attached the
// slab and looks at it no more: so this looks again.
static void claim_if_complete(struct slab *slab, uint32_t incarnation, struct pages pages,
                              size_t words) {
    for (;;) {
        uint64_t state = slab_load_state(slab);
        if (slab_incarnation_of(state) != incarnation || !slab_is_settled(state) ||
            !pma_remote_is_complete(slab, words)) {
            return;
        }
        if (slab_change_state(slab, state, SLAB_GONE)) {
            pma_slab_give_pages(pages);
            return;
        }
    }
}

static void inbox_push(struct inbox *inbox, struct slab *slab) {
    struct slab *head = __atomic_load_n(&inbox->head, __ATOMIC_RELAXED);
    do {
        __atomic_store_n(&slab->run.remote->next, head, __ATOMIC_RELAXED);
    } while (!__atomic_compare_exchange_n(&inbox->head, &head, slab, true, __ATOMIC_SEQ_CST,
                                          __ATOMIC_RELAXED));
}

enum remote_outcome pma_remote_free(struct slab *slab, uint64_t index, struct inbox *inbox) {
    size_t word = index / 64;
    uint64_t bit = (uint64_t)1 << index % 64;
    struct remote *remote = slab->run.remote;
    struct pages pages = { slab->run.start, slab->run.npages, slab->run.shard, false };
    size_t words = slab->run.words;
    uint32_t incarnation = slab_incarnation_of(slab_load_state(slab));
    if ((slab_live(slab, word) & bit) == 0) {
        return REMOTE_NOT_LIVE;
    }
    uint64_t old = __atomic_fetch_or(&remote->bits[word], bit, __ATOMIC_SEQ_CST);
    if ((old & bit) != 0) {
        return REMOTE_NOT_LIVE;
    }
    // From here on the slab may go away at any moment, but its descriptor stays one of the same
    // arena.
    bool pushed = old == 0 &&
                  __atomic_exchange_n(&remote->queued, generation, __ATOMIC_SEQ_CST) != generation;
    if (pushed) {
        inbox_push(inbox, slab);
    }
    // Loaded again: the owner may have freed the word's other slots since.
    if ((old | bit) == __atomic_load_n(&slab->live[word], __ATOMIC_SEQ_CST)) {
        claim_if_complete(slab, incarnation, pages, words);
    }
    return pushed ? REMOTE_PUSHED : REMOTE_DONE;
}

void pma_remote_after_fork(void) {
    generation++;
}

void pma_inbox_after_fork(struct inbox *inbox) {
    struct slab *slab = __atomic_load_n(&inbox->head, __ATOMIC_RELAXED);
    for (; slab != NULL; slab = slab->run.remote->next) {
        __atomic_store_n(&slab->run.remote->queued, generation, __ATOMIC_RELAXED);
    }
}

struct slab *pma_inbox_take_all(struct inbox *inbox) {
    return __atomic_exchange_n(&inbox->head, NULL, __ATOMIC_SEQ_CST);
}

struct slab *pma_inbox_next(struct slab *slab) {
    struct slab *next = __atomic_load_n(&slab->run.remote->next, __ATOMIC_RELAXED);
    // First this, then the words: a bit that is set after its word was taken finds 0 here and
    // queues the slab again.
    __atomic_exchange_n(&slab->run.remote->queued, 0, __ATOMIC_SEQ_CST);
    return next;
}

size_t pma_remote_collect(struct slab *slab) {
    size_t count = 0;
    for (size_t word = 0; word < slab->run.words; word++) {
        uint64_t *bits = &slab->run.remote->bits[word];
        if (__atomic_load_n(bits, __ATOMIC_SEQ_CST) == 0) {
            continue;
        }
        uint64_t freed = __atomic_exchange_n(bits, 0, __ATOMIC_SEQ_CST);
        uint64_t live = slab_live(slab, word);
        if ((freed & ~live) != 0) {
            uint64_t index = word * 64 + bits_lowest(freed & ~live);
            size_t unit = slab->run.size >> slab->run.shift;
            uintptr_t place = slab->run.base + (uintptr_t)index * unit;
            struct fatal_block block = { (void *)place, slab->run.size,
                                         (ptrdiff_t)(index >> slab->run.shift) };
            pma_fatal("free", "double free", block);
        }
        slab_set_live(slab, word, live & ~freed);
        count += bits_count(freed);
    }
    // A thread that frees the last slot meanwhile saw an incomplete word and went away: the caller
    // looks after this. A read-modify-write rather than a fence, which thread checkers do not know.
    __atomic_fetch_or(&slab->run.remote->queued, 0, __ATOMIC_SEQ_CST);
    return count;
}

// slab.h - a run cut in equal slots: live words, and what other threads write.
//
// Owns the layout of slab descriptors and what can be said of one slab alone. A slab's owner is the
// one thread that holds its arena; the remote part is written by all. It must not know bins, queues
// or threads.
//
// live is the single truth: a bit is 1 while the program holds the slot. Everything else follows
// from it:
//
//   sum of bits_count(live) == count + bias, but for a current slab, whose count means nothing
//   room has a 1 only for words in which a slot was free when it was last looked at
//   a bit of remote is 1 only where live is 1, in a correct program
#ifndef PMA_SLAB_H
#define PMA_SLAB_H

#include "base.h"
#include "class.h"
#include "run.h"
#include "tune.h"

// What the owner and remote threads agree upon, with the incarnation and a count of changes: see
// remote.h.
enum slab_state {
    SLAB_UNUSED,   // a descriptor in reserve
    SLAB_CURRENT,  // the bin hands out of it
    SLAB_ATTACHED, // in its bin's queue
    SLAB_DETACHED, // full, or nearly: in no queue
    SLAB_GONE      // empty, its pages given back; the descriptor waits for its owner
};

struct slab {
    struct run run;
    uint64_t fresh; // owner; one-word slabs: slots never in a window since their pages were zero
    uint32_t dropped_at; // owner; how many slots were live when pages of free slots were dropped
    uint64_t live[];     // owner to write, atomic to read; positions behind the last slot stay 0
};

_Static_assert(offsetof(struct slab, live) == 112, "two live words share the hot line");

// On cache lines of its own.
struct remote {
    uint64_t state;    // atomic; see slab_state_of
    struct slab *next; // atomic; in an inbox
    // atomic; remote.c's generation: in an inbox, or about to be; the drainer sets 0
    uint32_t queued;
    uint64_t bits[]; // atomic; slots freed remotely, word by word
};

// Descriptors come in a few sizes, by the number of live words they hold.
#define PMA_SLAB_CAPACITIES 5
extern const uint8_t pma_slab_capacities[PMA_SLAB_CAPACITIES];

// The smallest capacity for so many words, and the bytes of a descriptor with it.
unsigned pma_slab_capacity(size_t words);
size_t pma_slab_descriptor_size(unsigned capacity);

// How many words of live a run of this shape can be asked about: the slots, and the unused end.
size_t pma_slab_span_words(size_t size, struct shape shape);

PMA_INLINE struct slab *slab_of(struct run *run) {
    return (struct slab *)run;
}

PMA_INLINE size_t slab_slots(const struct slab *slab) {
    return (size_t)slab->run.words * (64u >> slab->run.shift);
}

// The word of live that holds a position. The compiler would add the offset of live to the index
// first, an instruction more.
PMA_INLINE uint64_t *slab_word(struct slab *slab, uint64_t index) {
    char *place = (char *)slab + (size_t)(index / 64) * sizeof(uint64_t);
    __asm__("" : "+r"(place));
    return (uint64_t *)(place + offsetof(struct slab, live));
}

PMA_INLINE uint64_t slab_live(const struct slab *slab, size_t word) {
    return __atomic_load_n(&slab->live[word], __ATOMIC_RELAXED);
}

// The owner alone writes it, so a plain store will do: other threads only ever look.
PMA_INLINE void slab_set_live(struct slab *slab, size_t word, uint64_t bits) {
    __atomic_store_n(&slab->live[word], bits, __ATOMIC_RELAXED);
}

PMA_INLINE uint64_t slab_free_bits(const struct slab *slab, size_t word) {
    return ~slab_live(slab, word) & shape_mask(slab->run.shift);
}

// Where a pointer falls: the position in units, and whether it is exact. One multiplication finds
// the position and proves the pointer (Lemire, Kaser, Kurz, "Faster remainder by direct
// computation", 2019): with inverse = 2^64 / unit rounded up, the product's high half is the
// quotient, and its low half is below inverse exactly when the remainder is 0.
struct position {
    uint64_t index;
    bool exact;
};

PMA_INLINE struct position slab_position(const struct run *run, uintptr_t address) {
    uint64_t low;
    uint64_t index = multiply_high(address - run->base, &run->inverse, &low);
    return (struct position){ index, low < run->inverse };
}

// A new incarnation in a descriptor of sufficient capacity, with every slot free, and state
// CURRENT.
struct arena;
void pma_slab_init(struct slab *slab, uintptr_t start, size_t size, struct shape shape,
                   struct arena *owner, uint32_t bin);

// The words that have a free slot.
uint64_t pma_slab_scan(const struct slab *slab);

// Drops the whole pages that lie in stretches of at least least bytes of free slots. Only while the
// slab is current, and its window is empty. The number of bytes.
size_t pma_slab_drop(struct slab *slab, size_t least);

// The number of live slots.
size_t pma_slab_count_live(const struct slab *slab);

#endif

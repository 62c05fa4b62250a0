// arena.h - what one thread owns.
//
// Owns bins, their windows and queues, the entropy stream, the descriptors of the arena's slabs,
// and the run cache. All of it is written by one thread at a time: the thread the arena is bound
// to, or, while it is idle, the holder of its adoption lock. Other threads write its inbox only,
// which lies on cache lines of its own. It must not know how threads come and go.
#ifndef PMA_ARENA_H
#define PMA_ARENA_H

#include "base.h"
#include "class.h"
#include "large.h"
#include "lock.h"
#include "random.h"
#include "remote.h"
#include "slab.h"
#include "supply.h"
#include "tune.h"

// One cache line. While window is not 0, base, live and unit belong to the word it was loaded from.
struct bin {
    uint64_t window;      // owner; slots of the current word that are free and were not handed out
    uintptr_t base;       // owner; address of the word's bit 0
    uint64_t *live;       // owner; the word's live bits
    uint32_t unit;        // owner; bytes for each bit
    uint8_t word;         // owner; which word of the current slab
    uint8_t level;        // owner; shape of the next slab
    uint8_t grade;        // owner; how narrow its sizes are, an enum grade
    uint8_t heat;         // owner; refills from narrow words so far, up to PMA_HEAT_WIDE
    struct slab *current; // owner; the slab of the window, even when that is empty; or NULL
    struct slab *first;   // owner; slabs with room, the one that has waited longest first
    struct slab *last;    // owner
    uint64_t fresh; // owner; slots of the window that were never used since their pages were zero
} PMA_ALIGNED(64);

_Static_assert(sizeof(struct bin) == 64, "a bin is one cache line");

struct arena {
    struct stream *stream; // const
#if UINTPTR_MAX == UINT32_MAX
    // The head of an arena of zeroes is a bin whose window is empty.
    uint32_t fill;
#endif
    struct bin *small[PMA_FINE_MAX / 16 + 1]; // owner; by (size + 15) / 16
    uint16_t medium[PMA_SLOT_MAX / 64 + 1];   // owner; by (size + 63) / 64: offset of the bin
    uint64_t used[(PMA_CLASSES + 63) / 64];   // owner; a bit for each bin that ever had a slab
    struct run_cache cache;                   // owner
    struct supply supply;                     // owner
    uint32_t busy;          // owner; 1 inside a slow path: a forked child must not adopt it
    uint32_t shard;         // const; its page heap
    uint64_t tick_due;      // owner; when to look for what lies unused, nanoseconds; 0: not yet
    uint64_t clock_read;    // owner; when the clock was read last
    uint32_t clock_wait;    // owner; refills from one reading to the next
    uint32_t clock_skip;    // owner; refills until the next reading
    uint32_t notices;       // owner; slabs that got room or emptied since the last refill
    uint32_t recount;       // owner; after fork: counts may be off, see thread.c
    uint32_t number;        // const; which arena of the process, from 0
    struct arena *all_next; // const; the list of all arenas
    struct inbox inbox PMA_ALIGNED(PMA_APART); // atomic
    uint32_t idle;                             // atomic; 1: no thread has it
    struct lock adoption;                      // who may drain it while it is idle
    struct arena *idle_next;                   // the pool's lock
    // owner; last, and only the lines of bins that were used are ever written
    struct bin bins[PMA_CLASSES] PMA_ALIGNED(PMA_APART);
} PMA_ALIGNED(PMA_APART);

_Static_assert(sizeof(struct arena) < UINT16_MAX, "a bin's offset fits the tables");

PMA_INLINE struct bin *arena_bin(struct arena *arena, size_t offset) {
    return (struct bin *)((char *)arena + offset);
}

PMA_INLINE size_t bin_size(const struct arena *arena, const struct bin *bin) {
    return class_size((unsigned)(bin - arena->bins));
}

// The bin for so many bytes, at most PMA_SLOT_MAX.
PMA_INLINE struct bin *arena_bin_for(struct arena *arena, size_t size) {
    if (likely(size <= PMA_FINE_MAX)) {
        return arena->small[(size + 15) / 16];
    }
    return arena_bin(arena, arena->medium[(size + 63) / 64]);
}

PMA_INLINE struct bin *slab_bin(const struct slab *slab) {
    return arena_bin(slab->run.owner, slab->run.bin);
}

// Takes a slot out of the window, which must not be empty: a draw names one of 16 places, and the
// first free slot from there on is it. The window first, then live: if the thread is gone in
// between, as after fork, a slot is lost and none is handed out twice.
PMA_INLINE void *bin_take(struct bin *bin, unsigned rotation) {
    uint64_t window = bin->window;
    unsigned bit = (bits_lowest(bits_rotate_right(window, rotation)) + rotation) & 63;
    uint64_t taken = bits_set(0, bit);
    bits_flip(&bin->window, taken);
    bits_add(bin->live, taken);
    return (void *)(bin->base + (uintptr_t)bit * bin->unit);
}

// A slot that is free was freed remotely too. It never returns.
PMA_COLD _Noreturn void pma_arena_refuse(struct slab *slab, size_t word, uint64_t bits);

// The bits of a word that are free become the window. A remote bit on one of them is a slot that
// was freed remotely and then, wrongly, by its owner: handing it out would give it to two.
PMA_INLINE void window_load(struct bin *bin, struct slab *slab, size_t word, uint64_t free_bits) {
    uint64_t remote = __atomic_load_n(&slab->run.remote->bits[word], __ATOMIC_RELAXED);
    if (unlikely((remote & free_bits) != 0)) {
        pma_arena_refuse(slab, word, remote & free_bits);
    }
    bin->base = slab->run.base + word * 64 * bin->unit;
    bin->live = &slab->live[word];
    bin->word = (uint8_t)word;
    bin->window = free_bits;
    bin->fresh = slab->fresh & free_bits;
    slab->fresh &= ~free_bits;
}

// The lowest word that room names; it has free slots still, since only the window's are handed out.
PMA_INLINE void window_next(struct bin *bin, struct slab *slab) {
    unsigned word = bits_lowest(slab->run.room);
    slab->run.room &= slab->run.room - 1;
    window_load(bin, slab, word, slab_free_bits(slab, word));
}

// True if about a quarter of a word's slots is free. Fifteen bits four apart are counted by one
// multiplication, which is exact for words of up to 16 slots but for the last, and a fair sample of
// longer ones: a popcount without the instruction takes twenty operations.
PMA_INLINE bool has_enough(const struct slab *slab, uint64_t free_bits) {
    uint64_t sample = free_bits & 0x0111111111111111u;
    return sample * 0x1111111111111111u >> 60 >= slab->run.enough;
}

// Fills the window from the current slab: from the same word if enough of it is free by now, else
// from another that is known to have room.
PMA_INLINE bool bin_refill(struct bin *bin, struct slab *slab) {
    uint64_t free_bits = slab_free_bits(slab, bin->word);
    if (has_enough(slab, free_bits)) {
        window_load(bin, slab, bin->word, free_bits);
        return true;
    }
    if (slab->run.room != 0) {
        window_next(bin, slab);
        return true;
    }
    return false;
}

// The next of the bins that ever had a slab, NULL behind the last; the first behind NULL.
PMA_INLINE struct bin *arena_next_used(struct arena *arena, struct bin *bin) {
    size_t next = bin == NULL ? 0 : (size_t)(bin - arena->bins) + 1;
    for (; next < PMA_CLASSES; next = (next | 63) + 1) {
        uint64_t used = arena->used[next / 64] >> next % 64;
        if (used != 0) {
            return &arena->bins[next + bits_lowest(used)];
        }
    }
    return NULL;
}

// Leaves at most 16 neighbouring bits of a window that was just filled; the rest is found again
// when the word is looked at next.
void pma_window_narrow(struct bin *bin, unsigned rotation);

// Sets up an arena in zeroed memory.
void pma_arena_init(struct arena *arena, struct stream *stream, unsigned number, unsigned shard);

// Fills the window of a bin: from the same word, the same slab, the next slab with room, the inbox,
// or a new slab. False: no memory.
bool pma_arena_refill(struct arena *arena, struct bin *bin);

// The same when bin_refill found nothing: all words of the current slab that had room were used.
// Looks at them again, or leaves the slab.
bool pma_arena_refill_elsewhere(struct arena *arena, struct bin *bin);

// A slab's count reached 0 by a free of the owner: it has room again, or it is empty.
PMA_SLOW void pma_arena_notice(struct arena *arena, struct slab *slab);

// Takes what other threads freed.
void pma_arena_drain(struct arena *arena);

// Takes the slab that has waited longest out of its bin's queue: it is current then, but not its
// bin's. NULL: there is none.
struct slab *pma_slab_with_room(struct arena *arena, struct bin *bin);

// A current slab that is not its bin's, or no more, goes to the queue, or away if it is empty.
void pma_slab_leave(struct arena *arena, struct slab *slab);

// Looks at a slab that the owner has just changed. A thread that frees a slab's last slot may have
// looked before the change and gone away, and the owner may sleep from now on.
void pma_slab_look_again(struct arena *arena, struct slab *slab);

// So many slots are live in a slab that is not current, and was seen in this state: it is empty, or
// it has room, or is still nearly full.
void pma_slab_settle(struct arena *arena, struct slab *slab, uint64_t state, uint32_t live);

#endif

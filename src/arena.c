// arena.c - what one thread owns: refill, slabs with room, slabs that empty.
#include <config.h>

#include "arena.h"

#include "fatal.h"
#include "meta.h"
#include "os.h"
#include "pageheap.h"
#include "pagemap.h"

// ---- which bin serves which size

// From now on sizes above from, up to to, have the bins of this grade. The steps of the tables are
// never longer than those of the classes.
static void sizes_assign(struct arena *arena, size_t from, size_t to, enum grade grade) {
    size_t step = pma_class_step(to, grade);
    size_t unit = to <= PMA_FINE_MAX ? 16 : 64;
    for (size_t size = align_down(from, unit) + unit; size <= to; size += unit) {
        struct bin *bin = &arena->bins[class_of(align_up(size, step))];
        if (unit == 16) {
            arena->small[size / 16] = bin;
        } else {
            arena->medium[size / 64] = (uint16_t)((char *)bin - (char *)arena);
        }
    }
}

// A bin that has had many slabs gives up the smaller of its sizes to bins of their own. What it
// holds of those it keeps: its slots are as long as the longest.
static void bin_split(struct arena *arena, struct bin *bin) {
    size_t size = bin_size(arena, bin);
    size_t step = pma_class_step(size, bin->grade);
    bin->grade++;
    size_t finer = pma_class_step(size, bin->grade);
    if (finer == step || bin == &arena->bins[0]) {
        return;
    }
    for (size_t part = size - step + finer; part < size; part += finer) {
        struct bin *other = &arena->bins[class_of(part)];
        other->grade = bin->grade;
        other->level = bin->level / 2;
    }
    sizes_assign(arena, size - step, size, bin->grade);
}

static bool is_due_to_split(const struct arena *arena, const struct bin *bin) {
    if (bin->grade == GRADE_COARSE) {
        return bin->level >= (bin_size(arena, bin) <= PMA_FINE_MAX ? PMA_SPLIT_SMALL : PMA_SPLIT);
    }
    return bin->grade == GRADE_MIDDLE && bin->level >= PMA_SPLIT_AGAIN;
}

void pma_arena_init(struct arena *arena, struct stream *stream, unsigned number, unsigned shard) {
    arena->stream = stream;
    arena->number = number;
    arena->shard = shard;
    arena->idle = 1;
    pma_lock_init(&arena->adoption, LOCK_ADOPTION);
    arena->small[0] = &arena->bins[0];
    for (size_t size = 16; size <= PMA_SLOT_MAX; size *= 2) {
        sizes_assign(arena, size / 2, size, GRADE_COARSE);
    }
}

// ---- the queue of slabs with room

// A slab that is in no queue points at itself.
static void queue_forget(struct slab *slab) {
    slab->run.prev = &slab->run;
}

static bool queue_has(const struct slab *slab) {
    return slab->run.prev != &slab->run;
}

static void queue_append(struct bin *bin, struct slab *slab) {
    slab->run.next = NULL;
    slab->run.prev = (struct run *)bin->last;
    if (bin->last != NULL) {
        bin->last->run.next = &slab->run;
    } else {
        bin->first = slab;
    }
    bin->last = slab;
}

static void queue_remove(struct bin *bin, struct slab *slab) {
    if (slab->run.next != NULL) {
        slab->run.next->prev = slab->run.prev;
    } else {
        bin->last = slab_of(slab->run.prev);
    }
    if (slab->run.prev != NULL) {
        slab->run.prev->next = slab->run.next;
    } else {
        bin->first = slab_of(slab->run.next);
    }
    queue_forget(slab);
}

// ---- the life of a slab

// Slots that must be free before a full slab is worth looking at again: with one, a heap whose
// slabs are all full but for a slot here and there would look through a whole slab for each malloc.
static uint32_t slots_wanted(const struct slab *slab) {
    size_t slots = slab_slots(slab);
    return slots < 64 ? 1 : (uint32_t)(slots / 32);
}

static struct pages pages_of(const struct slab *slab) {
    return (struct pages){ slab->run.start, slab->run.npages, slab->run.shard, false };
}

// The pages of a slab in state GONE were given back; its descriptor is of use again. It may still
// be in the inbox, or on its way there: whoever meets it finds a slab that needs nothing, since the
// inbox's fields are not touched here.
static void slab_bury(struct arena *arena, struct slab *slab) {
    if (queue_has(slab)) {
        queue_remove(slab_bin(slab), slab);
    }
    slab_set_state(slab, SLAB_UNUSED);
    pma_supply_give(&arena->supply, slab);
}

// Gives back the pages of a slab all of whose slots are free, if it still is in the state that was
// seen. Somebody else may have done so meanwhile; then its descriptor is buried all the same.
static void slab_release(struct arena *arena, struct slab *slab, uint64_t state) {
    struct pages pages = pages_of(slab);
    slab_bin(slab)->level -= slab_bin(slab)->level > 0 && slab->run.size > PMA_FINE_MAX;
    if (slab_change_state(slab, state, SLAB_GONE)) {
        pma_slab_give_pages(pages);
    }
    slab_bury(arena, slab);
}

void pma_slab_look_again(struct arena *arena, struct slab *slab) {
    for (;;) {
        uint64_t state = slab_load_state(slab);
        if (slab_state_of(state) == SLAB_GONE) {
            slab_bury(arena, slab);
            return;
        }
        if (!slab_is_settled(state) || !pma_remote_is_complete(slab, slab->run.words)) {
            return;
        }
        if (slab_change_state(slab, state, SLAB_GONE)) {
            pma_slab_give_pages(pages_of(slab));
            slab_bury(arena, slab);
            return;
        }
    }
}

static struct slab *slab_new(struct arena *arena, struct bin *bin) {
    size_t size = bin_size(arena, bin);
    struct shape shape = pma_class_shape(size, bin->level);
    struct slab *slab = pma_supply_take(&arena->supply, pma_slab_span_words(size, shape));
    struct pages pages;
    if (slab == NULL) {
        return NULL;
    }
    if (!pma_pageheap_take(arena->shard, shape.npages, 1, arena->stream, &pages)) {
        pma_supply_give(&arena->supply, slab);
        return NULL;
    }
    slab->run.shard = pages.shard;
    pma_slab_init(slab, pages.start, size, shape, arena, (uint32_t)((char *)bin - (char *)arena));
    slab->fresh = pages.zero && shape.words == 1 ? shape_mask(shape.shift) : 0;
    queue_forget(slab);
    slab_set_state(slab, SLAB_CURRENT);
    pma_pagemap_fill(pages.start, (size_t)pages.npages << pma_page_shift, &slab->run);
    bin->level += bin->level < PMA_LEVELS - 1;
    arena->used[(bin - arena->bins) / 64] |= (uint64_t)1 << (bin - arena->bins) % 64;
    if (unlikely(is_due_to_split(arena, bin))) {
        bin_split(arena, bin);
    }
    return slab;
}

// ---- the window

PMA_COLD _Noreturn void pma_arena_refuse(struct slab *slab, size_t word, uint64_t bits) {
    // A handler for SIGABRT may allocate, and is not to die of the same slot again.
    __atomic_fetch_and(&slab->run.remote->bits[word], ~bits, __ATOMIC_SEQ_CST);
    uint64_t index = word * 64 + bits_lowest(bits);
    size_t unit = slab->run.size >> slab->run.shift;
    uintptr_t place = slab->run.base + (uintptr_t)index * unit;
    struct fatal_block block = { (void *)place, slab->run.size,
                                 (ptrdiff_t)(index >> slab->run.shift) };
    pma_fatal("free", "double free", block);
}

void pma_window_narrow(struct bin *bin, unsigned rotation) {
    uint64_t kept = bin->window & bits_rotate_right(0xffff, rotation);
    if (bin->current->run.shift < 2 && kept != 0) {
        bin->current->fresh |= bin->fresh & ~kept;
        bin->fresh &= kept;
        bin->window = kept;
    }
}

// ---- the current slab

// No event is wanted of a slab while it is current: its count starts so high that frees cannot
// bring it to 0 before it is set again.
#define COUNT_CURRENT ((uint32_t)1 << 31)

static void slab_make_current(struct bin *bin, struct slab *slab) {
    slab->run.count = COUNT_CURRENT;
    slab->run.bias = 0;
    bin->current = slab;
    bin->unit = (uint32_t)(slab->run.size >> slab->run.shift);
    slab->dropped_at = UINT32_MAX;
}

// The current slab is full: nobody looks at it until enough of it is freed.
static void slab_detach(struct arena *arena, struct slab *slab) {
    slab->run.count = slots_wanted(slab);
    slab->run.bias = (uint32_t)slab_slots(slab) - slab->run.count;
    slab_set_state(slab, SLAB_DETACHED);
    pma_slab_look_again(arena, slab);
}

// The current slab is used no more: what is live in it keeps it until that is freed.
static void slab_retire(struct arena *arena, struct slab *slab) {
    slab->run.count = (uint32_t)pma_slab_count_live(slab);
    slab_set_state(slab, SLAB_DETACHED);
    pma_slab_look_again(arena, slab);
}

static void slab_collect(struct slab *slab) {
    if (slab_is_queued(slab)) {
        pma_remote_collect(slab);
    }
}

void pma_slab_leave(struct arena *arena, struct slab *slab) {
    slab_collect(slab);
    slab->run.count = (uint32_t)pma_slab_count_live(slab);
    slab->run.bias = 0;
    if (slab->run.count == slab_slots(slab)) {
        slab_detach(arena, slab);
    } else {
        slab_set_state(slab, SLAB_ATTACHED);
        queue_append(slab_bin(slab), slab);
        pma_slab_look_again(arena, slab);
    }
}

// The slab that has waited longest: it saw the most frees since, so its words are worth a refill.
struct slab *pma_slab_with_room(struct arena *arena, struct bin *bin) {
    struct slab *slab;
    while ((slab = bin->first) != NULL) {
        uint64_t state = slab_load_state(slab);
        if (slab_state_of(state) == SLAB_ATTACHED && slab_change_state(slab, state, SLAB_CURRENT)) {
            queue_remove(bin, slab);
            slab_collect(slab);
            slab->run.room = pma_slab_scan(slab);
            return slab;
        }
        slab_bury(arena, slab);
    }
    return NULL;
}

static bool refill_from_other_slab(struct arena *arena, struct bin *bin) {
    struct slab *slab = pma_slab_with_room(arena, bin);
    if (slab == NULL && !inbox_is_empty(&arena->inbox)) {
        pma_arena_drain(arena);
        slab = pma_slab_with_room(arena, bin);
    }
    if (slab == NULL) {
        slab = slab_new(arena, bin);
    }
    if (slab == NULL) {
        return false;
    }
    slab_make_current(bin, slab);
    window_next(bin, slab);
    return true;
}

static bool is_short(const struct slab *slab) {
    return slab->run.shift > 0 && slab->run.size * (64u >> slab->run.shift) < PMA_WORD_BYTES_HOT;
}

// A class that is asked for often gets longer words.
static bool is_outgrown(struct bin *bin, struct slab *slab) {
    if (!is_short(slab)) {
        return false;
    }
    bin->heat += bin->heat < PMA_HEAT_REFILLS;
    return bin->heat == PMA_HEAT_REFILLS;
}

static bool refill_wider(struct arena *arena, struct bin *bin, struct slab *slab) {
    while (pma_class_shape(slab->run.size, bin->level).shift >= slab->run.shift) {
        bin->level++;
    }
    bin->heat = 0;
    struct slab *wide = slab_new(arena, bin);
    if (wide == NULL) {
        return false;
    }
    slab_collect(slab);
    slab_retire(arena, slab);
    slab_make_current(bin, wide);
    window_next(bin, wide);
    return true;
}

bool pma_arena_refill_elsewhere(struct arena *arena, struct bin *bin) {
    struct slab *slab = bin->current;
    if (is_outgrown(bin, slab) && refill_wider(arena, bin, slab)) {
        return true;
    }
    slab_collect(slab);
    slab->run.room = pma_slab_scan(slab);
    if (slab->run.room != 0) {
        window_next(bin, slab);
        return true;
    }
    bin->current = NULL;
    slab_detach(arena, slab);
    return refill_from_other_slab(arena, bin);
}

bool pma_arena_refill(struct arena *arena, struct bin *bin) {
    struct slab *slab = bin->current;
    if (slab == NULL) {
        return refill_from_other_slab(arena, bin);
    }
    return bin_refill(bin, slab) || pma_arena_refill_elsewhere(arena, bin);
}

// ---- frees

// So many slots are live in a slab that is not current: it is empty, or it has room, or is still
// nearly full.
void pma_slab_settle(struct arena *arena, struct slab *slab, uint64_t state, uint32_t live) {
    if (live == 0) {
        slab_release(arena, slab, state);
    } else if (slab_state_of(state) == SLAB_ATTACHED) {
        slab->run.count = live;
        pma_slab_look_again(arena, slab);
    } else if (slab_change_state(slab, state, SLAB_ATTACHED)) {
        slab->run.count = live;
        slab->run.bias = 0;
        queue_append(slab_bin(slab), slab);
        pma_slab_look_again(arena, slab);
    } else {
        slab_bury(arena, slab);
    }
}

void pma_arena_notice(struct arena *arena, struct slab *slab) {
    uint64_t state = slab_load_state(slab);
    // Much is being freed: the next refill is to look at the clock.
    if (++arena->notices == PMA_NOTICES) {
        arena->clock_skip = arena->clock_wait = 0;
    }
    if (slab_state_of(state) != SLAB_CURRENT) {
        arena->busy = 1;
        // A thread that freed another slot before may have stalled, seen the slab empty and claimed
        // it.
        if (slab_state_of(state) == SLAB_GONE) {
            slab_bury(arena, slab);
        } else {
            pma_slab_settle(arena, slab, state, slab->run.bias);
        }
        arena->busy = 0;
    }
}

static void slab_drain(struct arena *arena, struct slab *slab) {
    uint64_t state = slab_load_state(slab);
    if (slab_state_of(state) == SLAB_GONE) {
        slab_bury(arena, slab);
        return;
    }
    if (slab_state_of(state) == SLAB_UNUSED) {
        return;
    }
    uint32_t freed = (uint32_t)pma_remote_collect(slab);
    if (slab_state_of(state) == SLAB_CURRENT) {
        return;
    }
    if (freed >= slab->run.count) {
        pma_slab_settle(arena, slab, state, slab->run.count + slab->run.bias - freed);
    } else {
        slab->run.count -= freed;
        pma_slab_look_again(arena, slab);
    }
}

void pma_arena_drain(struct arena *arena) {
    struct slab *slab = pma_inbox_take_all(&arena->inbox);
    while (slab != NULL) {
        struct slab *next = pma_inbox_next(slab);
        slab_drain(arena, slab);
        slab = next;
    }
}

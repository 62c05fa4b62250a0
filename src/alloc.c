// alloc.c - the two ways of the house: out with a slot, back with a pointer.
//
//   malloc(n):  n -> class -> this arena's bin -> a random free bit of its window -> pointer
//   free(p):    p -> page map -> slab -> slot (proved exact) -> owner? -> live bit cleared
//
// Neither takes a lock, calls the kernel, or reads or writes the block. Whatever is rare is a
// function of its own, called last, so that the hot ones save no registers.
#include <config.h>

#include "alloc.h"

#include "arena.h"
#include "background.h"
#include "fatal.h"
#include "huge.h"
#include "init.h"
#include "judge.h"
#include "large.h"
#include "os.h"
#include "pageheap.h"
#include "pagemap.h"
#include "purge.h"
#include "remote.h"
#include "rest.h"
#include "slab.h"
#include "thread.h"
#include "tune.h"

#include <errno.h>
#include <string.h>

const char pma_link_alloc = 1;
__attribute__((used)) static const char *const links[] = { &pma_link_malloc };

static void *malloc_refill(size_t size, struct arena *arena, struct bin *bin);
static void *malloc_medium(size_t size);
static void free_slow(void *block, const char *call);

// Takes a slot if the window has one and there is a draw.
PMA_INLINE bool slot_take_fast(struct arena *arena, struct bin *bin, void **slot) {
    if (likely(bin->window != 0)) {
        struct stream *stream = arena->stream;
        size_t left;
        if (likely(!__builtin_sub_overflow(stream->left, 1, &left))) {
            stream->left = left;
            *slot = bin_take(bin, stream->draws[left]);
            return true;
        }
    }
    return false;
}

PMA_HOT void *PMA_NAME(malloc)(size_t size) {
    struct arena *arena = pma_self;
    if (likely(size <= PMA_FINE_MAX)) {
        struct bin *bin = arena->small[(size + 15) / 16];
        void *slot;
        return likely(slot_take_fast(arena, bin, &slot)) ? slot : malloc_refill(size, arena, bin);
    }
    return malloc_medium(size);
}

PMA_INLINE void free_fast(void *block, const char *call) {
    uintptr_t address = (uintptr_t)block;
    struct run *run = pagemap_look(address);
    struct arena *arena = pma_self;
    if (likely(run->owner == arena)) {
        struct position position = slab_position(run, address);
        if (likely(position.exact)) {
            uint64_t *word = slab_word(slab_of(run), position.index);
            uint64_t live = *word;
            if (likely(bits_test_clear(&live, position.index))) {
                __atomic_store_n(word, live, __ATOMIC_RELAXED);
                if (unlikely(--run->count == 0)) {
                    pma_arena_notice(arena, slab_of(run));
                }
                return;
            }
        }
    }
    free_slow(block, call);
}

PMA_HOT void PMA_NAME(free)(void *block) {
    free_fast(block, "free");
}

// ---- slots, the slow half

static struct large_source source_of(struct arena *arena) {
    return (struct large_source){ &arena->cache, arena->stream, arena->shard };
}

// The kernel refused: what this thread, the threads that ended and the caches hold in reserve goes
// back first.
PMA_COLD static void relieve(struct arena *arena) {
    pma_arena_rest(arena);
    pma_arena_shrink_idle();
    pma_huge_cache_empty();
    pma_purge(true);
    pma_purge_close();
}

// What lay unused for a second goes back, while the thread makes calls.
PMA_SLOW static void tick(struct arena *arena, uint64_t now) {
    bool is_first = arena->tick_due == 0;
    arena->tick_due = now + PMA_DIRTY_AGE;
    pma_background_tick();
    if (!is_first) {
        pma_arena_tick(arena);
        pma_huge_cache_tick(now);
        pma_purge(false);
    }
}

// True for a thread that has not been here for a while: it makes few calls.
PMA_SLOW static bool tick_if_due(struct arena *arena) {
    uint64_t now = pma_os_time();
    bool is_quiet = arena->clock_wait == 0 && now - arena->clock_read >= PMA_CLOCK_QUIET;
    if (unlikely(now >= arena->tick_due)) {
        tick(arena, now);
    } else if (is_quiet) {
        // It may have freed much since the last tick, and not be here again for a second.
        pma_purge(false);
    }
    // A thread that allocates without pause need not look at the clock at each refill: that would
    // be an instruction a malloc.
    bool is_busy = now - arena->clock_read < PMA_CLOCK_STEP;
    arena->clock_wait = is_busy ? (uint32_t)size_min(arena->clock_wait * 2 + 1, PMA_CLOCK_WAIT) : 0;
    arena->clock_skip = arena->clock_wait;
    arena->clock_read = now;
    return is_quiet;
}

static void *slot_take(struct arena *arena, struct bin *bin) {
    struct stream *stream = arena->stream;
    bool is_quiet = tick_if_due(arena);
    if (stream->left == 0) {
        pma_stream_refill(stream);
        pma_arena_drain(arena);
    }
    if (bin->window == 0) {
        if (unlikely(!pma_arena_refill(arena, bin))) {
            relieve(arena);
            if (!pma_arena_refill(arena, bin)) {
                return NULL;
            }
        }
        if (is_quiet) {
            pma_window_narrow(bin, stream_rotation(stream));
        }
    }
    return bin_take(bin, stream_rotation(stream));
}

// The bin of a size up to PMA_SLOT_MAX, ready to be taken from; its slots are known to be zero
// where fresh says so.
PMA_SLOW static void *small_slow(size_t size, bool *zero) {
    init_ensure();
    struct arena *arena = pma_arena_enter();
    if (arena == NULL) {
        return NULL;
    }
    struct bin *bin = arena_bin_for(arena, size);
    void *block = slot_take(arena, bin);
    if (block != NULL && zero != NULL) {
        uint64_t bit = ((uintptr_t)block - bin->base) / bin->unit;
        *zero = (bin->fresh >> bit & 1) != 0;
    }
    pma_arena_leave(arena);
    return block;
}

static void *large_take(size_t size, size_t alignment, bool *zero) {
    init_ensure();
    struct arena *arena = pma_arena_enter();
    if (arena == NULL) {
        return NULL;
    }
    if (unlikely(arena->clock_skip-- == 0)) {
        (void)tick_if_due(arena);
    }
    struct run *run = pma_large_take(source_of(arena), size, alignment);
    if (unlikely(run == NULL)) {
        relieve(arena);
        run = pma_large_take(source_of(arena), size, alignment);
    }
    pma_arena_leave(arena);
    if (run == NULL) {
        return NULL;
    }
    if (zero != NULL) {
        *zero = run->zero != 0;
    }
    return (void *)run->base;
}

// Any size; errno is not touched.
static void *take_quiet(size_t size, bool *zero) {
    if (size <= PMA_SLOT_MAX) {
        return small_slow(size, zero);
    }
    return size > PMA_REQUEST_MAX ? NULL : large_take(size, 16, zero);
}

PMA_COLD static void *no_memory(void) {
    errno = ENOMEM;
    return NULL;
}

PMA_SLOW static void *malloc_rare(size_t size) {
    void *block = take_quiet(size, NULL);
    return likely(block != NULL) ? block : no_memory();
}

PMA_SLOW static void *malloc_refill_far(size_t size, struct arena *arena, struct bin *bin) {
    arena->busy = 1;
    bool is_filled = pma_arena_refill_elsewhere(arena, bin);
    arena->busy = 0;
    // A refill that takes a run may have drawn, so this looks whether there is a draw.
    return likely(is_filled) ? bin_take(bin, stream_rotation(arena->stream)) : malloc_rare(size);
}

// The window is empty, or there is no draw. A thread without an arena comes here too: its bin has
// no slab. Now and then the clock must be looked at.
PMA_SLOW static void *malloc_refill(size_t size, struct arena *arena, struct bin *bin) {
    struct slab *slab = bin->current;
    if (unlikely(slab == NULL) || unlikely(arena->stream->left == 0) ||
        unlikely(arena->clock_skip-- == 0)) {
        return malloc_rare(size);
    }
    arena->notices = 0;
    arena->busy = 1;
    bool is_filled = bin_refill(bin, slab);
    arena->busy = 0;
    if (likely(is_filled)) {
        return bin_take(bin, arena->stream->draws[--arena->stream->left]);
    }
    return malloc_refill_far(size, arena, bin);
}

PMA_SLOW static void *malloc_medium(size_t size) {
    struct arena *arena = pma_self;
    if (unlikely(size > PMA_SLOT_MAX) || unlikely(arena == &pma_nobody)) {
        return malloc_rare(size);
    }
    struct bin *bin = arena_bin(arena, arena->medium[(size + 63) / 64]);
    void *slot;
    return likely(slot_take_fast(arena, bin, &slot)) ? slot : malloc_refill(size, arena, bin);
}

// ---- free, the slow half

static void slot_free(const char *call, struct block block, void *pointer) {
    struct slab *slab = slab_of(block.run);
    struct arena *owner = block.run->owner;
    if (owner == pma_self) {
        uint64_t *word = &slab->live[block.index / 64];
        __atomic_store_n(word, *word & ~((uint64_t)1 << block.index % 64), __ATOMIC_RELAXED);
        if (--block.run->count == 0) {
            pma_arena_notice(owner, slab);
        }
        return;
    }
    enum remote_outcome outcome = pma_remote_free(slab, block.index, &owner->inbox);
    if (unlikely(outcome == REMOTE_NOT_LIVE)) {
        pma_judge_refuse(call, pointer);
    }
    if (outcome == REMOTE_PUSHED) {
        pma_arena_visit(owner);
    }
}

// A thread without an arena needs none to free: the run goes to its shard at once.
static void large_free(const char *call, struct run *run, void *pointer) {
    struct arena *arena = pma_self;
    struct large_source source = { NULL, NULL, 0 };
    if (arena != &pma_nobody) {
        arena->busy = 1;
        source = source_of(arena);
    }
    bool given = pma_large_give(source, run);
    if (arena != &pma_nobody) {
        arena->busy = 0;
    }
    if (!given) {
        pma_judge_refuse(call, pointer);
    }
}

// The pointer first: it is in its register already when the hot half ends here.
PMA_SLOW static void free_slow(void *pointer, const char *call) {
    if (pointer == NULL) {
        return;
    }
    struct block block = pma_judge_block(call, pointer);
    if (run_kind(block.run) == RUN_SLAB) {
        slot_free(call, block, pointer);
    } else {
        large_free(call, block.run, pointer);
    }
}

PMA_HOT void pma_alloc_free(const char *call, void *block) {
    free_fast(block, call);
}

size_t pma_alloc_usable(const char *call, const void *block) {
    return block == NULL ? 0 : pma_judge_block(call, block).usable;
}

// ---- more ways to ask

// Memory that the kernel zeroed is not cleared again: runs, and slots of a page and more.
PMA_SLOW static void *zeroed_slow(size_t size) {
    bool zero = false;
    void *block = size <= PMA_FINE_MAX ? PMA_NAME(malloc)(size) : take_quiet(size, &zero);
    if (unlikely(block == NULL)) {
        return no_memory();
    }
    return zero ? block : memset(block, 0, size);
}

// A few stores here are less than a call to memset. They overlap, so that each range of sizes has a
// fixed number of them; a slot has 16 bytes at least.
#define SHORT_MAX 128

PMA_INLINE void *zero_short(char *block, size_t size) {
    typedef uint64_t piece __attribute__((vector_size(16), aligned(1), may_alias));
    char *end = block + size;
    *(piece *)block = (piece){ 0, 0 };
    if (size > 16) {
        *(piece *)(end - 16) = (piece){ 0, 0 };
        if (size > 32) {
            *(piece *)(block + 16) = (piece){ 0, 0 };
            *(piece *)(end - 32) = (piece){ 0, 0 };
            if (unlikely(size > 64)) {
                *(piece *)(block + 32) = (piece){ 0, 0 };
                *(piece *)(block + 48) = (piece){ 0, 0 };
                *(piece *)(end - 64) = (piece){ 0, 0 };
                *(piece *)(end - 48) = (piece){ 0, 0 };
            }
        }
    }
    return block;
}

PMA_HOT void *pma_alloc_zeroed(size_t size) {
    struct arena *arena = pma_self;
    void *slot;
    if (likely(size <= PMA_FINE_MAX) &&
        likely(slot_take_fast(arena, arena->small[(size + 15) / 16], &slot))) {
        return size <= SHORT_MAX ? zero_short(slot, size) : memset(slot, 0, size);
    }
    return zeroed_slow(size);
}

// Slots start at multiples of their size from a page's start: with a size that is a multiple of the
// alignment, class steps being powers of two, they are aligned as far as a page goes.
void *pma_alloc_aligned_quiet(size_t alignment, size_t size) {
    if (size > PMA_REQUEST_MAX || alignment > PTRDIFF_MAX) {
        return NULL;
    }
    if (alignment <= PMA_SLOT_MIN) {
        return take_quiet(size, NULL);
    }
    init_ensure();
    size_t rounded = align_up(size_max(size, 1), alignment);
    if (alignment <= pma_page_size && rounded <= PMA_SLOT_MAX) {
        return small_slow(rounded, NULL);
    }
    return large_take(size, alignment, NULL);
}

void *pma_alloc_aligned(size_t alignment, size_t size) {
    void *block = pma_alloc_aligned_quiet(alignment, size);
    return likely(block != NULL) ? block : no_memory();
}

// ---- realloc

// A block may keep its place while it is not more than twice as large as what is asked for.
static bool fits_in_place(struct block block, size_t size) {
    if (run_kind(block.run) == RUN_SLAB) {
        return size <= block.usable && size > block.usable / 2;
    }
    return size > PMA_SLOT_MAX && pma_large_resize(block.run, size);
}

// Who grows a block by a little is likely to do so again. A slot that has to move for less than a
// quarter gets an eighth more than it had: to 64 KiB in steps of 16 bytes a step takes 165
// instructions. A large block is looked for with room behind it, and
// the room given back at once, so that the next steps find free pages there.
static void *room_take(struct block block, size_t size) {
    if (size <= PMA_SLOT_MAX) {
        size_t little = block.usable + block.usable / 8;
        if (size > block.usable && size < block.usable + block.usable / 4) {
            size = size_max(size, size_min(little, PMA_SLOT_MAX));
        }
        return size <= PMA_FINE_MAX ? PMA_NAME(malloc)(size) : malloc_medium(size);
    }
    if (size > block.usable && block.usable > PMA_SLOT_MAX && !is_huge(size + size / 4)) {
        void *moved = take_quiet(size + size / 4, NULL);
        if (moved != NULL) {
            pma_large_resize(pagemap_find((uintptr_t)moved), size);
            return moved;
        }
    }
    return take_quiet(size, NULL);
}

// A slot of the calling thread that is in use and long enough, and not by more than twice.
static bool slot_fits(const void *pointer, size_t size) {
    uintptr_t address = (uintptr_t)pointer;
    struct run *run = pagemap_find(address);
    if (run == NULL || run->owner != pma_self || size > run->size || size <= run->size / 2) {
        return false;
    }
    struct position position = slab_position(run, address);
    return position.exact &&
           (slab_of(run)->live[position.index / 64] >> position.index % 64 & 1) != 0 &&
           run->bin != offsetof(struct arena, bins[0]);
}

PMA_SLOW void *pma_alloc_resized(const char *call, void *pointer, size_t size) {
    if (likely(slot_fits(pointer, size))) {
        return pointer;
    }
    struct block block = pma_judge_block(call, pointer);
    if (size > PMA_REQUEST_MAX) {
        return no_memory();
    }
    if (fits_in_place(block, size)) {
        return run_kind(block.run) == RUN_SLAB ? pointer : (void *)block.run->base;
    }
    int saved = errno;
    void *moved = room_take(block, size);
    if (unlikely(moved == NULL)) {
        // Shrinking never fails: the block stays as large as it is.
        errno = size <= block.usable ? saved : ENOMEM;
        return size <= block.usable ? pointer : NULL;
    }
    memcpy(moved, pointer, size_min(block.usable, size));
    free_slow(pointer, call);
    return moved;
}

// ---- giving back

static size_t held_bytes(void) {
    return __atomic_load_n(&pma_pageheap.live, __ATOMIC_RELAXED) +
           __atomic_load_n(&pma_pageheap.dirty, __ATOMIC_RELAXED) +
           __atomic_load_n(&pma_pageheap.cached, __ATOMIC_RELAXED);
}

bool pma_alloc_trim(void) {
    init_ensure();
    size_t before = held_bytes();
    size_t given = 0;
    struct arena *arena = pma_self;
    if (arena != &pma_nobody) {
        arena->busy = 1;
        given += pma_arena_shrink(arena);
        arena->busy = 0;
    }
    given += pma_arena_shrink_idle();
    given += pma_huge_cache_empty() + pma_purge(true);
    return given > 0 || before > held_bytes();
}

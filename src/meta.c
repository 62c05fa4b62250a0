// meta.c - memory for descriptors: two kinds of stretches, handed out from the front.
#include <config.h>

#include "meta.h"

#include "lock.h"
#include "os.h"
#include "region.h"
#include "tune.h"

// used <= committed <= reserved.
struct stretch {
    uintptr_t used;      // lock
    uintptr_t committed; // lock and growth to write, either to read
    uintptr_t reserved;  // growth
    size_t sum;          // growth; bytes reserved, all stretches of this kind together
};

// Two locks, so that threads can go on with what is committed while one has the kernel commit more.
struct meta {
    struct lock growth; // held while a stretch grows
    struct lock lock;   // held while memory is handed out
    struct stretch stretches[META_KINDS];
    size_t total; // growth to write, atomic to read; committed bytes
    bool unwiped; // growth to write, atomic to read; the kernel refused to wipe
};

static struct meta meta = { .growth = LOCK_FREE(LOCK_META_GROWTH), .lock = LOCK_FREE(LOCK_META) };

struct lock *pma_meta_growth_lock(void) {
    return &meta.growth;
}

struct lock *pma_meta_lock(void) {
    return &meta.lock;
}

size_t pma_meta_committed(void) {
    return __atomic_load_n(&meta.total, __ATOMIC_RELAXED);
}

bool pma_meta_is_wiped(void) {
    return !__atomic_load_n(&meta.unwiped, __ATOMIC_RELAXED);
}

// ---- growing, under the growth lock

// A new stretch, its first and last page never accessible. What was left of the old one is lost:
// less than a step.
static bool stretch_open(struct stretch *stretch, enum meta_kind kind, size_t need) {
    size_t guards = 2 * pma_page_size;
    size_t least = align_up(need, pma_page_size);
    size_t wish = pma_region_is_shared() ? PMA_META_RESERVE_SHARED : PMA_META_RESERVE;
    wish = size_max(wish, stretch->sum / PMA_META_RESERVE_FRACTION);
    for (size_t size = align_up(size_max(least, wish), pma_page_size);;
         size = size_max(least, align_up(size / 2, pma_page_size))) {
        char *start = pma_region_reserve_somewhere(size + guards);
        if (start != NULL) {
            uintptr_t first = (uintptr_t)start + pma_page_size;
            if (kind == META_WIPED && !pma_os_wipe_on_fork((void *)first, size)) {
                __atomic_store_n(&meta.unwiped, true, __ATOMIC_RELAXED);
            }
            lock_lock(&meta.lock);
            stretch->used = stretch->committed = first;
            lock_unlock(&meta.lock);
            stretch->reserved = first + size;
            stretch->sum += size;
            return true;
        }
        if (size == least) {
            return false;
        }
    }
}

static size_t step_size(void) {
    size_t step = pma_region_is_shared() ? PMA_META_COMMIT_SHARED : PMA_META_COMMIT;
    return size_max(step, pma_meta_committed() / PMA_META_COMMIT_FRACTION);
}

static bool stretch_commit(struct stretch *stretch, size_t need) {
    size_t least = align_up(need, pma_page_size);
    for (size_t more = size_min(align_up(size_max(least, step_size()), pma_page_size),
                                stretch->reserved - stretch->committed);
         ; more = size_max(least, align_up(more / 2, pma_page_size))) {
        if (pma_os_commit((void *)stretch->committed, more)) {
            lock_lock(&meta.lock);
            stretch->committed += more;
            lock_unlock(&meta.lock);
            __atomic_store_n(&meta.total, meta.total + more, __ATOMIC_RELAXED);
            return true;
        }
        if (more == least) {
            return false;
        }
    }
}

// ---- handing out

struct piece {
    void *start;    // NULL: not taken
    size_t missing; // then: bytes, behind what is committed
    size_t left;    // else: committed bytes behind it
};

static struct piece stretch_take(struct stretch *stretch, size_t size, size_t alignment) {
    struct piece piece = { NULL, 0, 0 };
    lock_lock(&meta.lock);
    uintptr_t start = align_up(stretch->used, alignment);
    uintptr_t end = start + size;
    if (end <= stretch->committed) {
        stretch->used = end;
        piece.start = (void *)start;
        piece.left = stretch->committed - end;
    } else {
        piece.missing = end - stretch->committed;
    }
    lock_unlock(&meta.lock);
    return piece;
}

// Under the growth lock; so the end of what is committed stays where it is.
static bool stretch_grow(struct stretch *stretch, enum meta_kind kind, size_t size,
                         size_t missing) {
    if (missing > stretch->reserved - stretch->committed) {
        return stretch_open(stretch, kind, size) && stretch_commit(stretch, size);
    }
    return stretch_commit(stretch, missing);
}

// Whoever comes by when little is left has the kernel commit more, unless somebody does so already.
static void commit_ahead(struct stretch *stretch) {
    if (lock_try(&meta.growth)) {
        lock_lock(&meta.lock);
        bool is_low = stretch->committed - stretch->used < step_size() / 2;
        lock_unlock(&meta.lock);
        if (is_low && stretch->reserved != stretch->committed) {
            stretch_commit(stretch, pma_page_size);
        }
        lock_unlock(&meta.growth);
    }
}

void *pma_meta_take(enum meta_kind kind, size_t size, size_t alignment) {
    struct stretch *stretch = &meta.stretches[kind];
    struct piece piece = stretch_take(stretch, size, alignment);
    if (likely(piece.start != NULL)) {
        if (pma_region_is_shared() && piece.left < step_size() / 2) {
            commit_ahead(stretch);
        }
        return piece.start;
    }
    lock_lock(&meta.growth);
    do {
        piece = stretch_take(stretch, size, alignment);
    } while (piece.start == NULL && stretch_grow(stretch, kind, size, piece.missing));
    lock_unlock(&meta.growth);
    return piece.start;
}

// meta.c - memory for descriptors: two kinds of stretches, handed out from the front.
#include <config.h>

#include "meta.h"

#include "lock.h"
#include "os.h"
#include "region.h"
#include "tune.h"

// used <= committed <= reserved.
struct stretch {
    uintptr_t used;
    uintptr_t committed;
    uintptr_t reserved;
    size_t sum; // bytes reserved, all stretches of this kind together
};

struct meta {
    struct lock lock;
    struct stretch stretches[META_KINDS]; // lock
    size_t total;                         // lock to write, atomic to read; committed bytes
    bool unwiped; // lock to write, atomic to read; the kernel refused to wipe
};

static struct meta meta = { .lock = LOCK_FREE(LOCK_META) };

struct lock *pma_meta_lock(void) {
    return &meta.lock;
}

size_t pma_meta_committed(void) {
    return __atomic_load_n(&meta.total, __ATOMIC_RELAXED);
}

bool pma_meta_is_wiped(void) {
    return !__atomic_load_n(&meta.unwiped, __ATOMIC_RELAXED);
}

// A new stretch, its first and last page never accessible. What was left of the old one is lost:
// less than a step.
static bool stretch_open(struct stretch *stretch, enum meta_kind kind, size_t need) {
    size_t guards = 2 * pma_page_size;
    size_t least = align_up(need, pma_page_size);
    for (size_t size = align_up(
             size_max(least, size_max(PMA_META_RESERVE, stretch->sum / PMA_META_RESERVE_FRACTION)),
             pma_page_size);
         ; size = size_max(least, align_up(size / 2, pma_page_size))) {
        char *start = pma_region_reserve_somewhere(size + guards);
        if (start != NULL) {
            stretch->used = stretch->committed = (uintptr_t)start + pma_page_size;
            stretch->reserved = stretch->used + size;
            stretch->sum += size;
            if (kind == META_WIPED && !pma_os_wipe_on_fork((void *)stretch->used, size)) {
                __atomic_store_n(&meta.unwiped, true, __ATOMIC_RELAXED);
            }
            return true;
        }
        if (size == least) {
            return false;
        }
    }
}

static bool stretch_commit(struct stretch *stretch, size_t need) {
    size_t least = align_up(need, pma_page_size);
    size_t wish = size_max(PMA_META_COMMIT, meta.total / PMA_META_COMMIT_FRACTION);
    for (size_t more = size_min(align_up(size_max(least, wish), pma_page_size),
                                stretch->reserved - stretch->committed);
         ; more = size_max(least, align_up(more / 2, pma_page_size))) {
        if (pma_os_commit((void *)stretch->committed, more)) {
            stretch->committed += more;
            __atomic_store_n(&meta.total, meta.total + more, __ATOMIC_RELAXED);
            return true;
        }
        if (more == least) {
            return false;
        }
    }
}

static void *stretch_take(struct stretch *stretch, enum meta_kind kind, size_t size,
                          size_t alignment) {
    uintptr_t start = align_up(stretch->used, alignment);
    if (start + size > stretch->reserved) {
        if (!stretch_open(stretch, kind, size)) {
            return NULL;
        }
        start = stretch->used;
    }
    if (start + size > stretch->committed &&
        !stretch_commit(stretch, start + size - stretch->committed)) {
        return NULL;
    }
    stretch->used = start + size;
    return (void *)start;
}

void *pma_meta_take(enum meta_kind kind, size_t size, size_t alignment) {
    lock_lock(&meta.lock);
    void *taken = stretch_take(&meta.stretches[kind], kind, size, alignment);
    lock_unlock(&meta.lock);
    return taken;
}

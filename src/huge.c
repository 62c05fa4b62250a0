// huge.c - blocks with a mapping of their own.
#include <config.h>

#include "huge.h"

#include "lock.h"
#include "meta.h"
#include "os.h"
#include "pageheap.h"
#include "pagemap.h"
#include "purge.h"
#include "tune.h"

struct huge {
    struct lock lock;
    struct run *unused;                 // lock; descriptors in reserve
    struct run *cached[PMA_HUGE_CACHE]; // lock; mappings that were freed, the oldest first
    unsigned count;                     // lock; so many of them
    size_t cached_bytes;                // lock
    uint64_t used_at;                   // lock; when one was put or taken last
    struct run *stuck;                  // lock; mappings that the kernel would not unmap yet
};

static struct huge huge = { .lock = LOCK_FREE(LOCK_HUGE) };

// Entered where a huge block began that is unmapped: whatever is freed there was freed before.
static struct run tombstone = { .kind = RUN_UNUSED };

struct lock *pma_huge_lock(void) {
    return &huge.lock;
}

// The block starts at a random multiple of 64 bytes within what its last page leaves over: it costs
// nothing, and equal blocks do not all begin in the same cache set.
void pma_block_place(struct run *run, size_t run_bytes, size_t size, size_t alignment,
                     struct stream *stream) {
    size_t slack = size_min(run_bytes - size, pma_page_size - PMA_COLOUR);
    size_t places = alignment > PMA_COLOUR ? 1 : slack / PMA_COLOUR + 1;
    size_t place = places == 1 ? 0 : stream_scale(stream, places);
    run->base = run->start + place * PMA_COLOUR;
    run->size = run_bytes - place * PMA_COLOUR;
}

static size_t bytes_of(const struct run *run) {
    return run->mapped;
}

// ---- descriptors, under the lock

static struct run *descriptor_take(void) {
    if (huge.unused == NULL) {
        char *batch = pma_meta_take(META_KEPT, PMA_RUN_BATCH * PMA_APART, PMA_APART);
        for (size_t i = 0; batch != NULL && i < PMA_RUN_BATCH; i++) {
            struct run *run = (struct run *)(batch + i * PMA_APART);
            run->next = huge.unused;
            huge.unused = run;
        }
    }
    struct run *run = huge.unused;
    if (run != NULL) {
        huge.unused = run->next;
    }
    return run;
}

static void descriptor_give(struct run *run) {
    lock_lock(&huge.lock);
    run_set_kind(run, RUN_UNUSED);
    run->next = huge.unused;
    huge.unused = run;
    lock_unlock(&huge.lock);
}

// ---- mappings

// More than is needed is reserved where the kernel likes, and the ends around the aligned part go
// back. If they do not, it is only address space.
static void *map_aligned(size_t bytes, size_t alignment) {
    if (alignment <= pma_page_size) {
        return pma_os_map(NULL, bytes);
    }
    size_t slack = alignment - pma_page_size;
    char *reserved = bytes > SIZE_MAX - slack ? NULL : pma_os_reserve(NULL, bytes + slack);
    if (reserved == NULL) {
        return NULL;
    }
    char *start = (char *)align_up((uintptr_t)reserved, alignment);
    if (!pma_os_commit(start, bytes)) {
        pma_os_unmap(reserved, bytes + slack);
        return NULL;
    }
    if (start > reserved) {
        pma_os_unmap(reserved, (size_t)(start - reserved));
    }
    if (start < reserved + slack) {
        pma_os_unmap(start + bytes, (size_t)(reserved + slack - start));
    }
    return start;
}

static bool pagemap_prepare_ends(uintptr_t start, size_t bytes) {
    return pma_pagemap_prepare(start, pma_page_size, 0) &&
           pma_pagemap_prepare(start + bytes - PMA_GRANULE, PMA_GRANULE, 0);
}

static void ends_clear(const struct run *run, size_t bytes) {
    pma_pagemap_set_ends(run->start, bytes, NULL);
    pagemap_set(run->start, &tombstone);
}

// Cuts the end of a mapping off; if the kernel refuses, the block keeps it. The old end leaves the
// page map before the kernel has it: another thread may be given its address at once.
static size_t cut(struct run *run, size_t old_bytes, size_t bytes) {
    uintptr_t old_end = run->start + old_bytes - PMA_GRANULE;
    if (bytes == old_bytes || !pagemap_prepare_ends(run->start, bytes)) {
        return old_bytes;
    }
    pagemap_set(old_end, NULL);
    if (!pma_os_unmap((char *)run->start + bytes, old_bytes - bytes)) {
        pagemap_set(old_end, run);
        return old_bytes;
    }
    pma_pagemap_set_ends(run->start, bytes, run);
    run->mapped = bytes;
    return bytes;
}

// In place if the kernel can, else to another place. What may fail is done first: the page map's
// entries of the new place. The old ends leave the page map before the kernel moves the mapping,
// since another thread may be given their addresses at once. The kernel chooses the place: at
// random ones each move would touch another page of the page map.
static bool mapping_grow(struct run *run, size_t bytes) {
    void *old = (void *)run->start;
    size_t old_bytes = run->mapped;
    if (pagemap_prepare_ends(run->start, bytes) &&
        pma_os_remap(old, old_bytes, bytes, NULL) != NULL) {
        pagemap_set(run->start + old_bytes - PMA_GRANULE, NULL);
    } else {
        void *target = pma_os_reserve(NULL, bytes);
        if (target == NULL) {
            return false;
        }
        if (!pagemap_prepare_ends((uintptr_t)target, bytes)) {
            pma_os_unmap(target, bytes);
            return false;
        }
        ends_clear(run, old_bytes);
        // When this fails the kernel has unmapped the target already, and its place may be another
        // thread's by now: it must not be unmapped again.
        if (pma_os_remap(old, old_bytes, bytes, target) == NULL) {
            pma_pagemap_set_ends(run->start, old_bytes, run);
            return false;
        }
        run->start = (uintptr_t)target;
    }
    run->mapped = bytes;
    pma_pagemap_set_ends(run->start, bytes, run);
    return true;
}

static bool run_unmap(struct run *run) {
    size_t bytes = bytes_of(run);
    ends_clear(run, bytes);
    if (!pma_os_unmap((void *)run->start, bytes)) {
        pma_pagemap_set_ends(run->start, bytes, run);
        return false;
    }
    descriptor_give(run);
    return true;
}

// Under the map count limit the kernel may refuse to unmap: then the pages are dropped at least,
// and the mapping waits for the next time that the cache is emptied.
static size_t unmap_or_wait(struct run *run) {
    size_t bytes = bytes_of(run);
    if (run_unmap(run)) {
        return bytes;
    }
    pma_os_purge((void *)run->start, bytes);
    lock_lock(&huge.lock);
    run->next = huge.stuck;
    huge.stuck = run;
    lock_unlock(&huge.lock);
    return 0;
}

// How many of the bytes that are wanted a cached mapping brings; none if it would bring less than
// half, or half of it would have to go.
static size_t bytes_brought(const struct run *run, size_t bytes) {
    size_t has = bytes_of(run);
    return has < bytes / 2 || has / 2 > bytes ? 0 : size_min(has, bytes);
}

// Under the lock.
static struct run *cache_remove(unsigned place) {
    struct run *run = huge.cached[place];
    huge.count--;
    huge.cached_bytes -= bytes_of(run);
    for (unsigned i = place; i < huge.count; i++) {
        huge.cached[i] = huge.cached[i + 1];
    }
    pma_pageheap_count(0, -(ptrdiff_t)bytes_of(run));
    return run;
}

// Of those that bring most the shortest, and of equals the newest.
static struct run *cache_take(size_t bytes) {
    struct run *run = NULL;
    unsigned best = 0;
    size_t most = 0;
    lock_lock(&huge.lock);
    for (unsigned i = huge.count; i-- > 0;) {
        size_t brought = bytes_brought(huge.cached[i], bytes);
        if (brought > most || (brought == most && most > 0 &&
                               bytes_of(huge.cached[i]) < bytes_of(huge.cached[best]))) {
            best = i;
            most = brought;
        }
    }
    if (most > 0) {
        run = cache_remove(best);
        huge.used_at = pma_os_time();
    }
    lock_unlock(&huge.lock);
    return run;
}

// A cached mapping is made to fit: its pages are there already, which costs more to have again than
// the mapping itself.
static struct run *take_cached(size_t bytes) {
    struct run *run = cache_take(bytes);
    if (run == NULL) {
        return NULL;
    }
    size_t old_bytes = bytes_of(run);
    if (old_bytes < bytes && !mapping_grow(run, bytes)) {
        unmap_or_wait(run);
        return NULL;
    }
    if (old_bytes > bytes) {
        cut(run, old_bytes, bytes);
    }
    run->zero = false;
    pma_pageheap_count((ptrdiff_t)bytes_of(run), 0);
    return run;
}

static struct run *take_mapped(size_t bytes, size_t alignment) {
    lock_lock(&huge.lock);
    struct run *run = descriptor_take();
    lock_unlock(&huge.lock);
    if (run == NULL) {
        return NULL;
    }
    void *start = map_aligned(bytes, alignment);
    if (start == NULL && pma_huge_cache_empty() > 0) {
        start = map_aligned(bytes, alignment);
    }
    if (start == NULL || !pagemap_prepare_ends((uintptr_t)start, bytes)) {
        if (start != NULL) {
            pma_os_unmap(start, bytes);
        }
        descriptor_give(run);
        return NULL;
    }
    pma_os_invite_huge_pages(start, bytes);
    run->start = (uintptr_t)start;
    run->mapped = bytes;
    run->zero = true;
    run->owner = NULL;
    pma_pagemap_set_ends(run->start, bytes, run);
    pma_pageheap_count((ptrdiff_t)bytes, 0);
    return run;
}

struct run *pma_huge_take(size_t size, size_t alignment, struct stream *stream) {
    size_t bytes = align_up(size_max(size, 1), pma_page_size);
    struct run *run = alignment <= pma_page_size ? take_cached(bytes) : NULL;
    if (run == NULL) {
        run = take_mapped(bytes, alignment);
    }
    if (run != NULL) {
        // Within the slack of the last page that is needed, however long the mapping is.
        pma_block_place(run, bytes, size, alignment, stream);
        run_set_kind(run, RUN_HUGE);
    }
    return run;
}

// ---- giving

// What may lie in the cache, until nobody has used it for a second. A program that takes and frees
// huge blocks of all sizes (5 to 25 MiB, 20 at a time) spends most of its time in page faults: 2.1
// million of them with the limit for other dirty memory, 1.3 with this one.
static size_t cache_limit(void) {
    size_t live = __atomic_load_n(&pma_pageheap.live, __ATOMIC_RELAXED);
    return size_max(PMA_DIRTY_MIN, live / PMA_HUGE_FRACTION);
}

// Who is freed last is likely to fit what comes next: the oldest make room for it. The list of
// those goes to the caller.
static struct run *cache_put(struct run *run) {
    struct run *leaving = NULL;
    size_t bytes = bytes_of(run);
    size_t limit = cache_limit();
    lock_lock(&huge.lock);
    while (huge.count > 0 && (huge.count == PMA_HUGE_CACHE || huge.cached_bytes + bytes > limit)) {
        struct run *oldest = cache_remove(0);
        oldest->next = leaving;
        leaving = oldest;
    }
    if (bytes <= limit) {
        huge.cached[huge.count++] = run;
        huge.cached_bytes += bytes;
        huge.used_at = pma_os_time();
        pma_pageheap_count(0, (ptrdiff_t)bytes);
    } else {
        run->next = leaving;
        leaving = run;
    }
    lock_unlock(&huge.lock);
    return leaving;
}

static size_t list_unmap(struct run *list) {
    size_t sum = 0;
    while (list != NULL) {
        struct run *next = list->next;
        sum += unmap_or_wait(list);
        list = next;
    }
    return sum;
}

void pma_huge_give(struct run *run) {
    pma_pageheap_count(-(ptrdiff_t)bytes_of(run), 0);
    list_unmap(cache_put(run));
    pma_purge_wake();
}

size_t pma_huge_cache_empty(void) {
    lock_lock(&huge.lock);
    struct run *list = huge.stuck;
    huge.stuck = NULL;
    while (huge.count > 0) {
        struct run *run = cache_remove(huge.count - 1);
        run->next = list;
        list = run;
    }
    lock_unlock(&huge.lock);
    return list_unmap(list);
}

void pma_huge_cache_tick(uint64_t now) {
    lock_lock(&huge.lock);
    bool is_stale =
        (huge.cached_bytes > 0 || huge.stuck != NULL) && now - huge.used_at >= PMA_DIRTY_AGE;
    lock_unlock(&huge.lock);
    if (is_stale) {
        pma_huge_cache_empty();
    }
}

// ---- another size

// Who grows a block is likely to grow it again: an eighth more is mapped, out of the program's
// sight and untouched, so that small steps call the kernel seldom. If that is refused, what is
// needed will do.
static bool grow_with_room(struct run *run, size_t bytes) {
    size_t room = align_down(bytes / 8, pma_page_size);
    return mapping_grow(run, bytes + room) || (room > 0 && mapping_grow(run, bytes));
}

bool pma_huge_resize(struct run *run, size_t size) {
    size_t offset = run->base - run->start;
    size_t old_bytes = bytes_of(run);
    size_t bytes = align_up(offset + size, pma_page_size);
    if (bytes > old_bytes && !grow_with_room(run, bytes)) {
        return false;
    }
    // A block that shrinks gives all of the rest back, the room too.
    if (bytes < align_up(offset + run->size, pma_page_size)) {
        bytes = cut(run, old_bytes, bytes);
    }
    pma_pageheap_count((ptrdiff_t)(bytes_of(run) - old_bytes), 0);
    run->base = run->start + offset;
    run->size = bytes - offset;
    run->zero = false;
    return true;
}

// malloc.c - the exported C names of allocation: argument rules and errno, nothing else.
#include <config.h>

#include "malloc.h"

#include "checker.h"
#include "init.h"
#include "options.h"
#include "os.h"
#include "sized.h"
#include "tune.h"

#include <errno.h>
#include <string.h>

const char pma_link_malloc = 1;
__attribute__((used)) static const char *const links[] = { &pma_link_alloc, &pma_link_extra,
                                                           &pma_link_cxx };

static void *refuse(int error) {
    errno = error;
    return NULL;
}

void *PMA_NAME(calloc)(size_t count, size_t size) {
    size_t bytes;
    if (unlikely(__builtin_mul_overflow(count, size, &bytes))) {
        return refuse(ENOMEM);
    }
    return pma_alloc_zeroed(bytes);
}

// As in the GNU C library: realloc(p, 0) frees and returns NULL, errno untouched. Or, by the option
// realloc_zero, a block of no bytes takes its place.
PMA_INLINE void *resize(const char *call, void *block, size_t size) {
    if (block == NULL) {
        return PMA_NAME(malloc)(size);
    }
    if (unlikely(size == 0) && pma_options.realloc_zero == REALLOC_ZERO_FREE) {
        pma_alloc_free(call, block);
        return NULL;
    }
    return sized_fit(call, pma_alloc_resized(call, block, size), size);
}

void *PMA_NAME(realloc)(void *block, size_t size) {
    return resize("realloc", block, size);
}

void *PMA_NAME(reallocarray)(void *block, size_t count, size_t size) {
    size_t bytes;
    if (unlikely(__builtin_mul_overflow(count, size, &bytes))) {
        return refuse(ENOMEM);
    }
    if (checker_is_there()) {
        return checker_taken(PMA_NAME(realloc))(block, bytes);
    }
    return resize("reallocarray", block, bytes);
}

// POSIX: the out parameter changes only on success, the error is returned, errno is untouched.
static int place(void **block, size_t alignment, size_t size) {
    if (!is_power_of_two(alignment) || alignment < sizeof(void *)) {
        return EINVAL;
    }
    void *placed = pma_alloc_aligned_quiet(alignment, size);
    if (placed == NULL) {
        return ENOMEM;
    }
    *block = placed;
    return 0;
}

int PMA_NAME(posix_memalign)(void **block, size_t alignment, size_t size) {
    return place(block, alignment, size);
}

// C17 with DR 460: any power of two, and the size need not be a multiple of it.
void *PMA_NAME(aligned_alloc)(size_t alignment, size_t size) {
    return is_power_of_two(alignment) ? pma_alloc_aligned(alignment, size) : refuse(EINVAL);
}

// The GNU C library rounds the alignment up to a power of two.
static void *place_rounded(size_t alignment, size_t size) {
    if (alignment > (SIZE_MAX >> 1) + 1) {
        return refuse(EINVAL);
    }
    return pma_alloc_aligned((size_t)1 << log2_up(alignment), size);
}

void *PMA_NAME(memalign)(size_t alignment, size_t size) {
    return place_rounded(alignment, size);
}

// Whole pages are meant by both, so no bytes are one page.
static void *place_on_page(size_t size) {
    init_ensure();
    return pma_alloc_aligned(pma_page_size, size == 0 ? pma_page_size : size);
}

void *PMA_NAME(valloc)(size_t size) {
    return place_on_page(size);
}

static void *place_pages(size_t size) {
    init_ensure();
    if (size > PTRDIFF_MAX - pma_page_size) {
        return refuse(ENOMEM);
    }
    size_t pages = align_up(size, pma_page_size);
    if (checker_is_there()) {
        return checker_taken(PMA_NAME(memalign))(pma_page_size, size_max(pages, pma_page_size));
    }
    return place_on_page(pages);
}

void *PMA_NAME(pvalloc)(size_t size) {
    return place_pages(size);
}

size_t PMA_NAME(malloc_usable_size)(void *block) {
    return pma_alloc_usable("malloc_usable_size", block);
}

// What frees by a name that a checker does not know.
static void give(const char *call, void *block) {
    if (checker_is_there()) {
        checker_taken(PMA_NAME(free))(block);
    } else {
        pma_alloc_free(call, block);
    }
}

static size_t usable(const char *call, void *block) {
    return checker_is_there() ? checker_taken(PMA_NAME(malloc_usable_size))(block)
                              : pma_alloc_usable(call, block);
}

void PMA_NAME(cfree)(void *block) {
    give("cfree", block);
}

// The block's own descriptor says how large it is, and real programs pass wrong sizes: they are
// looked at on request only.
void PMA_NAME(free_sized)(void *block, size_t size) {
    if (!checker_is_there()) {
        sized_check("free_sized", block, PMA_SLOT_MIN, size);
    }
    give("free_sized", block);
}

void PMA_NAME(free_aligned_sized)(void *block, size_t alignment, size_t size) {
    if (!checker_is_there()) {
        sized_check("free_aligned_sized", block, alignment, size);
    }
    give("free_aligned_sized", block);
}

// ---- OpenBSD's

// Memory that no compiler may leave uncleared because it is freed next.
static void clear(void *start, size_t size) {
    memset(start, 0, size);
    __asm__ volatile("" : : "r"(start) : "memory");
}

// A block of another count whose grown part is zero and whose dropped part was cleared. A count
// that overflows with the old size is the caller's mistake (EINVAL), with the new one there is no
// memory (ENOMEM): OpenBSD's rules.
void *PMA_NAME(recallocarray)(void *block, size_t old_count, size_t count, size_t size) {
    size_t old_bytes;
    size_t bytes;
    if (block == NULL) {
        return checker_taken(PMA_NAME(calloc))(count, size);
    }
    if (__builtin_mul_overflow(count, size, &bytes)) {
        return refuse(ENOMEM);
    }
    if (__builtin_mul_overflow(old_count, size, &old_bytes) ||
        old_bytes > usable("recallocarray", block)) {
        return refuse(EINVAL);
    }
    void *moved = checker_taken(PMA_NAME(calloc))(1, bytes);
    if (moved == NULL) {
        return NULL;
    }
    memcpy(moved, block, size_min(old_bytes, bytes));
    clear(block, old_bytes);
    give("recallocarray", block);
    return moved;
}

void PMA_NAME(freezero)(void *block, size_t size) {
    if (block != NULL) {
        clear(block, size_min(size, usable("freezero", block)));
        give("freezero", block);
    }
}

// ---- the C library's own names: the public ones by their addresses, so that they lead where those
// do

void *PMA_NAME(__libc_malloc)(size_t size) {
    return checker_taken(PMA_NAME(malloc))(size);
}

void PMA_NAME(__libc_free)(void *block) {
    checker_taken(PMA_NAME(free))(block);
}

void PMA_NAME(__libc_cfree)(void *block) {
    checker_taken(PMA_NAME(free))(block);
}

void *PMA_NAME(__libc_calloc)(size_t count, size_t size) {
    return checker_taken(PMA_NAME(calloc))(count, size);
}

void *PMA_NAME(__libc_realloc)(void *block, size_t size) {
    return checker_taken(PMA_NAME(realloc))(block, size);
}

void *PMA_NAME(__libc_memalign)(size_t alignment, size_t size) {
    return checker_taken(PMA_NAME(memalign))(alignment, size);
}

void *PMA_NAME(__libc_valloc)(size_t size) {
    return checker_taken(PMA_NAME(valloc))(size);
}

void *PMA_NAME(__libc_pvalloc)(size_t size) {
    return checker_taken(PMA_NAME(pvalloc))(size);
}

int PMA_NAME(__posix_memalign)(void **block, size_t alignment, size_t size) {
    return checker_taken(PMA_NAME(posix_memalign))(block, alignment, size);
}

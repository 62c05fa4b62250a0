// malloc.h - the exported C names of allocation.
//
// Owns the argument rules and errno of each public call; the meaning is in alloc.h. Standard
// headers declare the names; here stand those that they do not declare everywhere, and the linking
// of the archive's members.
#ifndef PMA_MALLOC_H
#define PMA_MALLOC_H

#include "alloc.h"
#include "base.h"

PMA_EXPORT void *PMA_NAME(calloc)(size_t count, size_t size)
    __attribute__((malloc, alloc_size(1, 2)));
PMA_EXPORT void *PMA_NAME(realloc)(void *block, size_t size) __attribute__((alloc_size(2)));
PMA_EXPORT void *PMA_NAME(reallocarray)(void *block, size_t count, size_t size);
PMA_EXPORT int PMA_NAME(posix_memalign)(void **block, size_t alignment, size_t size);
PMA_EXPORT void *PMA_NAME(aligned_alloc)(size_t alignment, size_t size);
PMA_EXPORT void *PMA_NAME(memalign)(size_t alignment, size_t size);
PMA_EXPORT void *PMA_NAME(valloc)(size_t size);
PMA_EXPORT void *PMA_NAME(pvalloc)(size_t size);
PMA_EXPORT void PMA_NAME(cfree)(void *block);
PMA_EXPORT void PMA_NAME(free_sized)(void *block, size_t size);
PMA_EXPORT void PMA_NAME(free_aligned_sized)(void *block, size_t alignment, size_t size);
PMA_EXPORT size_t PMA_NAME(malloc_usable_size)(void *block);
PMA_EXPORT void *PMA_NAME(recallocarray)(void *block, size_t old_count, size_t count, size_t size);
PMA_EXPORT void PMA_NAME(freezero)(void *block, size_t size);

// Names by which parts of the C library reach its own malloc: they must lead to the same heap.
PMA_EXPORT void *PMA_NAME(__libc_malloc)(size_t size);
PMA_EXPORT void PMA_NAME(__libc_free)(void *block);
PMA_EXPORT void PMA_NAME(__libc_cfree)(void *block);
PMA_EXPORT void *PMA_NAME(__libc_calloc)(size_t count, size_t size);
PMA_EXPORT void *PMA_NAME(__libc_realloc)(void *block, size_t size);
PMA_EXPORT void *PMA_NAME(__libc_memalign)(size_t alignment, size_t size);
PMA_EXPORT void *PMA_NAME(__libc_valloc)(size_t size);
PMA_EXPORT void *PMA_NAME(__libc_pvalloc)(size_t size);
PMA_EXPORT int PMA_NAME(__posix_memalign)(void **block, size_t alignment, size_t size);

// See alloc.h.
extern const char pma_link_extra;
extern const char pma_link_cxx;

#endif

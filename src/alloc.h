// alloc.h - the two ways of the house, and what the exported names share.
//
// Owns the meaning of each call; which arena serves it, which floor below. Its functions take the
// name of the public call that the program made, for the message that ends a wrong program. It must
// not know how names are exported.
#ifndef PMA_ALLOC_H
#define PMA_ALLOC_H

#include "base.h"

// The entry points have their public names in the library, and names of ours where the program
// under test keeps the C library's malloc.
#if PMA_PUBLIC
#define PMA_NAME(name) name
#else
#define PMA_NAME(name) pma_##name
#endif

// Each archive member with public names refers to the others through such objects: a static link
// that needs one name takes all, and the C library's own malloc is never pulled in beside them.
extern const char pma_link_alloc;
extern const char pma_link_malloc;

PMA_EXPORT void *PMA_NAME(malloc)(size_t size) __attribute__((malloc, alloc_size(1)));
PMA_EXPORT void PMA_NAME(free)(void *block);

// NULL and errno ENOMEM on failure, like all that follow; size may be any.
void *pma_alloc_zeroed(size_t size);
void *pma_alloc_aligned(size_t alignment, size_t size);
void *pma_alloc_resized(const char *call, void *block, size_t size);
void pma_alloc_free(const char *call, void *block);

// The same as pma_alloc_aligned, but errno is never touched.
void *pma_alloc_aligned_quiet(size_t alignment, size_t size);

// The bytes that the program may use from the block's address.
size_t pma_alloc_usable(const char *call, const void *block);

// Gives back to the kernel what can be given. True if anything was.
bool pma_alloc_trim(void);

#endif

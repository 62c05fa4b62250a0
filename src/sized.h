// sized.h - whether the size that a program tells when it frees can be the one it asked for.
//
// Owns what the option sized=strict means. Sizes are not recorded: a size is wrong if no request of
// that size and alignment would have got a block like this one, the same class or the same number
// of pages.
#ifndef PMA_SIZED_H
#define PMA_SIZED_H

#include "alloc.h"
#include "base.h"
#include "options.h"

PMA_COLD void pma_sized_judge(const char *call, const void *block, size_t alignment, size_t size);
PMA_COLD void *pma_sized_fit(const char *call, void *block, size_t size);

// Ends the program if the size is wrong and the option says so.
PMA_INLINE void sized_check(const char *call, const void *block, size_t alignment, size_t size) {
    if (unlikely(pma_options.sized != SIZED_TOLERATE) && block != NULL) {
        pma_sized_judge(call, block, alignment, size);
    }
}

// What realloc made of a block may be larger than what malloc would give for the size. Where sizes
// are looked at it is made to fit.
PMA_INLINE void *sized_fit(const char *call, void *block, size_t size) {
    if (unlikely(pma_options.sized != SIZED_TOLERATE) && block != NULL) {
        return pma_sized_fit(call, block, size);
    }
    return block;
}

#endif

// extra.h - the GNU C library's extras: statistics, tuning, giving back.
//
// Owns their argument rules. <malloc.h> declares them; its structs are the C library's.
#ifndef PMA_EXTRA_H
#define PMA_EXTRA_H

#include "alloc.h"
#include "base.h"

#include <stdio.h>

// As in the C library's <malloc.h>, which only some of them have: mallinfo2 came with glibc 2.33.
struct pma_mallinfo {
    int arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
struct pma_mallinfo2 {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

PMA_EXPORT int PMA_NAME(malloc_trim)(size_t pad);
PMA_EXPORT void PMA_NAME(malloc_stats)(void);
PMA_EXPORT struct pma_mallinfo PMA_NAME(mallinfo)(void);
PMA_EXPORT struct pma_mallinfo2 PMA_NAME(mallinfo2)(void);
PMA_EXPORT int PMA_NAME(mallopt)(int parameter, int value);
PMA_EXPORT int PMA_NAME(malloc_info)(int options, FILE *stream);
PMA_EXPORT const char *PMA_NAME(pamalloc_version)(void);

#endif

// musl.h - what the tests call by the GNU C library's declarations, for a C library that declares
// none of it.
//
// Included before all else by test/ports/musl.sh. The functions are pamalloc's own.
#ifndef MUSL_H
#define MUSL_H

#include <stddef.h>
#include <stdio.h>

struct mallinfo {
    int arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
struct mallinfo2 {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

// The C library's numbers for mallopt.
#define M_MXFAST 1
#define M_TRIM_THRESHOLD (-1)
#define M_TOP_PAD (-2)
#define M_MMAP_THRESHOLD (-3)
#define M_MMAP_MAX (-4)
#define M_CHECK_ACTION (-5)
#define M_PERTURB (-6)
#define M_ARENA_TEST (-7)
#define M_ARENA_MAX (-8)

// Weak, since a program that meets pamalloc by preloading only links without it.
#define PRELOADED __attribute__((weak))
PRELOADED int malloc_trim(size_t pad);
PRELOADED void malloc_stats(void);
PRELOADED int malloc_info(int options, FILE *stream);
PRELOADED int mallopt(int parameter, int value);
PRELOADED struct mallinfo mallinfo(void);
PRELOADED struct mallinfo2 mallinfo2(void);
PRELOADED void *pvalloc(size_t size);

#endif

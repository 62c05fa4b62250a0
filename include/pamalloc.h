// pamalloc.h - what pamalloc offers beyond <stdlib.h> and <malloc.h>.
//
// A program that only allocates needs no header of ours. This one declares what the C library does
// not declare, or only in its newest versions. It includes nothing that depends on how pamalloc was
// configured.
#ifndef PAMALLOC_H
#define PAMALLOC_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) && defined(__has_attribute)
#define PAMALLOC_ATTRIBUTE(list) __attribute__(list)
#else
#define PAMALLOC_ATTRIBUTE(list)
#endif

// The version of the library that serves this process, for example "0.1.0".
const char *pamalloc_version(void);

// A program's own choice of options, as PAMALLOC_OPTIONS in the environment has it. A program that
// wants one defines
//     const char *pamalloc_options = "name=value,...";
// and links with pamalloc, or else with -rdynamic. pamalloc(7) lists the options.
extern const char *pamalloc_options PAMALLOC_ATTRIBUTE((visibility("default")));

// As in C23: free, by a caller that knows the size it asked for (and the alignment).
void free_sized(void *block, size_t size);
void free_aligned_sized(void *block, size_t alignment, size_t size);

// As in OpenBSD: reallocarray whose new elements are zero and whose dropped ones are cleared; free
// after clearing.
void *recallocarray(void *block, size_t old_count, size_t count, size_t size)
    PAMALLOC_ATTRIBUTE((alloc_size(3, 4), warn_unused_result));
void freezero(void *block, size_t size);

#undef PAMALLOC_ATTRIBUTE

#ifdef __cplusplus
}
#endif

#endif

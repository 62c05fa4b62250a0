// sanitizer.h - is this a sanitizer's program, in which our malloc has come before the sanitizer's?
//
// Owns nothing. A program that clang made has the sanitizer's malloc in itself, where it comes
// first: nobody asks ours. gcc's sanitizers are shared libraries, and a preloaded library comes
// before them. The address sanitizer then ends the program by itself and says why. The thread
// sanitizer allows memory at some addresses only, and the program would crash without a word at the
// first touch of another; the leak sanitizer would see no block. It must not know the heap.
#ifndef PMA_SANITIZER_H
#define PMA_SANITIZER_H

#include "base.h"
#include "fatal.h"
#include "os.h"

#include <stdlib.h>

// In a build with a sanitizer the heap has names of its own, and it is what is looked at.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZER_TESTS_US 1
#else
#define SANITIZER_TESTS_US 0
#endif

extern void *sanitizer_malloc(size_t size) __asm__("__interceptor_malloc") __attribute__((weak));
extern void asan_init(void) __asm__("__asan_init") __attribute__((weak));
extern void tsan_init(void) __asm__("__tsan_init") __attribute__((weak));

PMA_COLD static void sanitizer_tell(const char *text) {
    struct fatal_line line = { .length = 0 };
    pma_line_text(&line, text);
    pma_line_write(&line, 2);
}

// A sanitizer's malloc is the process's: ours was linked or preloaded to no end, and must not map
// anything either, since the sanitizer looks at the process's mappings when it starts.
PMA_INLINE bool sanitizer_is_heap(void) {
#if SANITIZER_TESTS_US
    return false;
#else
    return sanitizer_malloc != NULL && sanitizer_malloc == malloc;
#endif
}

// Before anything is mapped.
PMA_INLINE void sanitizer_give_way(void) {
    if (SANITIZER_TESTS_US || likely(sanitizer_malloc == NULL) || sanitizer_is_heap() ||
        asan_init != NULL) {
        return;
    }
    if (tsan_init == NULL) {
        sanitizer_tell(
            "pamalloc: comes before the leak sanitizer's library, which sees no block\n");
        return;
    }
    sanitizer_tell(
        "pamalloc: comes before the thread sanitizer's library, which cannot work then\n");
    pma_os_exit(1);
}

#endif

// names.c - every name by which a block is had or freed, mixed as a correct program may.
//
// Run by test/tools/valgrind.sh, alone and preloaded: the names that valgrind replaces and those
// that it does not know must serve from one heap.
#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Of pamalloc alone, or in the newest C library only.
#define OPTIONAL __attribute__((weak))
OPTIONAL void free_sized(void *block, size_t size);
OPTIONAL void free_aligned_sized(void *block, size_t alignment, size_t size);
OPTIONAL void *recallocarray(void *block, size_t old_count, size_t count, size_t size);
OPTIONAL void freezero(void *block, size_t size);
OPTIONAL void cfree(void *block);
OPTIONAL void *__libc_malloc(size_t size);
OPTIONAL void *__libc_calloc(size_t count, size_t size);
OPTIONAL void *__libc_realloc(void *block, size_t size);
OPTIONAL void *__libc_memalign(size_t alignment, size_t size);
OPTIONAL void *__libc_valloc(size_t size);
OPTIONAL void *__libc_pvalloc(size_t size);
OPTIONAL int __posix_memalign(void **block, size_t alignment, size_t size);
OPTIONAL void __libc_free(void *block);
OPTIONAL void __libc_cfree(void *block);

static void *filled(void *block, size_t size) {
    if (block == NULL) {
        abort();
    }
    return memset(block, 1, size);
}

static void standard(void) {
    void *placed = NULL;
    free(filled(realloc(filled(malloc(100), 100), 500), 500));
    free(filled(calloc(10, 10), 100));
    free(filled(aligned_alloc(256, 512), 512));
    free(filled(memalign(64, 100), 100));
    free(filled(valloc(100), 100));
    free(filled(pvalloc(100), malloc_usable_size(NULL) + 100));
    if (posix_memalign(&placed, 128, 1000) == 0) {
        free(filled(placed, 1000));
    }
    void *array = filled(reallocarray(NULL, 3, 5), 15);
    array = filled(reallocarray(array, 30, 50), 1500);
    array = filled(realloc(array, 5000), 5000);
    free(filled(reallocarray(array, 3, 50), malloc_usable_size(array) < 150 ? 0 : 150));
    free(strdup("text"));
}

static void ours(void) {
    free_sized(filled(malloc(100), 100), 100);
    free_aligned_sized(filled(aligned_alloc(64, 128), 128), 64, 128);
    void *array = filled(recallocarray(NULL, 0, 5, 5), 25);
    array = filled(recallocarray(array, 5, 50, 5), 250);
    freezero(recallocarray(array, 50, 5, 5), 25);
}

static void of_libc(void) {
    void *placed = NULL;
    free(filled(realloc(__libc_malloc(10), 100), 100));
    free(filled(__libc_realloc(malloc(10), 100), 100));
    free(filled(__libc_calloc(3, 4), 12));
    free(filled(__libc_memalign(64, 100), 100));
    free(filled(__libc_valloc(100), 100));
    free(filled(__libc_pvalloc(100), 100));
    if (__posix_memalign(&placed, 64, 10) == 0) {
        free(filled(placed, 10));
    }
    __libc_free(malloc(10));
    __libc_cfree(malloc(10));
    cfree(malloc(10));
}

int main(void) {
    standard();
    if (free_sized != NULL && recallocarray != NULL) {
        ours();
    }
    if (__posix_memalign != NULL && __libc_cfree != NULL) {
        of_libc();
    }
    return 0;
}

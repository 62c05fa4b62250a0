// wraps.so - a library that wraps malloc as tracers do: counts, and hands on to the next one, which
// it finds by dlsym at the first call.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#define SHOWN __attribute__((visibility("default")))

SHOWN void *malloc(size_t size);
SHOWN void free(void *block);
SHOWN void *calloc(size_t count, size_t size);
SHOWN void *realloc(void *block, size_t size);
SHOWN size_t wraps_calls(void);

static void *(*next_malloc)(size_t size);
static void (*next_free)(void *block);
static void *(*next_calloc)(size_t count, size_t size);
static void *(*next_realloc)(void *block, size_t size);
static size_t calls;

// A missing name makes dlsym itself allocate, in the middle of the first call.
static void find(void) {
    if (next_malloc == NULL) {
        next_malloc = (void *(*)(size_t))(uintptr_t)dlsym(RTLD_NEXT, "malloc");
        next_free = (void (*)(void *))(uintptr_t)dlsym(RTLD_NEXT, "free");
        next_calloc = (void *(*)(size_t, size_t))(uintptr_t)dlsym(RTLD_NEXT, "calloc");
        next_realloc = (void *(*)(void *, size_t))(uintptr_t)dlsym(RTLD_NEXT, "realloc");
        (void)dlsym(RTLD_NEXT, "there is no such symbol");
        (void)dlerror();
    }
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
}

size_t wraps_calls(void) {
    return __atomic_load_n(&calls, __ATOMIC_RELAXED);
}

void *malloc(size_t size) {
    find();
    return next_malloc(size);
}

void free(void *block) {
    find();
    next_free(block);
}

void *calloc(size_t count, size_t size) {
    find();
    return next_calloc(count, size);
}

void *realloc(void *block, size_t size) {
    find();
    return next_realloc(block, size);
}

// loader.c - dlopen, without the flag that would lead a module past this heap.
#include <config.h>

#include "loader.h"

#include <dlfcn.h>

// The archive has no dlopen: in a static program there is no other one behind it. libtool tells
// which of the two it compiles. Nor is there anything to do for a C library without the flag.
#if defined(PIC) && defined(RTLD_DEEPBIND)

typedef void *(*opener)(const char *file, int flags);

// Weak, as the library must not need it to start. dlsym may allocate: nobody comes here from malloc.
extern void *dlsym(void *handle, const char *name) __attribute__((weak));

// The archive, which test/checks/state looks at, does not have this.
static opener next; // atomic; const after the first call

static opener find_next(void) {
    opener found = __atomic_load_n(&next, __ATOMIC_RELAXED);
    if (found == NULL && dlsym != NULL) {
        found = (opener)(uintptr_t)dlsym(RTLD_NEXT, "dlopen");
        __atomic_store_n(&next, found, __ATOMIC_RELAXED);
    }
    return found;
}

// The call at the end is a jump, so that the loader sees the caller's address and takes its name
// space and its path of search, not this library's.
void *PMA_NAME(dlopen)(const char *file, int flags) {
    opener open = find_next();
    return open == NULL ? NULL : open(file, flags & ~RTLD_DEEPBIND);
}

#endif

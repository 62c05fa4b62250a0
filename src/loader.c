// loader.c - calls of the C library that come before its own: what would lead past this heap, or
// into its locks.
#include <config.h>

#include "loader.h"

#include "init.h"

#include <dlfcn.h>
#include <errno.h>

const char pma_link_loader = 1;

#ifdef PIC

#ifdef RTLD_DEEPBIND
enum { DEEP = RTLD_DEEPBIND };
#else
enum { DEEP = 0 };
#endif

typedef void *(*opener)(const char *file, int flags);
typedef void (*handler)(void);
typedef int (*registrar)(handler prepare, handler parent, handler child, void *library);

// Weak, as the library must not need it to start. dlsym may allocate: nobody comes here from
// malloc.
extern void *dlsym(void *handle, const char *name) __attribute__((weak));

// The archive, which test/checks/state looks at, does not have these.
static uintptr_t next_dlopen;   // atomic; const after the first call
static uintptr_t next_register; // atomic; const after the first call

static uintptr_t find_next(uintptr_t *next, const char *name) {
    uintptr_t found = __atomic_load_n(next, __ATOMIC_RELAXED);
    if (found == 0 && dlsym != NULL) {
        found = (uintptr_t)dlsym(RTLD_NEXT, name);
        __atomic_store_n(next, found, __ATOMIC_RELAXED);
    }
    return found;
}

// The call at the end is a jump, so that the loader sees the caller's address and takes its name
// space and its path of search, not this library's.
void *PMA_NAME(dlopen)(const char *file, int flags) {
    opener open = (opener)find_next(&next_dlopen, "dlopen");
    return open == NULL ? NULL : open(file, flags & ~DEEP);
}

int PMA_NAME(__register_atfork)(handler prepare, handler parent, handler child, void *library) {
    registrar add = (registrar)find_next(&next_register, "__register_atfork");
    pma_fork_register();
    return add == NULL ? ENOSYS : add(prepare, parent, child, library);
}

#else

// The archive has none of these: in a static program there are no others behind them. (libtool
// tells which of the two it compiles.) But the program it is a part of can come before the
// constructors of all libraries, as no shared library can.
static void program_start(int count, char **arguments, char **environment) {
    (void)count;
    (void)arguments;
    (void)environment;
    pma_fork_register();
}

__attribute__((section(".preinit_array"),
               used)) static void (*const starting)(int, char **, char **) = program_start;

#endif

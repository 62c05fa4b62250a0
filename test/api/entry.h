// entry.h - the malloc family found by name, and every way to get a block under one signature.
//
// Calls go through pointers found at run time: the compiler cannot fold them, and one plain binary
// tests whatever library is preloaded over it. Names that libc lacks need no declaration here.
#ifndef ENTRY_H
#define ENTRY_H

#include "../harness.h"

#include <malloc.h>

#define CALLS(X) \
    X(void *, malloc, (size_t)) \
    X(void *, calloc, (size_t, size_t)) \
    X(void *, realloc, (void *, size_t)) \
    X(void *, reallocarray, (void *, size_t, size_t)) \
    X(void, free, (void *)) \
    X(int, posix_memalign, (void **, size_t, size_t)) \
    X(void *, aligned_alloc, (size_t, size_t)) \
    X(void *, memalign, (size_t, size_t)) \
    X(void *, valloc, (size_t)) \
    X(void *, pvalloc, (size_t)) \
    X(size_t, malloc_usable_size, (void *)) \
    X(void, cfree, (void *)) \
    X(void, free_sized, (void *, size_t)) \
    X(void, free_aligned_sized, (void *, size_t, size_t)) \
    X(void *, recallocarray, (void *, size_t, size_t, size_t)) \
    X(void, freezero, (void *, size_t)) \
    X(void *, __libc_malloc, (size_t)) \
    X(void *, __libc_calloc, (size_t, size_t)) \
    X(void *, __libc_realloc, (void *, size_t)) \
    X(void, __libc_free, (void *)) \
    X(void *, __libc_memalign, (size_t, size_t)) \
    X(void *, __libc_valloc, (size_t)) \
    X(void *, __libc_pvalloc, (size_t)) \
    X(void, __libc_cfree, (void *)) \
    X(int, __posix_memalign, (void **, size_t, size_t))

struct calls {
#define X(result, name, arguments) result(*name) arguments;
    CALLS(X)
#undef X
};

static struct calls call;
static size_t page;

static inline void *find_call(const char *name) {
    void *address = dlsym(RTLD_DEFAULT, name);
    if (address == NULL) {
        say("no such call: %s\n", name);
        failures++;
    }
    return address;
}

// An API test's first line: the watchdog, the library is ours, the family is complete.
static inline void entry_begin(unsigned seconds) {
    api_begin(seconds);
#define X(result, name, arguments) call.name = (result(*) arguments)(uintptr_t)find_call(#name);
    CALLS(X)
#undef X
    page = (size_t)sysconf(_SC_PAGESIZE);
    const char *hook = getenv("PMA_TEST_PAGE");
    if (hook != NULL) {
        page = (size_t)atol(hook);
    }
    if (failures != 0 && getenv("PMA_TEST_FOREIGN") == NULL) {
        _exit(1);
    }
    failures = 0;
}

// ---- one signature: alignment is ignored by the entries that take none

enum rule {
    RULE_NONE,  // takes no alignment
    RULE_C,     // a power of two, or EINVAL
    RULE_ROUND, // anything: rounded up to a power of two, as glibc's memalign does
    RULE_POSIX, // a power of two and a multiple of a pointer's size, or EINVAL, out untouched
    RULE_PAGE,  // page aligned
    RULE_NEW,   // a power of two, or no block, as the C++ library's own operators
};

struct entry_point {
    const char *name;
    enum rule rule;
    bool zeroed;
    // Returns the block; *code is the result of posix_memalign and its kin, 0 for the others.
    void *(*get)(size_t alignment, size_t size, int *code);
};

// What an out parameter holds before the call, to see that a failed call leaves it alone.
#define UNTOUCHED ((void *)(uintptr_t)0x5e5e5e50)

#define ENTRY(name, expression) \
    static void *get_##name(size_t alignment, size_t size, int *code) { \
        (void)alignment; \
        *code = 0; \
        return expression; \
    }

ENTRY(malloc, call.malloc(size))
ENTRY(calloc, call.calloc(1, size))
ENTRY(calloc_turned, call.calloc(size, 1))
ENTRY(realloc, call.realloc(NULL, size))
ENTRY(reallocarray, call.reallocarray(NULL, 1, size))
ENTRY(recallocarray, call.recallocarray(NULL, 0, 1, size))
ENTRY(aligned_alloc, call.aligned_alloc(alignment, size))
ENTRY(memalign, call.memalign(alignment, size))
ENTRY(valloc, call.valloc(size))
ENTRY(pvalloc, call.pvalloc(size))
ENTRY(libc_malloc, call.__libc_malloc(size))
ENTRY(libc_calloc, call.__libc_calloc(1, size))
ENTRY(libc_realloc, call.__libc_realloc(NULL, size))
ENTRY(libc_memalign, call.__libc_memalign(alignment, size))
ENTRY(libc_valloc, call.__libc_valloc(size))
ENTRY(libc_pvalloc, call.__libc_pvalloc(size))

static void *get_posix_memalign(size_t alignment, size_t size, int *code) {
    void *block = UNTOUCHED;
    *code = call.posix_memalign(&block, alignment, size);
    return block;
}

static void *get_libc_posix_memalign(size_t alignment, size_t size, int *code) {
    void *block = UNTOUCHED;
    *code = call.__posix_memalign(&block, alignment, size);
    return block;
}

__attribute__((unused)) static const struct entry_point entries[] = {
    { "malloc", RULE_NONE, false, get_malloc },
    { "calloc(1, n)", RULE_NONE, true, get_calloc },
    { "calloc(n, 1)", RULE_NONE, true, get_calloc_turned },
    { "realloc(NULL, n)", RULE_NONE, false, get_realloc },
    { "reallocarray(NULL, 1, n)", RULE_NONE, false, get_reallocarray },
    { "recallocarray(NULL, 0, 1, n)", RULE_NONE, true, get_recallocarray },
    { "aligned_alloc", RULE_C, false, get_aligned_alloc },
    { "memalign", RULE_ROUND, false, get_memalign },
    { "posix_memalign", RULE_POSIX, false, get_posix_memalign },
    { "valloc", RULE_PAGE, false, get_valloc },
    { "pvalloc", RULE_PAGE, false, get_pvalloc },
    { "__libc_malloc", RULE_NONE, false, get_libc_malloc },
    { "__libc_calloc", RULE_NONE, true, get_libc_calloc },
    { "__libc_realloc", RULE_NONE, false, get_libc_realloc },
    { "__libc_memalign", RULE_ROUND, false, get_libc_memalign },
    { "__libc_valloc", RULE_PAGE, false, get_libc_valloc },
    { "__libc_pvalloc", RULE_PAGE, false, get_libc_pvalloc },
    { "__posix_memalign", RULE_POSIX, false, get_libc_posix_memalign },
};

#define ENTRIES (sizeof(entries) / sizeof(entries[0]))

// Entries that a foreign malloc lacks are left out by hand runs.
static inline bool entry_missing(const struct entry_point *entry) {
    return (entry->get == get_recallocarray && call.recallocarray == NULL);
}

static inline bool all_bytes(const void *block, int byte, size_t size) {
    const unsigned char *bytes = (const unsigned char *)block;
    return size == 0 ||
           (bytes[0] == (unsigned char)byte && memcmp(bytes, bytes + 1, size - 1) == 0);
}

#endif

// limits.h - kernels that refuse: limits of the process, and where they cannot be had.
//
// Checkers of memory and threads map terabytes for themselves, and valgrind and emulators keep
// limits from the kernel: there the kernel's refusals are made by pma_os_fail_at alone.
#ifndef LIMITS_H
#define LIMITS_H

#include "harness.h"

#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

static inline bool is_under_valgrind(void) {
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded != NULL && strstr(preloaded, "vgpreload") != NULL;
}

// Pages of a kind in /proc/self/statm: all address space is column 0, what is private and writable
// column 5.
static inline size_t statm_bytes(int column) {
    char text[128] = { 0 };
    size_t numbers[6] = { 0 };
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    REQUIRE(file >= 0 && read(file, text, sizeof(text) - 1) > 0);
    (void)close(file);
    REQUIRE(sscanf(text, "%zu %zu %zu %zu %zu %zu", &numbers[0], &numbers[1], &numbers[2],
                   &numbers[3], &numbers[4], &numbers[5]) == 6);
    return numbers[column] * (size_t)sysconf(_SC_PAGESIZE);
}

// From now on the process may have so many bytes more, of address space or of writable memory.
static inline void limit_more(int resource, size_t more) {
    struct rlimit limit;
    REQUIRE(getrlimit(resource, &limit) == 0);
    limit.rlim_cur = statm_bytes(resource == RLIMIT_AS ? 0 : 5) + more;
    REQUIRE(setrlimit(resource, &limit) == 0);
}

static inline void try_beyond(void *argument) {
    (void)argument;
    limit_more(RLIMIT_AS, (size_t)1 << 20);
    size_t size = (size_t)64 << 20;
    CHECK(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
          MAP_FAILED);
}

static inline bool limits_work(void) {
    if (IS_SANITIZED || is_under_valgrind()) {
        return false;
    }
    struct child_end end = run_child(try_beyond, NULL, 20);
    return WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0;
}

#endif

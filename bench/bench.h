// bench.h - what every bench needs: a clock, random numbers that are the same in every run, the
// process's memory as the kernel sees it, and a line of JSON.
//
// Nothing here calls malloc, so that what is measured is the bench's own use of it. There is no
// state between calls: every bench holds its own. The programs use public names only and run on any
// allocator that is preloaded.
#ifndef PMA_BENCH_H
#define PMA_BENCH_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

// ---- failing

// A bench that cannot go on has no result: it says why and ends with 1.
__attribute__((noreturn, format(printf, 1, 2))) static inline void bench_fail(const char *format,
                                                                              ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof(text) - 1, format, arguments);
    va_end(arguments);
    if (length < 0) {
        length = 0;
    }
    if ((size_t)length > sizeof(text) - 2) {
        length = (int)sizeof(text) - 2;
    }
    text[length] = '\n';
    if (write(STDERR_FILENO, text, (size_t)length + 1) < 0) {
        _exit(2);
    }
    _exit(1);
}

// A number of the command line, or the given one where the command line has ended.
static inline size_t bench_argument(int argc, char **argv, int index, size_t otherwise) {
    if (index >= argc) {
        return otherwise;
    }
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(argv[index], &end, 0);
    if (errno != 0 || end == argv[index] || *end != '\0') {
        bench_fail("%s: not a number: %s", argv[0], argv[index]);
    }
    return (size_t)value;
}

// ---- time

static inline uint64_t bench_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

// Nanoseconds: on the wall, and of all the process's threads on the processors. The second is what
// to compare on a machine that others use too; the first also holds what threads wait for.
struct watch {
    uint64_t wall;
    uint64_t cpu;
};

static inline struct watch watch_start(void) {
    struct watch watch = { bench_clock(CLOCK_MONOTONIC), bench_clock(CLOCK_PROCESS_CPUTIME_ID) };
    return watch;
}

static inline struct watch watch_stop(struct watch started) {
    struct watch now = watch_start();
    struct watch passed = { now.wall - started.wall, now.cpu - started.cpu };
    return passed;
}

// ---- random numbers

// Marsaglia's xorshift with a final multiplication (Vigna's xorshift64*). The seed is fixed, so
// every allocator gets the same sequence of calls.
struct rng {
    uint64_t state;
};

static inline struct rng rng_new(uint64_t stream) {
    struct rng rng = { UINT64_C(0x9e3779b97f4a7c15) * (stream + 1) };
    return rng;
}

static inline uint32_t rng_next(struct rng *rng) {
    uint64_t x = rng->state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    rng->state = x;
    return (uint32_t)((x * UINT64_C(0x2545f4914f6cdd1d)) >> 32);
}

// Evenly, but for 2^-32 or so, one of 0 ... n - 1.
static inline uint32_t rng_below(struct rng *rng, uint32_t n) {
    return (uint32_t)(((uint64_t)rng_next(rng) * n) >> 32);
}

// ---- the process's memory

struct memory {
    size_t size; // bytes: all address space (VmSize)
    size_t data; // bytes: private and writable (VmData)
    size_t rss;  // bytes: resident
    size_t peak; // bytes: the most that was resident (VmHWM)
    size_t maps; // mappings
};

// The whole file into the buffer, with a zero at its end; false when it cannot be read.
static inline int bench_read_file(const char *path, char *buffer, size_t size) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return 0;
    }
    size_t used = 0;
    while (used < size - 1) {
        ssize_t got = read(file, buffer + used, size - 1 - used);
        if (got <= 0) {
            break;
        }
        used += (size_t)got;
    }
    buffer[used] = '\0';
    close(file);
    return 1;
}

// The number of KiB behind a name at the start of a line, in bytes.
static inline size_t bench_field(const char *text, const char *name) {
    const char *found = strstr(text, name);
    return found == NULL ? 0 : (size_t)strtoull(found + strlen(name), NULL, 10) * 1024;
}

static inline size_t bench_count_maps(void) {
    char buffer[4096];
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        bench_fail("no /proc/self/maps");
    }
    size_t lines = 0;
    ssize_t got;
    while ((got = read(file, buffer, sizeof(buffer))) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            lines += buffer[i] == '\n';
        }
    }
    close(file);
    return lines;
}

// VmRSS is kept in counters per CPU and may be off by hundreds of pages (Linux 6.2 and later); the
// sum in smaps_rollup comes from the page tables. So the resident size is taken from there where
// the kernel has it.
static inline struct memory memory_read(void) {
    char text[4096];
    if (!bench_read_file("/proc/self/status", text, sizeof(text))) {
        bench_fail("no /proc/self/status");
    }
    struct memory memory = {
        .size = bench_field(text, "\nVmSize:"),
        .data = bench_field(text, "\nVmData:"),
        .rss = bench_field(text, "\nVmRSS:"),
        .peak = bench_field(text, "\nVmHWM:"),
        .maps = bench_count_maps(),
    };
    if (bench_read_file("/proc/self/smaps_rollup", text, sizeof(text))) {
        memory.rss = bench_field(text, "\nRss:");
    }
    return memory;
}

// The first reading makes the reader's own stack and code resident; the second does not see them
// come.
static inline struct memory memory_read_first(void) {
    memory_read();
    return memory_read();
}

// ---- memory that is not the allocator's

// Tables of the bench itself: mapped, and touched, before a first reading of the memory.
static inline void *bench_map(size_t size) {
    void *table = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED) {
        bench_fail("no memory for a table of %zu bytes", size);
    }
    memset(table, 1, size);
    memset(table, 0, size);
    return table;
}

// Writes into every page that the block lies on.
static inline void bench_touch(void *block, size_t size, size_t page) {
    volatile char *bytes = block;
    for (size_t i = 0; i < size; i += page) {
        bytes[i] = 1;
    }
    if (size > 0) {
        bytes[size - 1] = 1;
    }
}

// ---- results

// One result, one line of JSON on the standard output, written with one call.
struct line {
    size_t used;
    char text[1024];
};

__attribute__((format(printf, 2, 3))) static inline void line_add(struct line *line,
                                                                  const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length =
        vsnprintf(line->text + line->used, sizeof(line->text) - line->used, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof(line->text) - line->used) {
        bench_fail("a result of more than %zu bytes", sizeof(line->text));
    }
    line->used += (size_t)length;
}

static inline void line_open(struct line *line, const char *bench) {
    line->used = 0;
    line_add(line, "{\"bench\": \"%s\"", bench);
}

static inline void line_word(struct line *line, const char *name, const char *value) {
    line_add(line, ", \"%s\": \"%s\"", name, value);
}

static inline void line_count(struct line *line, const char *name, size_t value) {
    line_add(line, ", \"%s\": %zu", name, value);
}

static inline void line_number(struct line *line, const char *name, double value) {
    line_add(line, ", \"%s\": %.3f", name, value);
}

// The time of one operation.
static inline void line_time(struct line *line, const struct watch *passed, size_t operations) {
    line_number(line, "ns", (double)passed->wall / (double)operations);
    line_number(line, "cpu_ns", (double)passed->cpu / (double)operations);
}

static inline void line_close(struct line *line) {
    line_add(line, "}\n");
    size_t written = 0;
    while (written < line->used) {
        ssize_t got = write(STDOUT_FILENO, line->text + written, line->used - written);
        if (got < 0) {
            bench_fail("the standard output is closed");
        }
        written += (size_t)got;
    }
}

#endif

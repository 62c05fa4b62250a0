// figures.h - what the kernel says of this process: memory, mappings, threads, time.
//
// Reads procfs with plain system calls into the stack: a figure never changes what it measures.
#ifndef FIGURES_H
#define FIGURES_H

#include "harness.h"

// The number behind "name" in a file of lines "name  number ...", like /proc/self/status; or -1.
static inline long proc_number(const char *path, const char *name) {
    char text[8192];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    for (ssize_t n; file >= 0 && length < sizeof(text) - 1; length += (size_t)n) {
        n = read(file, text + length, sizeof(text) - 1 - length);
        if (n <= 0) {
            break;
        }
    }
    text[length] = 0;
    if (file >= 0) {
        (void)close(file);
    }
    for (const char *line = text; line != NULL && *line != 0;) {
        if (strncmp(line, name, strlen(name)) == 0) {
            return strtol(line + strlen(name), NULL, 10);
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return -1;
}

static inline long status_kib(const char *name) {
    return proc_number("/proc/self/status", name);
}

// Resident memory, exact: the figure in status lags behind by dozens of pages a processor.
static inline long rss_kib(void) {
    long rss = proc_number("/proc/self/smaps_rollup", "Rss:");
    return rss >= 0 ? rss : status_kib("VmRSS:");
}

static inline long count_mappings(void) {
    char text[4096];
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    long lines = 0;
    for (ssize_t n; file >= 0 && (n = read(file, text, sizeof(text))) > 0;) {
        for (ssize_t i = 0; i < n; i++) {
            lines += text[i] == '\n';
        }
    }
    if (file >= 0) {
        (void)close(file);
    }
    return lines;
}

static inline double seconds_now(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

#endif

// probe.h - what the tests of os.c ask about memory, without touching it themselves.
#ifndef PROBE_H
#define PROBE_H

#include "harness.h"

#include <sys/mman.h>

// The kernel copies a byte out of the page, or refuses.
static inline bool is_readable(const void *address) {
    static int ends[2] = { -1, -1 };
    char byte;
    if (ends[0] < 0) {
        REQUIRE(pipe(ends) == 0);
    }
    if (write(ends[1], address, 1) != 1) {
        REQUIRE(errno == EFAULT);
        return false;
    }
    REQUIRE(read(ends[0], &byte, 1) == 1);
    return true;
}

// The kernel copies a byte into the page, the one that is there if it can be read, or refuses.
static inline bool is_writable(void *address) {
    static int ends[2] = { -1, -1 };
    char byte = 0;
    if (ends[0] < 0) {
        REQUIRE(pipe(ends) == 0);
    }
    if (is_readable(address)) {
        memcpy(&byte, address, 1);
    }
    REQUIRE(write(ends[1], &byte, 1) == 1);
    if (read(ends[0], address, 1) == 1) {
        return true;
    }
    REQUIRE(errno == EFAULT);
    REQUIRE(read(ends[0], &byte, 1) == 1);
    return false;
}

static inline bool is_filled(const void *start, int byte, size_t size) {
    const unsigned char *bytes = start;
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != byte) {
            return false;
        }
    }
    return true;
}

// Some emulators answer every advice with success and do little of it.
static inline bool advice_is_heard(void *start, size_t size) {
    return madvise(start, size, -1) != 0;
}

static inline bool is_zero(const void *start, size_t size) {
    return is_filled(start, 0, size);
}

#endif

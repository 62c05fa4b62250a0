// shadow.h - what a model test knows of live memory, apart from the heap it judges.
//
// A bit for each 16 bytes of address space says that a live block has them: two blocks that share
// one are found at once, by whichever thread comes second. Contents are a function of a tag and of
// the place within the block, so that nothing needs to be remembered.
#ifndef SHADOW_H
#define SHADOW_H

#include "../harness.h"

#include <sys/mman.h>

enum {
    SHADOW_ADDRESS_BITS = 47,
    SHADOW_TOP_SHIFT = 30,  // a middle table covers 1 GiB
    SHADOW_LEAF_SHIFT = 20, // a leaf covers 1 MiB: 65,536 bits
    SHADOW_LEAF_WORDS = 1 << (SHADOW_LEAF_SHIFT - 4 - 6),
};

struct shadow_leaf {
    uint64_t words[SHADOW_LEAF_WORDS];
};

struct shadow_middle {
    struct shadow_leaf *leaves[1 << (SHADOW_TOP_SHIFT - SHADOW_LEAF_SHIFT)];
};

static struct shadow_middle *shadow_top[1 << (SHADOW_ADDRESS_BITS - SHADOW_TOP_SHIFT)];
static size_t shadow_bytes; // mapped for the tables, for tests that count mappings

// Of two threads that make the same table one loses, and gives it back.
static inline void *shadow_table(void **place, size_t size) {
    void *table = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (table != NULL) {
        return table;
    }
    void *fresh = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(fresh != MAP_FAILED);
    if (__atomic_compare_exchange_n(place, &table, fresh, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        (void)__atomic_fetch_add(&shadow_bytes, size, __ATOMIC_RELAXED);
        return fresh;
    }
    (void)munmap(fresh, size);
    return table;
}

static inline uint64_t *shadow_word(uintptr_t granule) {
    uintptr_t address = granule << 4;
    void **middle = (void **)&shadow_top[address >> SHADOW_TOP_SHIFT];
    struct shadow_middle *table = (struct shadow_middle *)shadow_table(middle, sizeof(*table));
    size_t index =
        (address >> SHADOW_LEAF_SHIFT) & ((1 << (SHADOW_TOP_SHIFT - SHADOW_LEAF_SHIFT)) - 1);
    void **place = (void **)&table->leaves[index];
    struct shadow_leaf *leaf = (struct shadow_leaf *)shadow_table(place, sizeof(*leaf));
    return &leaf->words[(granule >> 6) & (SHADOW_LEAF_WORDS - 1)];
}

// Sets or clears the bits of a block; false if one of them was so already. A block without a byte
// has an address of its own all the same.
static inline bool shadow_mark(const void *start, size_t size, bool live) {
    uintptr_t first = (uintptr_t)start >> 4;
    uintptr_t end = ((uintptr_t)start + (size > 0 ? size : 1) + 15) >> 4;
    bool good = true;
    for (uintptr_t at = first; at < end;) {
        uintptr_t next = (at | 63) + 1 < end ? (at | 63) + 1 : end;
        uint64_t bits = (next - at == 64 ? ~(uint64_t)0 : ((uint64_t)1 << (next - at)) - 1)
                        << (at & 63);
        uint64_t *word = shadow_word(at);
        uint64_t before = live ? __atomic_fetch_or(word, bits, __ATOMIC_RELAXED)
                               : __atomic_fetch_and(word, ~bits, __ATOMIC_RELAXED);
        good &= (live ? before & bits : ~before & bits) == 0;
        at = next;
    }
    return good;
}

// ---- contents

enum { SHADOW_WHOLE = 4096, SHADOW_EDGE = 256, SHADOW_STEP = 4096 };

static inline uint64_t shadow_value(uint64_t tag, size_t place) {
    uint64_t z = tag + place * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 29)) * 0xbf58476d1ce4e5b9u;
    return z ^ (z >> 32);
}

static inline void shadow_fill_piece(unsigned char *start, uint64_t tag, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        start[i] = (unsigned char)(shadow_value(tag, i / 8) >> (i % 8 * 8));
    }
}

static inline bool shadow_piece_holds(const unsigned char *start, uint64_t tag, size_t from,
                                      size_t to) {
    for (size_t i = from; i < to; i++) {
        if (start[i] != (unsigned char)(shadow_value(tag, i / 8) >> (i % 8 * 8))) {
            return false;
        }
    }
    return true;
}

// Of long blocks both edges and some bytes of every page: a page lost or exchanged is seen.
static inline void shadow_fill(unsigned char *start, uint64_t tag, size_t size) {
    if (size <= SHADOW_WHOLE) {
        shadow_fill_piece(start, tag, 0, size);
        return;
    }
    shadow_fill_piece(start, tag, 0, SHADOW_EDGE);
    for (size_t at = SHADOW_STEP; at + 16 <= size; at += SHADOW_STEP) {
        shadow_fill_piece(start, tag, at, at + 16);
    }
    shadow_fill_piece(start, tag, size - SHADOW_EDGE, size);
}

// The first size bytes of a block that was filled for filled bytes.
static inline bool shadow_holds(const unsigned char *start, uint64_t tag, size_t filled,
                                size_t size) {
    if (filled <= SHADOW_WHOLE) {
        return shadow_piece_holds(start, tag, 0, size);
    }
    size_t edge = size < SHADOW_EDGE ? size : SHADOW_EDGE;
    bool good = shadow_piece_holds(start, tag, 0, edge);
    for (size_t at = SHADOW_STEP; at + 16 <= size; at += SHADOW_STEP) {
        good &= shadow_piece_holds(start, tag, at, at + 16);
    }
    size_t tail = filled - SHADOW_EDGE;
    return good && (size <= tail || shadow_piece_holds(start, tag, tail, size));
}

#endif

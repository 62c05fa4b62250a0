// class.h - size <-> class -> the shape of a slab.
//
// Owns the list of slot sizes and how a run is cut; all of it is arithmetic, there is no state. It
// must not know descriptors. Class 0 is for requests of no bytes: slots of 16 of which nothing may
// be used.
#ifndef PMA_CLASS_H
#define PMA_CLASS_H

#include "base.h"
#include "tune.h"

// 16-byte steps to 256, then 16 per doubling to 32 KiB, and class 0. With 8 per doubling, 2 GiB of
// blocks of 384 to 12,288 bytes would occupy 1.057 of what was asked, with 16 it is 1.036 (shared
// design, section 3).
#define PMA_CLASSES (1 + 16 + 16 * 7)

// The class whose slots are the smallest that hold size bytes; size is at most PMA_SLOT_MAX.
PMA_INLINE unsigned class_of(size_t size) {
    if (size <= 256) {
        return (unsigned)((size + 15) / 16);
    }
    unsigned highest = bits_highest(size - 1);
    unsigned sixteenth = (unsigned)((size - 1) >> (highest - 4) & 15);
    return 17 + 16 * (highest - 8) + sixteenth;
}

// Its slots' size in bytes.
PMA_INLINE size_t class_size(unsigned class) {
    if (class <= 16) {
        return class == 0 ? 16 : (size_t) class * 16;
    }
    unsigned doubling = (class - 17) / 16;
    unsigned sixteenth = (class - 17) % 16 + 1;
    return (size_t)(16 + sixteenth) << (doubling + 4);
}

// How a run is cut. A word describes 64, 32 or 16 slots, by every, every second or every fourth of
// its bits: so a draw that names one of 16 bits four apart is even over the slots of a short word
// too.
struct shape {
    uint32_t npages; // the run's length
    uint8_t words;   // at most PMA_SLAB_WORDS_MAX
    uint8_t shift;   // at most PMA_SHIFT_MAX: a slot is 1 << shift bits
};

// Levels count from 0, the smallest slab of a class, to PMA_LEVELS - 1; beyond some level the shape
// stays the same.
#define PMA_LEVELS 24

// The shape of a slab of slots of this size (a multiple of 16) at this level.
struct shape pma_class_shape(size_t size, unsigned level);

// The bits of a word that are slots.
extern const uint64_t pma_shape_masks[PMA_SHIFT_MAX + 1];

PMA_INLINE uint64_t shape_mask(unsigned shift) {
    return pma_shape_masks[shift];
}

#endif

// class.h - size <-> class -> the shape of a slab.
//
// Owns the list of slot sizes and how a run is cut; all of it is arithmetic, there is no state. It
// must not know descriptors. Class 0 is for requests of no bytes: slots of 16 of which nothing may
// be used.
#ifndef PMA_CLASS_H
#define PMA_CLASS_H

#include "base.h"
#include "tune.h"

// All slot sizes there are: steps of 16 bytes to 256, 16 per doubling to 1 KiB, then steps of 64
// bytes, or 32 per doubling where those are longer, and class 0.
#define PMA_CLASSES (1 + 16 + 16 * 2 + 16 + 32 * 4)

// An arena begins with few of them and uses more between them where it has much: each class in use
// has a slab that is partly empty, and each step costs half of itself in every slot.
enum grade {
    GRADE_COARSE, // 4 per doubling
    GRADE_MIDDLE, // 16 per doubling
    GRADE_FINE,   // all
    GRADES
};

// Slot sizes of GRADE_FINE lie 2^N bytes apart around a size above 1 KiB.
PMA_INLINE unsigned class_fine_shift(size_t size) {
    unsigned highest = bits_highest(size - 1);
    return highest <= 11 ? 6 : highest - 5;
}

// The class whose slots are the smallest that hold size bytes; size is at most PMA_SLOT_MAX.
PMA_INLINE unsigned class_of(size_t size) {
    if (size <= 256) {
        return (unsigned)((size + 15) / 16);
    }
    unsigned highest = bits_highest(size - 1);
    if (size <= 1024) {
        return 17 + 16 * (highest - 8) + (unsigned)((size - 1) >> (highest - 4) & 15);
    }
    if (size <= 4096) {
        return 33 + (unsigned)((size - 1) >> 6);
    }
    return 97 + 32 * (highest - 12) + (unsigned)((size - 1) >> (highest - 5) & 31);
}

// Its slots' size in bytes.
PMA_INLINE size_t class_size(unsigned class) {
    if (class <= 16) {
        return class == 0 ? 16 : (size_t) class * 16;
    }
    if (class <= 48) {
        return (size_t)(17 + (class - 17) % 16) << (4 + (class - 17) / 16);
    }
    if (class <= 96) {
        return (size_t)(class - 32) << 6;
    }
    return (size_t)(33 + (class - 97) % 32) << (7 + (class - 97) / 32);
}

// The distance of slot sizes of a grade around a size, at least 1: a power of two.
size_t pma_class_step(size_t size, enum grade grade);

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

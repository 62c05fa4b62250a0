// class.c - the shape of a slab.
#include <config.h>

#include "class.h"

#include "os.h"

const uint64_t pma_shape_masks[PMA_SHIFT_MAX + 1] = {
    0xffffffffffffffffu, 0x5555555555555555u, 0x1111111111111111u,
    0x0101010101010101u, 0x0001000100010001u, 0x0000000100000001u,
};

size_t pma_class_step(size_t size, enum grade grade) {
    unsigned highest = size <= 1 ? 0 : bits_highest(size - 1);
    unsigned shift = 4;
    if (grade == GRADE_FINE && size > 1024) {
        shift = class_fine_shift(size);
    } else if (grade == GRADE_COARSE) {
        shift = highest < 6 ? 4 : highest - 2;
    } else {
        shift = highest < 8 ? 4 : highest - 4;
    }
    return (size_t)1 << shift;
}

static uint32_t pages_for(size_t bytes) {
    return (uint32_t)((bytes + pma_page_size - 1) >> pma_page_shift);
}

// What a run of whole words leaves unused at its end, in bytes.
static size_t tail_of(size_t words, size_t word_bytes) {
    size_t used = words * word_bytes;
    return align_up(used, pma_page_size) - used;
}

// As many words as fit, or a few more if the run's end is then used better: at most 1/64 is left.
static size_t words_chosen(size_t fitting, size_t word_bytes) {
    size_t best = fitting;
    for (size_t words = fitting; words <= size_min(2 * fitting, PMA_SLAB_WORDS_MAX); words++) {
        if (tail_of(words, word_bytes) * best < tail_of(best, word_bytes) * words) {
            best = words;
        }
        if (tail_of(best, word_bytes) * 64 <= best * word_bytes) {
            break;
        }
    }
    return best;
}

// Small slots double at each level. Larger ones do so at every third, so that what a new slab adds
// stays small against what the class has.
// Beyond the limit all shapes are at their largest already, and 32 bits would not hold the product.
static unsigned doublings(size_t size, unsigned level) {
    return size <= PMA_FINE_MAX ? (unsigned)size_min(level, 12) : level / 3;
}

// A word is as long as a window reaches, and in time all of it is touched, since slots are chosen
// at random: so its bytes are few until there are many slots of the class.
static unsigned shift_chosen(size_t size, unsigned level) {
    size_t most = PMA_WORD_BYTES << doublings(size, level);
    most = size_min(most, size <= PMA_FINE_MAX ? 64 * PMA_FINE_MAX : PMA_WORD_BYTES_LARGE);
    unsigned shift = 0;
    while (shift < PMA_SHIFT_MAX && size * (64u >> shift) > most) {
        shift++;
    }
    return shift;
}

static size_t bytes_wanted(size_t size, unsigned level) {
    size_t most = size_max(PMA_SLAB_BYTES_MAX, 16 * size);
    return size_min(pma_page_size << doublings(size, level), most);
}

struct shape pma_class_shape(size_t size, unsigned level) {
    unsigned shift = shift_chosen(size, level);
    size_t word_bytes = size * (64u >> shift);
    size_t fitting = size_max(bytes_wanted(size, level) / word_bytes, 1);
    size_t words = words_chosen(size_min(fitting, PMA_SLAB_WORDS_MAX), word_bytes);
    return (struct shape){ pages_for(words * word_bytes), (uint8_t)words, (uint8_t)shift };
}

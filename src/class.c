// class.c - the shape of a slab.
#include <config.h>

#include "class.h"

#include "os.h"

static uint32_t pages_for(size_t bytes) {
    return (uint32_t)((bytes + pma_page_size - 1) >> pma_page_shift);
}

// What a run of whole words leaves unused at its end, in bytes.
static size_t tail_of(size_t words, size_t size) {
    size_t used = words * 64 * size;
    return align_up(used, pma_page_size) - used;
}

// As many words as fit, or a few more if the run's end is then used better: at most 1/64 is left.
static size_t words_chosen(size_t fitting, size_t size) {
    size_t best = fitting;
    for (size_t words = fitting; words <= size_min(2 * fitting, PMA_SLAB_WORDS_MAX); words++) {
        if (tail_of(words, size) * best < tail_of(best, size) * words) {
            best = words;
        }
        if (tail_of(best, size) * 64 <= best * 64 * size) {
            break;
        }
    }
    return best;
}

// Small slots double at each level. Larger ones do so at every third, so that what a new slab adds
// stays small against what the class has: slots of a page are 64 in a slab only when there are some
// 300 of them.
static size_t bytes_wanted(size_t size, unsigned level) {
    size_t most = size_max(PMA_SLAB_BYTES_MAX, 64 * size);
    unsigned doublings = size <= PMA_FINE_MAX ? level : level / 3;
    return size_min(pma_page_size << doublings, most);
}

struct shape pma_class_shape(size_t size, unsigned level) {
    size_t bytes = bytes_wanted(size, level);
    size_t slots = size > PMA_WIDE_SLOT_MAX ? 16 : bytes / size;
    if (slots < 64) {
        uint8_t shift = slots < 32 ? 2 : 1;
        return (struct shape){ pages_for((64 >> shift) * size), 1, shift };
    }
    size_t words = words_chosen(size_min(slots / 64, PMA_SLAB_WORDS_MAX), size);
    return (struct shape){ pages_for(words * 64 * size), (uint8_t)words, 0 };
}

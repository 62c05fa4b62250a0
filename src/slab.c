// slab.c - a run cut in equal slots.
#include <config.h>

#include "slab.h"

#include "os.h"

// The first shares two pairs of cache lines with the remote part, 256 bytes in all; the others
// follow the levels at which small slots double: 4 to 13 words, to 19, 35 and 64.
const uint8_t pma_slab_capacities[PMA_SLAB_CAPACITIES] = { 3, 13, 19, 35, PMA_SLAB_WORDS_MAX + 1 };

static size_t owner_size(size_t words) {
    return align_up(sizeof(struct slab) + words * sizeof(uint64_t), PMA_APART);
}

static size_t remote_size(size_t words) {
    return align_up(sizeof(struct remote) + words * sizeof(uint64_t), PMA_APART);
}

unsigned pma_slab_capacity(size_t words) {
    unsigned capacity = 0;
    while (pma_slab_capacities[capacity] < words) {
        capacity++;
    }
    return capacity;
}

size_t pma_slab_descriptor_size(unsigned capacity) {
    size_t words = pma_slab_capacities[capacity];
    return owner_size(words) + remote_size(words);
}

size_t pma_slab_span_words(size_t size, struct shape shape) {
    size_t unit = size >> shape.shift;
    size_t positions = (((size_t)shape.npages << pma_page_shift) + unit - 1) / unit;
    return (positions + 63) / 64;
}

void pma_slab_init(struct slab *slab, uintptr_t start, size_t size, struct shape shape,
                   struct arena *owner, uint32_t bin) {
    struct run *run = &slab->run;
    size_t words = pma_slab_capacities[run->capacity];
    struct remote *remote = (struct remote *)((char *)slab + owner_size(words));
    run->npages = shape.npages;
    run->start = run->base = start;
    run->next = run->prev = NULL;
    run->size = size;
    run->remote = remote;
    run->words = shape.words;
    run->shift = shape.shift;
    run->inverse = UINT64_MAX / (size >> shape.shift) + 1;
    run->owner = owner;
    run->bin = bin;
    run->count = 0;
    run->bias = 0;
    run->room = shape.words == 64 ? ~(uint64_t)0 : ((uint64_t)1 << shape.words) - 1;
    for (size_t word = 0; word < words; word++) {
        slab_set_live(slab, word, 0);
        __atomic_store_n(&remote->bits[word], 0, __ATOMIC_RELAXED);
    }
    run_set_kind(run, RUN_SLAB);
}

uint64_t pma_slab_scan(const struct slab *slab) {
    uint64_t room = 0;
    for (size_t word = 0; word < slab->run.words; word++) {
        room |= (uint64_t)(slab_free_bits(slab, word) != 0) << word;
    }
    return room;
}

size_t pma_slab_count_live(const struct slab *slab) {
    size_t count = 0;
    for (size_t word = 0; word < slab->run.words; word++) {
        count += bits_count(slab_live(slab, word));
    }
    return count;
}

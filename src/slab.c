// slab.c - a run cut in equal slots.
#include <config.h>

#include "slab.h"

#include "os.h"

// The first shares two pairs of cache lines with the remote part, 256 bytes in all; the others
// follow the levels at which small slots double.
const uint8_t pma_slab_capacities[PMA_SLAB_CAPACITIES] = { 2, 12, 18, 34, PMA_SLAB_WORDS_MAX + 1 };

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
    // Written once: a thread that freed a slot of an earlier incarnation may still read it.
    if (run->remote == NULL) {
        run->remote = (struct remote *)((char *)slab + owner_size(words));
    }
    run->npages = shape.npages;
    run->start = run->base = start;
    run->next = run->prev = NULL;
    run->size = size;
    run->words = shape.words;
    run->shift = shape.shift;
    run->enough = (uint8_t)(shape.shift <= 2 ? 4 : size_max(16u >> shape.shift, 1));
    run->inverse = UINT64_MAX / (size >> shape.shift) + 1;
    run->owner = owner;
    run->bin = bin;
    run->count = 0;
    run->bias = 0;
    slab->dropped_at = UINT32_MAX;
    run->room = shape.words == 64 ? ~(uint64_t)0 : ((uint64_t)1 << shape.words) - 1;
    for (size_t word = 0; word < words; word++) {
        slab_set_live(slab, word, 0);
        __atomic_store_n(&run->remote->bits[word], 0, __ATOMIC_RELAXED);
    }
    run_set_kind(run, RUN_SLAB);
}

uint64_t pma_slab_scan(const struct slab *slab) {
    uint64_t slots = shape_mask(slab->run.shift);
    uint64_t room = 0;
    for (size_t word = slab->run.words; word-- > 0;) {
        room = room << 1 | (slab_live(slab, word) != slots);
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

// ---- pages of free slots

static bool slot_is_live(const struct slab *slab, size_t slot) {
    size_t bit = slot << slab->run.shift;
    return (slab_live(slab, bit / 64) >> bit % 64 & 1) != 0;
}

// The whole pages between two slots.
static size_t stretch_drop(struct slab *slab, size_t from, size_t to, size_t least) {
    uintptr_t start = align_up(slab->run.base + from * slab->run.size, pma_page_size);
    uintptr_t end = align_down(slab->run.base + to * slab->run.size, pma_page_size);
    if (end <= start || end - start < least || !pma_os_purge((void *)start, end - start)) {
        return 0;
    }
    return end - start;
}

size_t pma_slab_drop(struct slab *slab, size_t least) {
    size_t slots = slab_slots(slab);
    size_t sum = 0;
    for (size_t slot = 0; slot < slots;) {
        size_t from = slot;
        while (slot < slots && !slot_is_live(slab, slot)) {
            slot++;
        }
        sum += slot > from ? stretch_drop(slab, from, slot, least) : 0;
        slot += slot < slots;
    }
    return sum;
}

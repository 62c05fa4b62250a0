// runlist.c - free runs by length.
#include <config.h>

#include "runlist.h"

// Lists of exact lengths first. Above, three bits below the highest choose one of eight.
static size_t bin_of(size_t npages) {
    if (npages <= PMA_EXACT_PAGES) {
        return npages;
    }
    unsigned highest = bits_highest(npages);
    size_t eighth = npages >> (highest - 3) & 7;
    return PMA_EXACT_PAGES + 1 + (size_t)(highest - 7) * 8 + eighth;
}

void pma_runlist_insert(struct runlist *list, struct run *run) {
    size_t bin = bin_of(run->npages);
    run->prev = NULL;
    run->next = list->heads[bin];
    if (run->next != NULL) {
        run->next->prev = run;
    }
    list->heads[bin] = run;
    list->filled[bin / 64] |= (uint64_t)1 << bin % 64;
}

void pma_runlist_remove(struct runlist *list, struct run *run) {
    size_t bin = bin_of(run->npages);
    if (run->next != NULL) {
        run->next->prev = run->prev;
    }
    if (run->prev != NULL) {
        run->prev->next = run->next;
        return;
    }
    list->heads[bin] = run->next;
    if (run->next == NULL) {
        list->filled[bin / 64] &= ~((uint64_t)1 << bin % 64);
    }
}

// The first list from bin on that is not empty, or PMA_RUNLIST_BINS.
static size_t filled_from(const struct runlist *list, size_t bin) {
    size_t words = sizeof(list->filled) / sizeof(list->filled[0]);
    if (bin >= PMA_RUNLIST_BINS) {
        return PMA_RUNLIST_BINS;
    }
    uint64_t word = list->filled[bin / 64] >> bin % 64 << bin % 64;
    for (size_t i = bin / 64;; word = list->filled[i]) {
        if (word != 0) {
            return i * 64 + bits_lowest(word);
        }
        if (++i == words) {
            return PMA_RUNLIST_BINS;
        }
    }
}

// One of the first runs of a list of equal ones.
static struct run *choose(struct run *run, struct stream *stream) {
    if (run->next == NULL) {
        return run;
    }
    struct run *first = run;
    for (unsigned steps = stream_nibble(stream); steps > 0; steps--) {
        run = run->next == NULL ? first : run->next;
    }
    return run;
}

// The shortest fit among the first runs of a list of lengths that differ by up to an eighth.
static struct run *shortest(struct run *run, size_t npages) {
    struct run *best = NULL;
    for (int looked = 0; run != NULL && looked < PMA_CHOICES; run = run->next, looked++) {
        if (run->npages >= npages && (best == NULL || run->npages < best->npages)) {
            best = run;
        }
    }
    return best;
}

// Any fit at all, however far back it is.
static struct run *first_fit(struct run *run, size_t npages) {
    while (run != NULL && run->npages < npages) {
        run = run->next;
    }
    return run;
}

// Runs that are too short may fill the beginning of the first list: the rest of it is looked at
// when no other list has a run.
struct run *pma_runlist_find(const struct runlist *list, size_t npages, struct stream *stream) {
    size_t first = filled_from(list, bin_of(npages));
    for (size_t bin = first; bin < PMA_RUNLIST_BINS; bin = filled_from(list, bin + 1)) {
        struct run *run = bin <= PMA_EXACT_PAGES ? choose(list->heads[bin], stream)
                                                 : shortest(list->heads[bin], npages);
        if (run != NULL) {
            return run;
        }
    }
    return first < PMA_RUNLIST_BINS ? first_fit(list->heads[first], npages) : NULL;
}

struct run *pma_runlist_longest(const struct runlist *list, size_t npages) {
    for (size_t i = sizeof(list->filled) / sizeof(list->filled[0]); i-- > 0;) {
        if (list->filled[i] != 0) {
            struct run *run = list->heads[i * 64 + bits_highest(list->filled[i])];
            return run->npages >= npages ? run : NULL;
        }
    }
    return NULL;
}

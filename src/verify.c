// verify.c - walks the heap and checks every equation of the headers.
#include <config.h>

#include "verify.h"

#include "fatal.h"
#include "os.h"
#include "pageheap.h"
#include "pagemap.h"
#include "remote.h"
#include "slab.h"
#include "thread.h"

static void require(bool holds, const char *equation, const struct run *run) {
    if (!holds) {
        pma_fatal("verify", equation, (struct fatal_block){ (void *)run->start, run->size, -1 });
    }
}

static void slab_verify(const struct slab *slab) {
    const struct run *run = &slab->run;
    enum slab_state state = slab_state_of(slab_load_state(slab));
    const struct bin *bin = slab_bin(slab);
    size_t sum = 0;
    for (size_t word = 0; word < run->words; word++) {
        uint64_t live = slab_live(slab, word);
        uint64_t remote = __atomic_load_n(&run->remote->bits[word], __ATOMIC_SEQ_CST);
        require((live & ~shape_mask(run->shift)) == 0, "live bits are slots", run);
        require((remote & ~live) == 0, "remote bits are live", run);
        sum += bits_count(live);
    }
    if (state == SLAB_CURRENT) {
        require(bin->current == slab, "a current slab is its bin's", run);
        require((bin->window & slab_live(slab, bin->word)) == 0 || bin->window == 0,
                "the window's slots are free", run);
    } else {
        require(sum == run->count + run->bias, "live == count + bias", run);
    }
}

static void run_verify(struct run *run, void *context) {
    size_t *pages = context;
    switch (run_kind(run)) {
    case RUN_SLAB:
        require(pagemap_find(run->start + ((size_t)run->npages << pma_page_shift) - PMA_GRANULE) ==
                    run,
                "a slab enters all its granules", run);
        slab_verify(slab_of(run));
        pages[run->shard] += run->npages;
        break;
    case RUN_LARGE:
        require(run->owner == NULL, "only slabs have an owner", run);
        pages[run->shard] += run->npages;
        break;
    default:
        break;
    }
}

void pma_verify(void) {
    size_t pages[PMA_SHARDS_MAX] = { 0 };
    pma_pagemap_walk(run_verify, pages);
    for (unsigned i = 0; i < pma_pageheap.nshards; i++) {
        const struct shard *shard = &pma_pageheap.shards[i];
        struct run where = { .start = (uintptr_t)shard, .size = shard->live_pages };
        require(pages[i] <= shard->live_pages, "slabs and large blocks are live pages", &where);
    }
}

// verify.c - a sound heap passes, and every equation that is broken on purpose is told.
#include <config.h>

#include "alloc.h"
#include "arena.h"
#include "arenas.h"
#include "base.h"
#include "harness.h"
#include "malloc.h"
#include "os.h"
#include "pageheap.h"
#include "pagemap.h"
#include "remote.h"
#include "slab.h"
#include "thread.h"
#include "verify.h"

#include <pthread.h>

// ---- what is sound

static void *thread_hold(void *argument) {
    void **blocks = argument;
    for (size_t i = 0; i < 100; i++) {
        blocks[i] = pma_malloc(i * 30);
        REQUIRE(blocks[i] != NULL);
    }
    return NULL;
}

// With slots of another thread, some freed from here, and blocks of every kind.
static void check_sound(struct dice *dice) {
    static void *foreign[100];
    static void *held[500];
    pthread_t thread;
    pma_verify();
    REQUIRE(pthread_create(&thread, NULL, thread_hold, foreign) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
    unsigned rounds = 20000 / slow_factor();
    for (unsigned round = 0; round < rounds; round++) {
        size_t i = dice_below(dice, 500);
        if (held[i] != NULL) {
            pma_free(held[i]);
            held[i] = NULL;
        } else {
            held[i] = pma_malloc(dice_below(dice, (size_t)1 << dice_below(dice, 21)));
            REQUIRE(held[i] != NULL);
        }
        if (round % 200 == 0) {
            pma_free(foreign[round / 200 % 100]);
            foreign[round / 200 % 100] = NULL;
            pma_verify();
        }
    }
    for (size_t i = 0; i < 500; i++) {
        pma_free(held[i]);
    }
    pma_verify();
    pma_alloc_trim();
    pma_verify();
}

// ---- what is broken

// A slab of two dozen slots that is not current: full, then with one slot free again.
static struct slab *slab_settled(size_t size) {
    void *blocks[200];
    for (size_t i = 0; i < 200; i++) {
        blocks[i] = pma_malloc(size);
        REQUIRE(blocks[i] != NULL);
    }
    struct slab *slab = slab_at(blocks[0]);
    REQUIRE(slab_is_settled(slab_load_state(slab)));
    pma_free(blocks[0]);
    REQUIRE(slab_state_of(slab_load_state(slab)) == SLAB_ATTACHED);
    return slab;
}

static void break_live(void *argument) {
    (void)argument;
    struct slab *slab = slab_settled(8192);
    REQUIRE(slab->run.shift > 0);
    slab->live[0] |= 2;
    slab->run.count++;
    pma_verify();
}

static void break_remote(void *argument) {
    (void)argument;
    struct slab *slab = slab_settled(8192);
    uint64_t free_bits = slab_free_bits(slab, 0);
    REQUIRE(free_bits != 0);
    slab->run.remote->bits[0] |= free_bits & -free_bits;
    pma_verify();
}

static void break_count(void *argument) {
    slab_settled(8192)->run.count += argument != NULL ? 1u : UINT32_MAX;
    pma_verify();
}

static void break_current(void *argument) {
    (void)argument;
    REQUIRE(pma_malloc(100) != NULL);
    arena_bin_for(pma_self, 100)->current = NULL;
    pma_verify();
}

static void break_window(void *argument) {
    (void)argument;
    REQUIRE(pma_malloc(100) != NULL);
    struct bin *bin = arena_bin_for(pma_self, 100);
    REQUIRE(*bin->live != 0);
    bin->window |= *bin->live;
    pma_verify();
}

static void break_pagemap(void *argument) {
    (void)argument;
    struct slab *slab = slab_settled(8192);
    uintptr_t end = slab->run.start + ((uintptr_t)slab->run.npages << pma_page_shift);
    pagemap_set(end - PMA_GRANULE, NULL);
    pma_verify();
}

static void break_owner(void *argument) {
    (void)argument;
    void *block = pma_malloc(100000);
    REQUIRE(block != NULL);
    pagemap_find((uintptr_t)block)->owner = pma_self;
    pma_verify();
}

static void break_pages(void *argument) {
    (void)argument;
    REQUIRE(pma_malloc(100000) != NULL);
    struct run *run = pagemap_find((uintptr_t)pma_malloc(100000));
    REQUIRE(run != NULL);
    pma_pageheap.shards[run->shard].live_pages -= 1;
    pma_verify();
}

static void check_broken(void) {
    static char more;
    expect_abort(break_live, NULL, "verify(): live bits are slots: 0x");
    expect_abort(break_remote, NULL, "verify(): remote bits are live: 0x");
    expect_abort(break_count, NULL, "verify(): live == count + bias: 0x");
    expect_abort(break_count, &more, "verify(): live == count + bias: 0x");
    expect_abort(break_current, NULL, "verify(): a current slab is its bin's: 0x");
    expect_abort(break_window, NULL, "verify(): the window's slots are free: 0x");
    expect_abort(break_pagemap, NULL, "verify(): a slab enters all its granules: 0x");
    expect_abort(break_owner, NULL, "verify(): only slabs have an owner: 0x");
    expect_abort(break_pages, NULL, "verify(): slabs and large blocks are live pages: 0x");
}

int main(void) {
    test_begin(60);
    struct dice dice = { test_seed() };
    check_broken();
    check_sound(&dice);
    return test_end();
}

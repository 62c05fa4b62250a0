// init.c - the order of start, and fork.
#include <config.h>

#include "init.h"

#include "fatal.h"
#include "huge.h"
#include "lock.h"
#include "meta.h"
#include "options.h"
#include "os.h"
#include "pageheap.h"
#include "pagemap.h"
#include "random.h"
#include "region.h"
#include "sanitizer.h"
#include "thread.h"

#include <pthread.h>

uint32_t pma_is_ready;
static struct lock init_lock = LOCK_FREE(LOCK_INIT);

static void start(void) {
    pma_os_init();
    sanitizer_give_way();
    pma_options_init();
    pma_os_set_huge_pages((enum huge_pages)pma_options.thp);
    unsigned processors = pma_os_processors();
    pma_lock_know_processors(processors);
    unsigned nshards = (unsigned)size_min(PMA_SHARDS_EACH * (size_t)processors, PMA_SHARDS_MAX);
    pma_pageheap_init(nshards);
    pma_thread_init(nshards);
    if (pma_options.seed != 0) {
        pma_random_set_seed(pma_options.seed);
        pma_fatal_set_seed(pma_options.seed);
    }
}

void pma_init(void) {
    lock_lock(&init_lock);
    if (pma_is_ready == 0) {
        start();
        __atomic_store_n(&pma_is_ready, 1, __ATOMIC_RELEASE);
    }
    lock_unlock(&init_lock);
}

// ---- fork

// All locks, in the order in which they may be taken; the adoption locks are not among them: an
// arena that is being drained is marked busy, and a child leaves it alone.
static struct lock *fork_lock(unsigned i) {
    unsigned nshards = pma_pageheap.nshards;
    if (i >= 3 && i < 3 + nshards) {
        return &pma_pageheap.shards[i - 3].lock;
    }
    switch (i < 3 ? i : i - nshards) {
    case 0:
        return &init_lock;
    case 1:
        return pma_thread_lock();
    case 2:
        return pma_huge_lock();
    case 3:
        return pma_region_growth_lock();
    case 4:
        return pma_region_lock();
    case 5:
        return pma_meta_growth_lock();
    case 6:
        return pma_meta_lock();
    case 7:
        return pma_pagemap_lock();
    default:
        return NULL;
    }
}

// What the C library says, where it says it (glibc 2.32).
extern char single_threaded __asm__("__libc_single_threaded") __attribute__((weak));
// Its lock on the list of open files, which it takes in fork after all handlers, and twice if
// asked.
extern void files_lock(void) __asm__("_IO_list_lock") __attribute__((weak));
extern void files_unlock(void) __asm__("_IO_list_unlock") __attribute__((weak));

// The process has one thread: the locks are free, or the thread holds them itself, since this is a
// signal's handler. Waiting for them would never end, and a child has them as the parent does.
static bool fork_is_alone; // atomic; several threads write the same

// fflush holds the list while it waits for a file, and who has the file may wait for memory: so the
// list comes first. A child finds it reset if the C library knows of the threads.
static bool files_are_locked(void) {
    return &single_threaded != NULL && files_lock != NULL && files_unlock != NULL;
}

static void fork_prepare(void) {
    bool alone = &single_threaded != NULL && single_threaded != 0;
    __atomic_store_n(&fork_is_alone, alone, __ATOMIC_RELAXED);
    if (alone) {
        return;
    }
    if (files_are_locked()) {
        files_lock();
    }
    for (unsigned i = 0; fork_lock(i) != NULL; i++) {
        lock_lock(fork_lock(i));
    }
}

static void fork_parent(void) {
    if (__atomic_load_n(&fork_is_alone, __ATOMIC_RELAXED)) {
        return;
    }
    for (unsigned i = 0; fork_lock(i) != NULL; i++) {
        lock_unlock(fork_lock(i));
    }
    if (files_are_locked()) {
        files_unlock();
    }
}

static void fork_child(void) {
    if (!pma_meta_is_wiped()) {
        pma_random_forget();
    }
    if (__atomic_load_n(&fork_is_alone, __ATOMIC_RELAXED)) {
        pma_thread_after_fork_alone();
        return;
    }
    for (unsigned i = 0; fork_lock(i) != NULL; i++) {
        pma_unlock_note(fork_lock(i));
        pma_lock_reset(fork_lock(i));
    }
    pma_thread_after_fork();
}

static uint32_t fork_is_registered; // atomic

void pma_fork_register(void) {
    if (__atomic_exchange_n(&fork_is_registered, 1, __ATOMIC_RELAXED) == 0) {
        pthread_atfork(fork_prepare, fork_parent, fork_child);
    }
}

__attribute__((constructor)) static void library_start(void) {
    if (sanitizer_is_heap()) {
        return;
    }
    init_ensure();
    pma_fork_register();
}

// init.c - the start happens once, whoever comes first, and forks find no lock held.
#include <config.h>

#include "alloc.h"
#include "arena.h"
#include "base.h"
#include "fatal.h"
#include "harness.h"
#include "huge.h"
#include "init.h"
#include "limits.h"
#include "lock.h"
#include "malloc.h"
#include "meta.h"
#include "os.h"
#include "pageheap.h"
#include "pagemap.h"
#include "random.h"
#include "region.h"
#include "thread.h"

#include <pthread.h>

// ---- start

// The constructor has run before main, as it does in every program.
static void check_started(void) {
    CHECK_EQ(pma_is_ready, 1);
    CHECK(pma_page_size >= PMA_GRANULE);
    CHECK_EQ((size_t)1 << pma_page_shift, pma_page_size);
    CHECK(pma_pageheap.nshards >= 1 && pma_pageheap.nshards <= PMA_SHARDS_MAX);
    CHECK_EQ(pma_pageheap.nshards,
             size_min(PMA_SHARDS_EACH * (size_t)pma_os_processors(), PMA_SHARDS_MAX));
    CHECK(pma_lock_none_held());
}

// A second start would forget what the first one made.
static void check_once(void) {
    void *block = pma_malloc(100);
    REQUIRE(block != NULL);
    size_t live = pma_pageheap.live;
    struct arena *arena = pma_self;
    pma_init();
    init_ensure();
    CHECK_EQ(pma_pageheap.live, live);
    CHECK(pma_self == arena);
    pma_free(block);
}

#define THREADS 4

static pthread_barrier_t barrier;
static unsigned shards_seen[THREADS];

static void *thread_start(void *argument) {
    pthread_barrier_wait(&barrier);
    init_ensure();
    // Whoever comes back from it finds all of it done.
    *(unsigned *)argument = pma_pageheap.nshards;
    void *block = pma_malloc(10);
    CHECK(block != NULL);
    pma_free(block);
    return NULL;
}

// As if nothing had been started: several threads come at once.
static void start_together(void *argument) {
    (void)argument;
    pthread_t threads[THREADS];
    unsigned shards = pma_pageheap.nshards;
    pma_pageheap.nshards = 0;
    pma_is_ready = 0;
    REQUIRE(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
    for (size_t i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, thread_start, &shards_seen[i]) == 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
        CHECK_EQ(shards_seen[i], shards);
    }
    CHECK_EQ(pma_is_ready, 1);
}

// ---- the seed

static void allocate_with_seed(void *argument) {
    REQUIRE(argument == NULL ? unsetenv("PAMALLOC_OPTIONS") == 0
                             : setenv("PAMALLOC_OPTIONS", argument, 1) == 0);
    pma_is_ready = 0;
    pma_init();
    struct stream stream;
    memset(&stream, 0, sizeof(stream));
    for (size_t i = 0; i < 20; i++) {
        say("%u ", stream_nibble(&stream));
    }
    pma_fatal("test", "told", (struct fatal_block){ NULL, 0, -1 });
}

// seed= makes the draws repeat, and every message says which it was.
static void check_seed(void) {
    char first[] = "seed=0x1234";
    char second[] = "seed=0x1235";
    struct child_end ends[3] = {
        run_child(allocate_with_seed, first, 20),
        run_child(allocate_with_seed, first, 20),
        run_child(allocate_with_seed, second, 20),
    };
    for (size_t i = 0; i < 3; i++) {
        CHECK(WIFSIGNALED(ends[i].status) && WTERMSIG(ends[i].status) == SIGABRT);
    }
    CHECK(strcmp(ends[0].text, ends[1].text) == 0);
    CHECK(strncmp(ends[0].text, ends[2].text, 20) != 0);
    CHECK(strstr(ends[0].text, "[seed 0x0000000000001234]") != NULL);
    CHECK(strstr(ends[2].text, "[seed 0x0000000000001235]") != NULL);
    // Without it, each run draws its own.
    ends[0] = run_child(allocate_with_seed, NULL, 20);
    ends[1] = run_child(allocate_with_seed, NULL, 20);
    CHECK(strcmp(ends[0].text, ends[1].text) != 0);
}

// ---- fork

// Registered before the library's own handlers, since the linker sorts constructors by this number:
// so this runs after them, when all locks are held.
static uint32_t forks_seen;
static uint32_t locks_free; // that were not held then

static void look_at_locks(void) {
    struct lock *locks[7 + PMA_SHARDS_MAX] = { pma_thread_lock(),        pma_huge_lock(),
                                               pma_region_growth_lock(), pma_region_lock(),
                                               pma_meta_growth_lock(),   pma_meta_lock(),
                                               pma_pagemap_lock() };
    for (unsigned i = 0; i < pma_pageheap.nshards; i++) {
        locks[7 + i] = &pma_pageheap.shards[i].lock;
    }
    forks_seen++;
    for (unsigned i = 0; i < 7 + pma_pageheap.nshards; i++) {
        locks_free += __atomic_load_n(&locks[i]->state, __ATOMIC_RELAXED) == 0;
    }
}

__attribute__((constructor(101))) static void register_first(void) {
    REQUIRE(pthread_atfork(look_at_locks, NULL, NULL) == 0);
}

static void do_nothing(void *argument) {
    (void)argument;
}

static void *fork_beside_main(void *argument) {
    struct child_end end = run_child(do_nothing, argument, 20);
    expect_exit(&end, 0, "a child");
    return NULL;
}

// With several threads all locks are held. One alone takes none: it may hold some itself, below a
// signal's handler that forks.
static void check_all_locks(void) {
    pthread_t thread;
    forks_seen = locks_free = 0;
    REQUIRE(pthread_create(&thread, NULL, fork_beside_main, NULL) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
    CHECK_EQ(forks_seen, 1);
    CHECK_EQ(locks_free, 0);
    CHECK(pma_lock_none_held());
}

static void fork_once_more(void *argument) {
    struct child_end end = run_child(do_nothing, argument, 10);
    expect_exit(&end, 0, "a child of a child");
}

// As in a handler that came while a lock was held: no fork waits for it, and it stays what it was.
static void check_fork_below_a_lock(void) {
    lock_lock(pma_region_lock());
    struct child_end end = run_child(fork_once_more, NULL, 20);
    expect_exit(&end, 0, "a child below a lock");
    CHECK_EQ(__atomic_load_n(&pma_region_lock()->state, __ATOMIC_RELAXED), 1);
    lock_unlock(pma_region_lock());
}

// A thread that waits between two calls: in a child its arena is nobody's.
static void *thread_wait(void *argument) {
    (void)argument;
    pma_free(pma_malloc(10));
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void count_idle(struct arena *arena, void *context) {
    *(size_t *)context += arena->idle;
}

static void count_in_child(void *argument) {
    size_t idle = 0;
    pma_arena_walk(count_idle, &idle);
    CHECK_EQ(idle, *(const size_t *)argument + 1);
}

static void check_arenas(void) {
    pthread_t thread;
    size_t idle = 0;
    REQUIRE(pthread_barrier_init(&barrier, NULL, 2) == 0);
    REQUIRE(pthread_create(&thread, NULL, thread_wait, NULL) == 0);
    pthread_barrier_wait(&barrier);
    pma_arena_walk(count_idle, &idle);
    struct child_end end = run_child(count_in_child, &idle, 20);
    expect_exit(&end, 0, "arenas of threads that are gone");
    pthread_barrier_wait(&barrier);
    REQUIRE(pthread_join(thread, NULL) == 0);
}

static uint32_t stop; // atomic

// Takes and gives in all ways: slots, large and huge blocks, so that any lock may be held.
static void *thread_churn(void *argument) {
    struct dice dice = { (uintptr_t)argument };
    static const size_t tops[] = { 200, 3000, 40000, 400000, 3000000 };
    while (__atomic_load_n(&stop, __ATOMIC_RELAXED) == 0) {
        void *blocks[8];
        for (size_t i = 0; i < 8; i++) {
            blocks[i] = pma_malloc(dice_below(&dice, tops[dice_below(&dice, 5)]));
            CHECK(blocks[i] != NULL);
        }
        for (size_t i = 0; i < 8; i++) {
            pma_free(blocks[i]);
        }
    }
    return NULL;
}

static void allocate_in_child(void *argument) {
    struct dice dice = { (uintptr_t)argument };
    CHECK(pma_lock_none_held());
    for (int round = 0; round < 200; round++) {
        size_t size = (size_t)1 << dice_below(&dice, 21);
        unsigned char *block = pma_malloc(size);
        REQUIRE(block != NULL);
        block[0] = block[size - 1] = 1;
        block = pma_realloc(block, 2 * size);
        REQUIRE(block != NULL && block[0] == 1 && block[size - 1] == 1);
        pma_free(block);
    }
    CHECK(pma_lock_none_held());
}

static void check_forks(void) {
    pthread_t threads[2];
    int forks = 40 / (int)slow_factor() + 4;
    for (uintptr_t i = 0; i < 2; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, thread_churn, (void *)(i + 1)) == 0);
    }
    for (int i = 0; i < forks; i++) {
        struct child_end end = run_child(allocate_in_child, (void *)(uintptr_t)(i + 1), 60);
        expect_exit(&end, 0, "a child of a busy process");
        // The parent goes on as before.
        CHECK(pma_lock_none_held());
        void *block = pma_malloc(500000);
        CHECK(block != NULL);
        pma_free(block);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < 2; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
}

static void fork_again(void *argument) {
    size_t depth = (size_t)(uintptr_t)argument;
    allocate_in_child(argument);
    if (depth > 0) {
        struct child_end end = run_child(fork_again, (void *)(uintptr_t)(depth - 1), 20);
        expect_exit(&end, 0, "a child of a child");
    }
}

int main(void) {
    test_begin(120);
    check_started();
    check_once();
    struct child_end end = run_child(start_together, NULL, 20);
    expect_exit(&end, 0, "a start by several threads");
    check_seed();
    end = run_child(fork_again, (void *)3, 20);
    expect_exit(&end, 0, "children of children");
    // A sanitizer has a thread of its own, and with several threads fork takes all locks.
    if (!IS_SANITIZED) {
        check_fork_below_a_lock();
    }
    check_all_locks();
    check_arenas();
    check_forks();
    return test_end();
}

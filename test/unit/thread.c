// thread.c - each thread has an arena, an arena outlives its thread, and what ended threads left
// comes back when it is freed.
#include <config.h>

#include "arena.h"
#include "arenas.h"
#include "base.h"
#include "harness.h"
#include "lock.h"
#include "meta.h"
#include "os.h"
#include "pageheap.h"
#include "pagemap.h"
#include "random.h"
#include "remote.h"
#include "rest.h"
#include "thread.h"

#include <pthread.h>

static size_t live_bytes(void) {
    return __atomic_load_n(&pma_pageheap.live, __ATOMIC_RELAXED);
}

static void thread_run(void *(*body)(void *), void *argument) {
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, body, argument) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
}

// As an entry point does it.
static void *take(size_t size) {
    struct arena *arena = pma_arena_enter();
    if (arena == NULL) {
        return NULL;
    }
    void *slot = arena_take(arena, size);
    pma_arena_leave(arena);
    return slot;
}

static void give(void *slot) {
    struct arena *owner = slab_at(slot)->run.owner;
    if (owner == pma_self) {
        CHECK(arena_give(owner, slot));
        return;
    }
    enum remote_outcome outcome = remote_give(slot);
    CHECK(outcome != REMOTE_NOT_LIVE);
    if (outcome == REMOTE_PUSHED) {
        pma_arena_visit(owner);
    }
}

// ---- all arenas

struct tally {
    size_t count;
    size_t idle;
    size_t busy;
    size_t own;     // the calling thread's
    size_t windows; // of idle ones: slabs that are current
};

static void tally_visit(struct arena *arena, void *context) {
    struct tally *tally = context;
    tally->count++;
    tally->idle += __atomic_load_n(&arena->idle, __ATOMIC_SEQ_CST);
    tally->busy += __atomic_load_n(&arena->busy, __ATOMIC_RELAXED);
    tally->own += arena == pma_self;
    for (unsigned i = 0; i < PMA_CLASSES && arena->idle != 0; i++) {
        tally->windows += arena->bins[i].current != NULL;
    }
}

static struct tally tally_take(void) {
    struct tally tally = { 0 };
    pma_arena_walk(tally_visit, &tally);
    return tally;
}

// ---- one thread

static void check_nobody(void) {
    CHECK(pma_self == &pma_nobody);
    CHECK_EQ(tally_take().count, 0);
    for (size_t size = 0; size <= PMA_SLOT_MAX; size++) {
        CHECK_EQ(arena_bin_for(&pma_nobody, size)->window, 0);
    }
}

// Without memory there is no arena, and the next call may have one.
static void check_refused(void) {
    for (uint64_t n = 1; n < 60; n++) {
        pma_os_fail_at(n, true);
        struct arena *arena = pma_arena_enter();
        pma_os_fail_at(0, false);
        CHECK(n > 1 || arena == NULL);
        CHECK(arena != NULL || pma_self == &pma_nobody);
        CHECK(pma_lock_none_held());
        if (arena != NULL) {
            pma_arena_leave(arena);
            return;
        }
    }
    CHECK_SAY(false, "no arena at all");
}

static void check_enter(void) {
    struct arena *arena = pma_arena_enter();
    REQUIRE(arena != NULL && arena == pma_self);
    CHECK_EQ(arena->busy, 1);
    CHECK_EQ(arena->idle, 0);
    pma_arena_leave(arena);
    CHECK_EQ(arena->busy, 0);
    CHECK(pma_self == arena);
    CHECK(pma_arena_enter() == arena);
    pma_arena_leave(arena);
    struct tally tally = tally_take();
    CHECK_EQ(tally.count, 1);
    CHECK_EQ(tally.own, 1);
    CHECK_EQ(tally.idle + tally.busy, 0);
    CHECK_EQ(pma_arena_shrink_idle(), 0);
    CHECK(pma_lock_none_held());
}

// ---- threads one after the other

static void *thread_allocate(void *argument) {
    void *slots[300];
    CHECK(pma_self == &pma_nobody);
    for (size_t i = 0; i < 300; i++) {
        slots[i] = take(i * 40);
        REQUIRE(slots[i] != NULL);
        slot_mark(slots[i], i * 40, i);
    }
    for (size_t i = 0; i < 300; i++) {
        CHECK(slot_has_mark(slots[i], i * 40, i));
        give(slots[i]);
    }
    if (argument != NULL) {
        *(struct arena **)argument = pma_self;
    }
    return NULL;
}

// They use one arena, one after the other, and leave nothing behind.
static void check_adoption(void) {
    struct arena *first = NULL;
    thread_run(thread_allocate, &first);
    struct tally tally = tally_take();
    CHECK_EQ(tally.idle, 1);
    size_t before = live_bytes();
    for (int i = 0; i < 50; i++) {
        struct arena *arena = NULL;
        thread_run(thread_allocate, &arena);
        CHECK(arena == first);
        CHECK_EQ(live_bytes(), before);
    }
    struct tally after = tally_take();
    CHECK_EQ(after.count, tally.count);
    CHECK_EQ(after.idle, tally.idle);
    CHECK_EQ(after.busy, 0);
}

// ---- threads side by side

#define SIDE 4

static pthread_barrier_t barrier;

static void *thread_meet(void *argument) {
    struct arena **own = argument;
    void *slot = take(100);
    REQUIRE(slot != NULL);
    *own = pma_self;
    pthread_barrier_wait(&barrier);
    give(slot);
    return NULL;
}

static void check_side_by_side(void) {
    struct arena *own[SIDE];
    pthread_t threads[SIDE];
    size_t before = tally_take().count;
    for (int round = 0; round < 3; round++) {
        REQUIRE(pthread_barrier_init(&barrier, NULL, SIDE) == 0);
        for (size_t i = 0; i < SIDE; i++) {
            REQUIRE(pthread_create(&threads[i], NULL, thread_meet, &own[i]) == 0);
        }
        for (size_t i = 0; i < SIDE; i++) {
            REQUIRE(pthread_join(threads[i], NULL) == 0);
        }
        for (size_t i = 0; i < SIDE; i++) {
            CHECK(own[i] != pma_self && own[i] != &pma_nobody);
            for (size_t j = 0; j < i; j++) {
                CHECK(own[i] != own[j]);
                CHECK(own[i]->number != own[j]->number);
            }
        }
        // As many as there were threads at once, however often.
        CHECK_AT_MOST(tally_take().count, before + SIDE);
    }
    CHECK_EQ(tally_take().idle, tally_take().count - 1);
}

// ---- what ended threads left

#define LEFT 2000

static void *left[LEFT];

static void *thread_leave(void *argument) {
    (void)argument;
    for (size_t i = 0; i < LEFT; i++) {
        left[i] = take(64 + i % 7 * 500);
        REQUIRE(left[i] != NULL);
        slot_mark(left[i], 64, i);
    }
    return NULL;
}

// Freed by another thread, it comes back although nobody ever has that arena again.
static void check_left_behind(void) {
    size_t before = live_bytes();
    thread_run(thread_leave, NULL);
    struct arena *arena = slab_at(left[0])->run.owner;
    CHECK_EQ(arena->idle, 1);
    CHECK(live_bytes() > before);
    struct slabs slabs = arena_check(arena);
    CHECK_EQ(slabs.live, LEFT);
    CHECK_EQ(slabs.states[SLAB_CURRENT], 0);
    for (size_t i = 0; i < LEFT; i++) {
        CHECK(slot_has_mark(left[i], 64, i));
        give(left[i]);
        // Whoever pushes drains: nothing piles up.
        CHECK(inbox_is_empty(&arena->inbox));
    }
    CHECK_EQ(live_bytes(), before);
    arena_check(arena);
}

// Adopted by another thread, it is that thread's to free.
static void *thread_inherit(void *argument) {
    struct arena *arena = argument;
    REQUIRE(take(1) != NULL);
    CHECK(pma_self == arena);
    for (size_t i = 0; i < LEFT; i++) {
        CHECK(slot_has_mark(left[i], 64, i));
        CHECK(arena_give(arena, left[i]));
    }
    return NULL;
}

static void check_inheritance(void) {
    thread_run(thread_leave, NULL);
    struct arena *arena = slab_at(left[0])->run.owner;
    size_t before = arena_check(arena).live;
    CHECK_EQ(before, LEFT);
    thread_run(thread_inherit, arena);
    CHECK_EQ(arena_check(arena).live, 1);
}

// ---- visits

static void check_visit(void) {
    struct arena *arena = pma_self;
    void *slot = take(100);
    REQUIRE(slot != NULL);
    CHECK_EQ(remote_give(slot), REMOTE_PUSHED);
    // Somebody has it, so it is none of a visitor's business.
    pma_arena_visit(arena);
    CHECK(!inbox_is_empty(&arena->inbox));
    CHECK(slot_is_live(slot));
    CHECK(pma_arena_enter() == arena);
    pma_arena_drain(arena);
    pma_arena_leave(arena);
    CHECK(inbox_is_empty(&arena->inbox));
    CHECK(!slot_is_live(slot));
}

// All that nobody has goes, and the sum is told; what somebody has stays.
static void check_shrink_idle(void) {
    void *own = take(100);
    thread_run(thread_leave, NULL);
    for (size_t i = 0; i < LEFT; i++) {
        memset(left[i], 1, 64);
        if (i % 16 != 0) {
            give(left[i]);
        }
    }
    struct bin *bin = arena_bin_for(pma_self, 100);
    uint64_t window = bin->window;
    size_t given = pma_arena_shrink_idle();
    CHECK_AT_MOST(given, live_bytes());
    CHECK_EQ(bin->window, window);
    CHECK(pma_lock_none_held());
    for (size_t i = 0; i < LEFT; i += 16) {
        CHECK_EQ(*(unsigned char *)left[i], 1);
        give(left[i]);
    }
    give(own);
    CHECK_EQ(tally_take().busy, 0);
}

// ---- after the end

static pthread_key_t late_key;
static size_t late_calls;

// Runs after the library's own destructor: an arena is lent for each call.
static void late_destructor(void *argument) {
    if (pma_self != &pma_nobody) {
        // Not yet: once more, in the next round of destructors.
        REQUIRE(pthread_setspecific(late_key, argument) == 0);
        return;
    }
    for (int i = 0; i < 100; i++) {
        void *slot = take(300);
        REQUIRE(slot != NULL);
        slot_mark(slot, 300, 5);
        CHECK(pma_self == &pma_nobody);
        CHECK_EQ(slab_at(slot)->run.owner->idle, 1);
        CHECK(slot_has_mark(slot, 300, 5));
        give(slot);
        late_calls++;
    }
}

static void *thread_late(void *argument) {
    REQUIRE(pthread_setspecific(late_key, argument) == 0);
    give(take(10));
    return NULL;
}

static void check_late(void) {
    REQUIRE(pthread_key_create(&late_key, late_destructor) == 0);
    thread_run(thread_late, &late_key);
    size_t before = live_bytes();
    size_t arenas = tally_take().count;
    for (int i = 0; i < 10; i++) {
        thread_run(thread_late, &late_key);
    }
    CHECK_EQ(late_calls, 1100);
    CHECK_EQ(live_bytes(), before);
    CHECK_EQ(tally_take().count, arenas);
    CHECK_EQ(tally_take().idle, arenas - 1);
    CHECK_EQ(tally_take().windows, 0);
}

// ---- fork

static struct arena *stopped[2]; // of threads that wait while others fork
static void *stood[2];           // a slot of each
static uint32_t go_on;           // atomic

// One thread stands between calls, the other inside a slow path.
static void *thread_stand(void *argument) {
    size_t i = (size_t)(uintptr_t)argument;
    void *slot = take(100);
    REQUIRE(slot != NULL);
    stopped[i] = pma_self;
    stood[i] = slot;
    if (i == 1) {
        REQUIRE(pma_arena_enter() == pma_self);
    }
    pthread_barrier_wait(&barrier);
    while (__atomic_load_n(&go_on, __ATOMIC_ACQUIRE) == 0) {
        pma_os_yield();
    }
    if (i == 1) {
        pma_arena_leave(pma_self);
    }
    give(slot);
    return NULL;
}

// In the child the first arena may be had, the second never. Somebody was about to tell the first
// of a free: what no inbox says is found when it is adopted. And somebody held its adoption lock.
static void adopt_in_child(void *argument) {
    (void)argument;
    uint64_t index = slot_index(stood[0]);
    slab_at(stood[0])->run.remote->bits[index / 64] |= (uint64_t)1 << index % 64;
    pma_thread_after_fork();
    CHECK(slot_is_live(stood[0]));
    CHECK_EQ(stopped[0]->idle, 1);
    CHECK_EQ(stopped[1]->idle, 0);
    size_t idle = tally_take().idle;
    CHECK_EQ(pma_self->idle, 0);
    // The forking thread's own arena goes on.
    give(take(100));
    bool met = false;
    pma_self = &pma_nobody;
    for (size_t i = 0; i < idle + 3; i++) {
        struct arena *arena = pma_arena_enter();
        REQUIRE(arena != NULL);
        CHECK(arena != stopped[1]);
        met = met || arena == stopped[0];
        CHECK(arena_take(arena, 100) != NULL);
        pma_arena_leave(arena);
        arena_check(arena);
        pma_self = &pma_nobody;
    }
    CHECK(met);
    struct run *run = pagemap_find((uintptr_t)stood[0]);
    CHECK(run == NULL || run_kind(run) != RUN_SLAB || !slot_is_live(stood[0]));
}

static void check_fork(void) {
    pthread_t threads[2];
    give(take(100));
    go_on = 0;
    REQUIRE(pthread_barrier_init(&barrier, NULL, 3) == 0);
    for (uintptr_t i = 0; i < 2; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, thread_stand, (void *)i) == 0);
    }
    pthread_barrier_wait(&barrier);
    // Not by this thread, which takes others on its way through fork.
    __atomic_store_n(&stopped[0]->adoption.state, 1, __ATOMIC_RELAXED);
    struct child_end end = run_child(adopt_in_child, NULL, 20);
    __atomic_store_n(&stopped[0]->adoption.state, 0, __ATOMIC_RELAXED);
    expect_exit(&end, 0, "arenas after fork");
    __atomic_store_n(&go_on, 1, __ATOMIC_RELEASE);
    for (size_t i = 0; i < 2; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
}

// ---- everything at once

#define PLACES 512
#define CROWD 3

static void *places[PLACES]; // atomic; slots that anybody may take and free

// Each short life takes slots, exchanges them for those of others, and frees what it gets.
static void *thread_live(void *argument) {
    struct dice dice = { (uintptr_t)argument };
    for (int round = 0; round < 300; round++) {
        size_t size = 8 + dice_below(&dice, dice_below(&dice, 10) == 0 ? 30000 : 400);
        void *slot = take(size);
        REQUIRE(slot != NULL);
        slot_mark(slot, 8, (uintptr_t)slot);
        void **place = &places[dice_below(&dice, PLACES)];
        slot = __atomic_exchange_n(place, slot, __ATOMIC_ACQ_REL);
        if (slot != NULL) {
            CHECK(slot_has_mark(slot, 8, (uintptr_t)slot));
            give(slot);
        }
    }
    return NULL;
}

static void *thread_beget(void *argument) {
    struct dice dice = { (uintptr_t)argument };
    unsigned lives = 60 / slow_factor() + 3;
    for (unsigned life = 0; life < lives; life++) {
        thread_run(thread_live, (void *)(uintptr_t)dice_draw(&dice));
        if (life % 8 == 0) {
            pma_arena_shrink_idle();
        }
    }
    return NULL;
}

static void check_crowd(uint64_t seed) {
    pthread_t threads[CROWD];
    size_t before = live_bytes();
    for (size_t i = 0; i < CROWD; i++) {
        void *own = (void *)(uintptr_t)(seed + i);
        REQUIRE(pthread_create(&threads[i], NULL, thread_beget, own) == 0);
    }
    for (size_t i = 0; i < CROWD; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    for (size_t i = 0; i < PLACES; i++) {
        if (places[i] != NULL) {
            give(places[i]);
            places[i] = NULL;
        }
    }
    // Nobody shrank anything: the last free of each slab did.
    CHECK_EQ(live_bytes(), before);
    CHECK_EQ(tally_take().busy, 0);
}

int main(void) {
    test_begin(120);
    uint64_t seed = test_seed();
    pma_os_init();
    pma_random_set_seed(seed);
    pma_pageheap_init(2);
    pma_thread_init(2);
    check_nobody();
    check_refused();
    check_enter();
    check_adoption();
    check_side_by_side();
    check_left_behind();
    check_inheritance();
    check_visit();
    check_shrink_idle();
    check_late();
    check_fork();
    check_crowd(seed);
    return test_end();
}

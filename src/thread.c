// thread.c - which arena a thread has: birth, death, adoption.
#include <config.h>

#include "thread.h"

#include "lock.h"
#include "meta.h"
#include "os.h"
#include "region.h"
#include "rest.h"

#include <pthread.h>

struct threads {
    struct lock lock;
    struct arena *all;  // lock to write, atomic to read; by all_next, newest first
    struct arena *idle; // lock; by idle_next
    unsigned count;     // lock; arenas ever made
    unsigned nshards;   // const after init
    pthread_key_t key;  // const after init; its destructor tells that a thread ends
    bool has_key;       // const after init
};

static struct threads threads = { .lock = LOCK_FREE(LOCK_POOL) };

// Whatever the size, a bin whose window is empty.
struct arena pma_nobody = { .small = { [0 ... PMA_FINE_MAX / 16] = &pma_nobody.bins[0] } };
__thread struct arena *pma_self = &pma_nobody;
// The thread's arena was taken from it at its end. What destructors still ask for is served by a
// lent arena.
static __thread bool is_over;

struct lock *pma_thread_lock(void) {
    return &threads.lock;
}

// ---- arenas

// With the first arena, and not when the library starts: a program that allocates nothing is spared
// five calls of the kernel. Without this memory, streams are keyed one by one, and messages know no
// seed.
static void seed_home_ensure(void) {
    lock_lock(&threads.lock);
    if (!pma_random_has_home()) {
        pma_random_set_home(pma_meta_take(META_WIPED, PMA_APART, PMA_APART));
    }
    lock_unlock(&threads.lock);
}

static struct arena *arena_new(void) {
    seed_home_ensure();
    struct stream *stream =
        pma_meta_take(META_WIPED, align_up(sizeof(struct stream), PMA_APART), PMA_APART);
    struct arena *arena =
        stream == NULL ? NULL : pma_meta_take(META_KEPT, sizeof(struct arena), PMA_APART);
    if (arena == NULL) {
        return NULL;
    }
    lock_lock(&threads.lock);
    unsigned number = threads.count++;
    stream->identity = number;
    pma_arena_init(arena, stream, number, number % threads.nshards);
    arena->all_next = threads.all;
    __atomic_store_n(&threads.all, arena, __ATOMIC_RELEASE);
    lock_unlock(&threads.lock);
    if (number > 0) {
        pma_region_share();
    }
    return arena;
}

static struct arena *pool_take(void) {
    lock_lock(&threads.lock);
    struct arena *arena = threads.idle;
    if (arena != NULL) {
        threads.idle = arena->idle_next;
    }
    lock_unlock(&threads.lock);
    return arena;
}

static void pool_give(struct arena *arena) {
    lock_lock(&threads.lock);
    arena->idle_next = threads.idle;
    threads.idle = arena;
    lock_unlock(&threads.lock);
}

static void recount_if_due(struct arena *arena) {
    if (unlikely(arena->recount != 0)) {
        arena->recount = 0;
        pma_arena_recount(arena);
    }
}

// From here on only the calling thread drains it.
static struct arena *arena_adopt(void) {
    struct arena *arena = pool_take();
    if (arena == NULL) {
        arena = arena_new();
    }
    if (arena == NULL) {
        return NULL;
    }
    lock_lock(&arena->adoption);
    __atomic_store_n(&arena->idle, 0, __ATOMIC_SEQ_CST);
    lock_unlock(&arena->adoption);
    arena->busy = 1;
    recount_if_due(arena);
    return arena;
}

// Idle, and then a last look: whoever pushed before it was idle left the draining to its thread.
static void arena_abandon(struct arena *arena) {
    lock_lock(&arena->adoption);
    __atomic_store_n(&arena->idle, 1, __ATOMIC_SEQ_CST);
    pma_arena_drain(arena);
    arena->busy = 0;
    lock_unlock(&arena->adoption);
    pma_arena_visit(arena);
    pool_give(arena);
}

void pma_arena_visit(struct arena *arena) {
    while (__atomic_load_n(&arena->idle, __ATOMIC_SEQ_CST) != 0 && !inbox_is_empty(&arena->inbox) &&
           lock_try(&arena->adoption)) {
        if (__atomic_load_n(&arena->idle, __ATOMIC_SEQ_CST) != 0) {
            arena->busy = 1;
            pma_arena_drain(arena);
            arena->busy = 0;
        }
        lock_unlock(&arena->adoption);
    }
}

// ---- threads

static void thread_end(void *context) {
    struct arena *arena = context;
    pma_self = &pma_nobody;
    is_over = true;
    arena->busy = 1;
    pma_arena_rest(arena);
    arena_abandon(arena);
}

void pma_thread_init(unsigned nshards) {
    threads.nshards = nshards;
    threads.has_key = pthread_key_create(&threads.key, thread_end) == 0;
}

// pthread_setspecific may allocate for a key that is not among the first: the arena is bound
// before.
struct arena *pma_arena_enter_bound(void) {
    struct arena *arena = arena_adopt();
    if (arena == NULL || is_over) {
        return arena;
    }
    pma_self = arena;
    arena->clock_skip = PMA_CLOCK_FIRST;
    if (threads.has_key) {
        pthread_setspecific(threads.key, arena);
        arena->busy = 1;
    }
    return arena;
}

struct arena *pma_arena_enter(void) {
    struct arena *arena = pma_self;
    if (unlikely(arena == &pma_nobody)) {
        return pma_arena_enter_bound();
    }
    arena->busy = 1;
    recount_if_due(arena);
    return arena;
}

void pma_arena_leave(struct arena *arena) {
    arena->busy = 0;
    if (unlikely(arena != pma_self)) {
        arena->busy = 1;
        pma_arena_rest(arena);
        arena_abandon(arena);
    }
}

// ---- all of them

static struct arena *arenas_first(void) {
    return __atomic_load_n(&threads.all, __ATOMIC_ACQUIRE);
}

void pma_arena_walk(void (*visit)(struct arena *arena, void *context), void *context) {
    for (struct arena *arena = arenas_first(); arena != NULL; arena = arena->all_next) {
        visit(arena, context);
    }
}

size_t pma_arena_shrink_idle(void) {
    size_t sum = 0;
    for (struct arena *arena = arenas_first(); arena != NULL; arena = arena->all_next) {
        if (__atomic_load_n(&arena->idle, __ATOMIC_SEQ_CST) == 0 || !lock_try(&arena->adoption)) {
            continue;
        }
        if (__atomic_load_n(&arena->idle, __ATOMIC_SEQ_CST) != 0) {
            arena->busy = 1;
            sum += pma_arena_shrink(arena);
            arena->busy = 0;
        }
        lock_unlock(&arena->adoption);
        pma_arena_visit(arena);
    }
    return sum;
}

// A wiped stream has lost which one of the process it is, by which streams of one seed differ.
static void stream_after_fork(struct arena *arena) {
    if (!pma_meta_is_wiped()) {
        pma_stream_forget(arena->stream);
    }
    arena->stream->identity = arena->number;
}

void pma_thread_after_fork_alone(void) {
    for (struct arena *arena = arenas_first(); arena != NULL; arena = arena->all_next) {
        stream_after_fork(arena);
    }
}

// The pool is built anew: its lock may have been held by a thread that is gone. An arena that was
// inside a slow path is in an unknown state: what is freed into it is only marked, and nobody uses
// it again.
void pma_thread_after_fork(void) {
    threads.idle = NULL;
    pma_remote_after_fork();
    for (struct arena *arena = arenas_first(); arena != NULL; arena = arena->all_next) {
        pma_lock_reset(&arena->adoption);
        stream_after_fork(arena);
        // The forking thread's own too, unless there never was another thread to free into it.
        arena->recount |= threads.count > 1;
        pma_inbox_after_fork(&arena->inbox);
        if (arena == pma_self || arena->busy != 0) {
            continue;
        }
        __atomic_store_n(&arena->idle, 1, __ATOMIC_SEQ_CST);
        arena->idle_next = threads.idle;
        threads.idle = arena;
    }
}

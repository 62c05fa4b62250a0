// lock.c - waiting for a lock, and the order of locks in the test build.
//
// Owns the number of processors, and in the test build the list of locks that each thread holds. It
// must not know what a lock guards.
#include <config.h>

#include "base.h"
#include "fatal.h"
#include "lock.h"
#include "os.h"

// What a lock guards takes some tens of nanoseconds; a sleep and a wake take some thousands. A
// hundred pauses lie between the two.
#define SPIN_ROUNDS 100

static uint32_t processors; // atomic; 0 until it is known, const after it

// ---- the order, checked in the test build

#if PMA_TEST

// Fork holds a lock for every arena; those beyond the list are only counted.
#define HELD_MAX 256

struct held {
    size_t listed;
    size_t beyond;
    const struct lock *locks[HELD_MAX];
};

// Initial-exec, since the other models may allocate at the first use in a thread.
static _Thread_local struct held held
    __attribute__((tls_model("initial-exec"))); // owner: the thread

static _Noreturn void lock_fatal(const char *what, const struct lock *lock) {
    pma_fatal("lock", what,
              (struct fatal_block){ .pointer = lock, .size = lock->rank, .slot = -1 });
}

static void refuse_double(const struct lock *lock) {
    for (size_t i = 0; i < held.listed; i++) {
        if (held.locks[i] == lock) {
            lock_fatal("lock taken twice", lock);
        }
    }
}

void pma_lock_note(const struct lock *lock) {
    refuse_double(lock);
    for (size_t i = 0; i < held.listed; i++) {
        const struct lock *other = held.locks[i];
        if (other->rank > lock->rank ||
            (other->rank == lock->rank && (uintptr_t)other > (uintptr_t)lock)) {
            lock_fatal("lock taken out of order", lock);
        }
    }
    if (held.listed < HELD_MAX) {
        held.locks[held.listed++] = lock;
    } else {
        held.beyond++;
    }
}

// Locks may be let go in any order.
static bool held_remove(const struct lock *lock) {
    for (size_t i = held.listed; i-- > 0;) {
        if (held.locks[i] == lock) {
            held.locks[i] = held.locks[--held.listed];
            return true;
        }
    }
    if (held.beyond > 0) {
        held.beyond--;
        return true;
    }
    return false;
}

void pma_unlock_note(const struct lock *lock) {
    if (!held_remove(lock)) {
        lock_fatal("lock let go that is not held", lock);
    }
}

bool pma_lock_none_held(void) {
    return held.listed == 0 && held.beyond == 0;
}

#else

static void refuse_double(const struct lock *lock) {
    (void)lock;
}

static bool held_remove(const struct lock *lock) {
    (void)lock;
    return false;
}

#endif

// ---- waiting

__thread const struct lock *pma_lock_between;

// A signal's handler that calls malloc in the middle of malloc would wait for itself, and all who
// want the lock would wait with it. So it is told, and ends.
static void refuse_self(const struct lock *lock, const struct lock *outer) {
    uintptr_t owner = __atomic_load_n(&lock->owner, __ATOMIC_RELAXED);
    if (owner == (uintptr_t)&pma_lock_between || outer == lock) {
        pma_fatal("malloc", "called inside itself", (struct fatal_block){ NULL, 0, -1 });
    }
}

static void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#else
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
#endif
}

void pma_lock_know_processors(unsigned count) {
    __atomic_store_n(&processors, count, __ATOMIC_RELAXED);
}

// With a single processor the holder cannot let go while we spin.
static bool spinning_helps(void) {
    uint32_t count = __atomic_load_n(&processors, __ATOMIC_RELAXED);
    if (count == 0) {
        count = pma_os_processors();
        __atomic_store_n(&processors, count, __ATOMIC_RELAXED);
    }
    return count > 1;
}

static bool lock_spin(struct lock *lock) {
    for (unsigned i = 0; i < SPIN_ROUNDS; i++) {
        uint32_t state = __atomic_load_n(&lock->state, __ATOMIC_RELAXED);
        if (state == 0 && __atomic_compare_exchange_n(&lock->state, &state, 1, false,
                                                      __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            return true;
        }
        pause_briefly();
    }
    return false;
}

// Whoever has slept takes the lock as held with sleepers, and then looks whether there are any
// left: a wake for nobody costs as much as one for somebody. A thread counts itself before it
// writes 2: so either its 2 comes after the 1 written here, or its count is seen.
PMA_SLOW void pma_lock_slow(struct lock *lock, const struct lock *outer) {
    refuse_double(lock);
    refuse_self(lock, outer);
    __atomic_fetch_add(&lock->contended, 1, __ATOMIC_RELAXED);
    if (spinning_helps() && lock_spin(lock)) {
        return;
    }
    __atomic_fetch_add(&lock->sleepers, 1, __ATOMIC_SEQ_CST);
    while (__atomic_exchange_n(&lock->state, 2, __ATOMIC_SEQ_CST) != 0) {
        pma_os_wait(&lock->state, 2);
    }
    if (__atomic_sub_fetch(&lock->sleepers, 1, __ATOMIC_SEQ_CST) == 0) {
        __atomic_exchange_n(&lock->state, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&lock->sleepers, __ATOMIC_SEQ_CST) != 0) {
            __atomic_store_n(&lock->state, 2, __ATOMIC_RELAXED);
        }
    }
}

PMA_SLOW void pma_unlock_slow(struct lock *lock) {
    pma_os_wake(&lock->state);
}

void pma_lock_init(struct lock *lock, enum lock_rank rank) {
    *lock = (struct lock)LOCK_FREE(rank);
}

void pma_lock_reset(struct lock *lock) {
    held_remove(lock);
    __atomic_store_n(&lock->sleepers, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&lock->owner, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&lock->state, 0, __ATOMIC_RELEASE);
}

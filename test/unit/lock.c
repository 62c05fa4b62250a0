// lock.c - one holder at a time, sleepers are woken, and a wrong order is told.
#include <config.h>

#include "base.h"
#include "harness.h"
#include "lock.h"
#include "os.h"

#include <pthread.h>

#define THREADS 4

static struct lock low = LOCK_FREE(LOCK_POOL);
static struct lock high = LOCK_FREE(LOCK_META);
static struct lock row[3] = { LOCK_FREE(LOCK_SHARD), LOCK_FREE(LOCK_SHARD), LOCK_FREE(LOCK_SHARD) };

static uint32_t state_of(const struct lock *lock) {
    return __atomic_load_n(&lock->state, __ATOMIC_SEQ_CST);
}

// ---- one thread

static void check_states(void) {
    struct lock lock;
    memset(&lock, 0xff, sizeof(lock));
    pma_lock_init(&lock, LOCK_HUGE);
    CHECK_EQ(lock.state, 0);
    CHECK_EQ(lock.rank, LOCK_HUGE);
    CHECK_EQ(lock.contended, 0);
    CHECK(pma_lock_none_held());
    lock_lock(&lock);
    CHECK_EQ(lock.state, 1);
    CHECK(!pma_lock_none_held());
    lock_unlock(&lock);
    CHECK_EQ(lock.state, 0);
    CHECK(pma_lock_none_held());
    CHECK(lock_try(&lock));
    CHECK_EQ(lock.state, 1);
    lock_unlock(&lock);
    CHECK_EQ(lock.contended, 0);
}

static void *thread_try(void *argument) {
    return lock_try(argument) ? argument : NULL;
}

static void check_try_of_a_held_lock(void) {
    pthread_t thread;
    void *got = &low;
    lock_lock(&low);
    REQUIRE(pthread_create(&thread, NULL, thread_try, &low) == 0);
    REQUIRE(pthread_join(thread, &got) == 0);
    CHECK(got == NULL);
    lock_unlock(&low);
}

// ---- the order

static void take_in_order(void) {
    lock_lock(&low);
    for (int i = 0; i < 3; i++) {
        lock_lock(&row[i]);
    }
    lock_lock(&high);
}

static void take_down(void *argument) {
    (void)argument;
    lock_lock(&high);
    lock_lock(&low);
}

static void take_down_by_try(void *argument) {
    (void)argument;
    lock_lock(&high);
    (void)lock_try(&low);
}

static void take_row_down(void *argument) {
    (void)argument;
    lock_lock(&row[2]);
    lock_lock(&row[1]);
}

static void take_twice(void *argument) {
    (void)argument;
    take_in_order();
    lock_lock(&row[1]);
}

static void leave_unheld(void *argument) {
    (void)argument;
    lock_lock(&low);
    lock_unlock(&high);
}

static void leave_twice(void *argument) {
    (void)argument;
    lock_lock(&low);
    lock_unlock(&low);
    lock_unlock(&low);
}

static void check_order(void) {
    take_in_order();
    lock_unlock(&low);
    lock_unlock(&row[1]);
    lock_unlock(&high);
    CHECK(!pma_lock_none_held());
    lock_unlock(&row[0]);
    lock_unlock(&row[2]);
    CHECK(pma_lock_none_held());
    take_in_order();
    lock_unlock(&high);
    for (int i = 2; i >= 0; i--) {
        lock_unlock(&row[i]);
    }
    lock_unlock(&low);
    CHECK(pma_lock_none_held());

    expect_abort(take_down, NULL, "lock(): lock taken out of order: 0x");
    expect_abort(take_down_by_try, NULL, "lock(): lock taken out of order: 0x");
    expect_abort(take_row_down, NULL, "lock(): lock taken out of order: 0x");
    expect_abort(take_twice, NULL, "lock(): lock taken twice: 0x");
    expect_abort(leave_unheld, NULL, "lock(): lock let go that is not held: 0x");
    expect_abort(leave_twice, NULL, "lock(): lock let go that is not held: 0x");
}

// More locks at once than the test build lists: they are counted, and come back to none.
static void check_many(void) {
    static struct lock many[1000];
    for (size_t i = 0; i < 1000; i++) {
        pma_lock_init(&many[i], LOCK_ADOPTION);
        lock_lock(&many[i]);
    }
    CHECK(!pma_lock_none_held());
    for (size_t i = 0; i < 1000; i++) {
        lock_unlock(&many[i]);
    }
    CHECK(pma_lock_none_held());
}

// ---- several threads

static struct {
    struct lock lock;
    uint64_t count; // guarded by lock
    uint64_t pairs; // guarded by lock; must stay twice the count
    uint64_t rounds;
} shared = { .lock = LOCK_FREE(LOCK_SHARD) };

static void *thread_count(void *argument) {
    struct dice dice = { (uint64_t)(uintptr_t)argument };
    for (uint64_t i = 0; i < shared.rounds; i++) {
        unsigned die = (unsigned)dice_below(&dice, 64);
        if (die != 1) {
            lock_lock(&shared.lock);
        } else if (!lock_try(&shared.lock)) {
            i--;
            continue;
        }
        shared.count++;
        // Now and then the holder is off the processor, and the others must go to sleep.
        if (die == 0) {
            pma_os_yield();
        }
        shared.pairs += 2;
        if (shared.pairs != 2 * shared.count) {
            CHECK_EQ(shared.pairs, 2 * shared.count);
        }
        lock_unlock(&shared.lock);
    }
    CHECK(pma_lock_none_held());
    return NULL;
}

static void check_exclusion(void) {
    pthread_t threads[THREADS];
    shared.rounds = 200000 / slow_factor();
    for (uintptr_t i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, thread_count, (void *)(i + 1)) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    CHECK_EQ(shared.count, THREADS * shared.rounds);
    CHECK_EQ(state_of(&shared.lock), 0);
    CHECK(shared.lock.contended > 0);
    CHECK_AT_MOST(shared.lock.contended, shared.count);
}

// ---- sleep

static struct lock held = LOCK_FREE(LOCK_HUGE);
static uint32_t awake; // atomic; waiters that got the lock

static uint64_t thread_time(void) {
    struct timespec now;
    REQUIRE(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *thread_wait(void *argument) {
    (void)argument;
    uint64_t start = thread_time();
    lock_lock(&held);
    __atomic_fetch_add(&awake, 1, __ATOMIC_SEQ_CST);
    uint64_t used = thread_time() - start;
    lock_unlock(&held);
    // It slept for 200 ms; four that spin would use 50 ms each, even of a single processor.
    CHECK_AT_MOST(used, 25000000u * slow_factor());
    return NULL;
}

static void sleep_ms(unsigned ms) {
    struct timespec rest = { ms / 1000, (long)(ms % 1000) * 1000000 };
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
    }
}

static void signal_nothing(int number) {
    (void)number;
}

// Waiters sleep, are not let in by a signal, and are all woken, one after the other.
static void check_sleep(void) {
    pthread_t threads[THREADS];
    struct sigaction action = { .sa_handler = signal_nothing };
    REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
    lock_lock(&held);
    for (int i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, thread_wait, NULL) == 0);
    }
    while (__atomic_load_n(&held.sleepers, __ATOMIC_SEQ_CST) != THREADS || state_of(&held) != 2) {
        sleep_ms(1);
    }
    for (int round = 0; round < 20; round++) {
        sleep_ms(10);
        for (int i = 0; i < THREADS; i++) {
            REQUIRE(pthread_kill(threads[i], SIGUSR1) == 0);
        }
    }
    CHECK_EQ(__atomic_load_n(&awake, __ATOMIC_SEQ_CST), 0);
    CHECK_EQ(state_of(&held), 2);
    lock_unlock(&held);
    for (int i = 0; i < THREADS; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    CHECK_EQ(awake, THREADS);
    CHECK_EQ(state_of(&held), 0);
    CHECK_EQ(held.contended, THREADS);
    CHECK_EQ(held.sleepers, 0);
}

// ---- fork

static void reset_in_child(void *argument) {
    (void)argument;
    pma_lock_reset(&high);
    pma_lock_reset(&low);
    CHECK(pma_lock_none_held());
    CHECK_EQ(state_of(&high), 0);
    CHECK_EQ(state_of(&low), 0);
    CHECK_EQ(high.sleepers, 0);
    lock_lock(&low);
    lock_lock(&high);
    lock_unlock(&high);
    lock_unlock(&low);
}

// A child resets what the parent's thread held, as the fork handlers do, and what another held.
static void check_reset(void) {
    lock_lock(&low);
    high.state = 2;
    high.sleepers = 3;
    struct child_end end = run_child(reset_in_child, NULL, 20);
    expect_exit(&end, 0, "locks of the child are free");
    high.state = 0;
    high.sleepers = 0;
    lock_unlock(&low);
}

int main(void) {
    test_begin(120);
    check_states();
    check_try_of_a_held_lock();
    check_order();
    check_many();
    check_exclusion();
    check_sleep();
    check_reset();
    return test_end();
}

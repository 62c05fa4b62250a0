// Do threads leave nothing behind: short ones in storms, ones that only free, ones that are
// cancelled, pairs that hand blocks on, and hundreds that wait with nothing to do?
#include "../figures.h"
#include "../work.h"

#include <pthread.h>
#include <semaphore.h>

// ---- storms of threads that leave blocks for others to free

enum { ALIVE = 8, LEFT = 40 };

struct short_life {
    pthread_t thread;
    uint64_t seed;
    void *left[LEFT];
};

static void *live_shortly(void *argument) {
    struct short_life *life = (struct short_life *)argument;
    struct dice dice = { life->seed };
    for (size_t i = 0; i < LEFT; i++) {
        life->left[i] = hide(malloc((size_t)16 << dice_below(&dice, 11)));
        REQUIRE(life->left[i] != NULL);
        *(char *)life->left[i] = 1;
        free(hide(malloc(dice_below(&dice, 3000))));
    }
    return NULL;
}

// What each leaves is freed after its end, by the main thread and by threads that came later.
static void storm(size_t count) {
    static struct short_life lives[ALIVE];
    for (size_t done = 0; done < count; done += ALIVE) {
        for (size_t i = 0; i < ALIVE; i++) {
            lives[i].seed = done + i;
            REQUIRE(pthread_create(&lives[i].thread, NULL, live_shortly, &lives[i]) == 0);
        }
        for (size_t i = 0; i < ALIVE; i++) {
            REQUIRE(pthread_join(lives[i].thread, NULL) == 0);
        }
        for (size_t i = 0; i < ALIVE * LEFT; i++) {
            free(hide(lives[i % ALIVE].left[i / ALIVE]));
        }
    }
}

static void ten_thousand_threads_cost_what_ten_do(void) {
    storm(ALIVE * 2);
    long rss = rss_kib();
    long size = status_kib("VmSize:");
    storm(10000);
    // Up to 4 MiB of what was freed may wait for a second to be used again.
    CHECK_AT_MOST(rss_kib() - rss, 4096 + 1024);
    CHECK_AT_MOST(status_kib("VmSize:") - size, 32 * 1024);
    (void)malloc_trim(0);
    CHECK_AT_MOST(rss_kib() - rss, 1024);
}

// ---- blocks that travel through a ring, to a thread that only frees

enum { RING = 4096 };

struct ring {
    void *blocks[RING];
    sem_t full;
    sem_t empty;
    size_t put; // producers, by their lock
    size_t got; // one consumer, or by their lock
    pthread_mutex_t lock;
};

static void ring_init(struct ring *ring) {
    memset(ring, 0, sizeof(*ring));
    REQUIRE(sem_init(&ring->full, 0, 0) == 0 && sem_init(&ring->empty, 0, RING) == 0);
    REQUIRE(pthread_mutex_init(&ring->lock, NULL) == 0);
}

static void ring_put(struct ring *ring, void *block) {
    while (sem_wait(&ring->empty) != 0) {
    }
    (void)pthread_mutex_lock(&ring->lock);
    ring->blocks[ring->put++ % RING] = block;
    (void)pthread_mutex_unlock(&ring->lock);
    (void)sem_post(&ring->full);
}

static void *ring_get(struct ring *ring) {
    while (sem_wait(&ring->full) != 0) {
    }
    (void)pthread_mutex_lock(&ring->lock);
    void *block = ring->blocks[ring->got++ % RING];
    (void)pthread_mutex_unlock(&ring->lock);
    (void)sem_post(&ring->empty);
    return block;
}

static struct ring ring;
static long highest_rss;

static void note_rss(void) {
    long rss = rss_kib();
    highest_rss = rss > highest_rss ? rss : highest_rss;
}

static void *only_free(void *unused) {
    for (void *block; (block = ring_get(&ring)) != NULL;) {
        free(block);
    }
    return unused;
}

static void *produce(void *argument) {
    struct dice dice = { (uint64_t)(uintptr_t)argument };
    for (size_t i = 0; i < 300000; i++) {
        size_t size = 16 + dice_below(&dice, 4080);
        char *block = (char *)hide(malloc(size));
        REQUIRE(block != NULL);
        block[0] = 1;
        block[size - 1] = 1;
        ring_put(&ring, block);
        if (i % 30000 == 0) {
            note_rss();
        }
    }
    return NULL;
}

// Generations of producers end, one or two consumers go on.
static void producers_and_consumers(size_t consumers) {
    pthread_t producer;
    pthread_t threads[2];
    ring_init(&ring);
    long before = rss_kib();
    highest_rss = 0;
    for (size_t i = 0; i < consumers; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, only_free, NULL) == 0);
    }
    for (uintptr_t generation = 1; generation <= 4; generation++) {
        REQUIRE(pthread_create(&producer, NULL, produce, (void *)generation) == 0);
        REQUIRE(pthread_join(producer, NULL) == 0);
    }
    for (size_t i = 0; i < consumers; i++) {
        ring_put(&ring, NULL);
    }
    for (size_t i = 0; i < consumers; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    CHECK_AT_MOST(highest_rss - before, 32 * 1024);
}

// ---- two threads replace blocks of a live set, a third one frees the old ones

enum { SET = 44000, OBJECT = 592 };

static void *replace(void *argument) {
    static void *sets[2][SET];
    size_t number = (size_t)(uintptr_t)argument;
    struct dice dice = { number + 1 };
    for (size_t i = 0; i < SET; i++) {
        sets[number][i] = hide(malloc(OBJECT));
        memset(sets[number][i], 1, OBJECT);
    }
    for (size_t i = 0; i < 600000; i++) {
        size_t at = dice_below(&dice, SET);
        ring_put(&ring, sets[number][at]);
        sets[number][at] = hide(malloc(OBJECT));
        memset(sets[number][at], 1, 64);
        if (i % 50000 == 0) {
            note_rss();
        }
    }
    for (size_t i = 0; i < SET; i++) {
        free(sets[number][i]);
    }
    return NULL;
}

static void a_thread_that_only_frees(void) {
    pthread_t threads[2];
    pthread_t reclaimer;
    ring_init(&ring);
    long before = rss_kib();
    highest_rss = 0;
    REQUIRE(pthread_create(&reclaimer, NULL, only_free, NULL) == 0);
    for (uintptr_t i = 0; i < 2; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, replace, (void *)i) == 0);
    }
    for (int i = 0; i < 2; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    ring_put(&ring, NULL);
    REQUIRE(pthread_join(reclaimer, NULL) == 0);
    size_t live_kib = (size_t)2 * SET * OBJECT / 1024;
    CHECK_AT_MOST(highest_rss - before, live_kib * 16 / 10);
}

// ---- threads that are cancelled, at the points where that may happen

static void *work_for_ever(void *seed) {
    struct dice dice = { (uint64_t)(uintptr_t)seed };
    for (;;) {
        void *block = hide(malloc(dice_below(&dice, 60000)));
        free(hide(realloc(block, dice_below(&dice, 60000) + 1)));
        pthread_testcancel();
    }
    return NULL;
}

static void cancelled(size_t count) {
    for (size_t i = 0; i < count; i++) {
        pthread_t thread;
        void *result = NULL;
        REQUIRE(pthread_create(&thread, NULL, work_for_ever, (void *)i) == 0);
        if (i % 3 == 0) {
            (void)sched_yield();
        }
        REQUIRE(pthread_cancel(thread) == 0);
        REQUIRE(pthread_join(thread, &result) == 0);
        CHECK(result == PTHREAD_CANCELED);
    }
}

static void cancelled_threads_leave_nothing(void) {
    cancelled(200);
    long before = rss_kib();
    cancelled(2000);
    CHECK_AT_MOST(rss_kib() - before, 2048);
}

// ---- threads that have worked and now wait

enum { IDLE = 300 };

static pthread_barrier_t idle_ready;
static pthread_barrier_t idle_end;

static void *work_then_wait(void *argument) {
    struct dice dice = { (uint64_t)(uintptr_t)argument };
    void *held[64] = { NULL };
    for (size_t total = 0; total < 2 << 20;) {
        size_t at = dice_below(&dice, 64);
        size_t size = (size_t)16 << dice_below(&dice, 12);
        free(held[at]);
        held[at] = hide(malloc(size));
        memset(held[at], 1, size);
        total += size;
    }
    for (size_t i = 0; i < 64; i++) {
        free(held[i]);
    }
    (void)pthread_barrier_wait(&idle_ready);
    (void)pthread_barrier_wait(&idle_end);
    return NULL;
}

// A stack page or three of each thread stay resident as well.
static void waiting_threads_hold_little(void) {
    static pthread_t threads[IDLE];
    REQUIRE(pthread_barrier_init(&idle_ready, NULL, IDLE + 1) == 0);
    REQUIRE(pthread_barrier_init(&idle_end, NULL, IDLE + 1) == 0);
    long before = rss_kib();
    for (uintptr_t i = 0; i < IDLE; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, work_then_wait, (void *)i) == 0);
    }
    (void)pthread_barrier_wait(&idle_ready);
    long waiting = rss_kib() - before;
    (void)malloc_trim(0);
    long trimmed = rss_kib() - before;
    say("%d waiting threads: %ld KiB each, %ld after a trim\n", IDLE, waiting / IDLE,
        trimmed / IDLE);
    CHECK_AT_MOST(waiting / IDLE, 12 + 320);
    CHECK_AT_MOST(trimmed / IDLE, 12 + 320);
    (void)pthread_barrier_wait(&idle_end);
    for (int i = 0; i < IDLE; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
}

int main(void) {
    api_begin(150);
    ten_thousand_threads_cost_what_ten_do();
    cancelled_threads_leave_nothing();
    waiting_threads_hold_little();
    producers_and_consumers(1);
    producers_and_consumers(2);
    a_thread_that_only_frees();
    return test_end();
}

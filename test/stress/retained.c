// What does a program keep that has freed much: at rest, after a burst, with a few survivors, with
// many threads that took turns, after days of rebuilding?
#include "../figures.h"

#include <malloc.h>
#include <pthread.h>

enum { MIB = 1024 }; // in KiB, as procfs has it

static void *get(size_t size) {
    char *block = (char *)hide(malloc(size));
    REQUIRE(block != NULL);
    // A byte on each page makes it resident.
    for (size_t at = 0; at < size; at += 4096) {
        block[at] = 1;
    }
    block[size - 1] = 1;
    return block;
}

static size_t log_uniform(struct dice *dice, size_t least, size_t doublings) {
    size_t low = least << dice_below(dice, doublings);
    return low + dice_below(dice, low);
}

static void shuffle(struct dice *dice, void **blocks, size_t count) {
    for (size_t i = count; i > 1; i--) {
        size_t k = dice_below(dice, i);
        void *block = blocks[k];
        blocks[k] = blocks[i - 1];
        blocks[i - 1] = block;
    }
}

// ---- a burst, then rest: nobody calls the heap any more

enum { BURST = 200 * 1024 };

static void *burst[BURST];

static void *free_burst(void *unused) {
    for (size_t i = 0; i < BURST; i++) {
        free(burst[i]);
    }
    return unused;
}

static void rest_after_a_burst(void *by_another) {
    long before = rss_kib();
    for (size_t i = 0; i < BURST; i++) {
        burst[i] = get(1024);
    }
    long peak = rss_kib();
    CHECK(peak - before >= 200 * MIB);
    if (by_another != NULL) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, free_burst, NULL) == 0);
        REQUIRE(pthread_join(thread, NULL) == 0);
    } else {
        (void)free_burst(NULL);
    }
    say("a burst of 200 MiB leaves %ld KiB\n", rss_kib() - before);
    CHECK_AT_MOST(rss_kib() - before, peak / 10);
    // Pages that are only marked as free still count as resident.
    CHECK_EQ(proc_number("/proc/self/smaps_rollup", "LazyFree:"), 0);
    (void)malloc_trim(0);
    CHECK_AT_MOST(rss_kib() - before, 8 * MIB);
}

// What may stay for a while goes when a second has passed and somebody calls.
static void a_second_later(void *unused) {
    (void)unused;
    long before = rss_kib();
    for (size_t i = 0; i < 20000; i++) {
        burst[i] = get(1024);
    }
    for (size_t i = 0; i < 20000; i++) {
        free(burst[i]);
    }
    for (size_t i = 0; i < 250; i++) {
        (void)usleep(10 * 1000);
        for (size_t k = 0; k < 100; k++) {
            free(hide(malloc(1 + (i + k) % 2000)));
        }
    }
    say("20 MiB leave %ld KiB after some calls in 2.5 s\n", rss_kib() - before);
    CHECK_AT_MOST(rss_kib() - before, 2 * MIB);
}

// ---- many threads on few processors, one at work at a time

enum { TURNS = 64, ROUNDS = 3 };

static pthread_barrier_t turn_over;
static pthread_mutex_t token = PTHREAD_MUTEX_INITIALIZER;

static void *take_turns(void *argument) {
    struct dice dice = { (uint64_t)(uintptr_t)argument };
    static void *blocks[20000];
    for (size_t round = 0; round < ROUNDS; round++) {
        (void)pthread_mutex_lock(&token);
        size_t count = 0;
        for (size_t total = 0; total < 8 << 20;) {
            size_t size = log_uniform(&dice, 64, 10);
            blocks[count++] = get(size);
            total += size;
        }
        for (size_t i = 0; i < count; i++) {
            free(blocks[i]);
        }
        (void)pthread_mutex_unlock(&token);
    }
    (void)pthread_barrier_wait(&turn_over);
    (void)pthread_barrier_wait(&turn_over);
    return NULL;
}

static void threads_that_took_turns(void *unused) {
    pthread_t threads[TURNS];
    (void)unused;
    long before = rss_kib();
    REQUIRE(pthread_barrier_init(&turn_over, NULL, TURNS + 1) == 0);
    for (uintptr_t i = 0; i < TURNS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, take_turns, (void *)i) == 0);
    }
    (void)pthread_barrier_wait(&turn_over);
    say("64 threads that took turns hold %ld KiB\n", rss_kib() - before);
    // Each idle thread keeps the current slab of each class that it used.
    CHECK_AT_MOST(rss_kib() - before, 360 * MIB);
    (void)pthread_barrier_wait(&turn_over);
    for (size_t i = 0; i < TURNS; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
}

// ---- requests with a few survivors: one in a hundred lives ten rounds longer

enum { REQUESTS = 40000, GENERATIONS = 10 };

struct requests {
    size_t least;
    size_t doublings;
    size_t count; // a round
};

static void one_round(const struct requests *requests, struct dice *dice, void **kept) {
    static void *blocks[REQUESTS];
    for (size_t i = 0; i < requests->count; i++) {
        blocks[i] = get(log_uniform(dice, requests->least, requests->doublings));
    }
    shuffle(dice, blocks, requests->count);
    for (size_t i = 0; i < requests->count; i++) {
        if (i < requests->count / 100) {
            free(kept[i]);
            kept[i] = blocks[i];
        } else {
            free(blocks[i]);
        }
    }
}

// No allocator can give back a page on which a survivor is: of sizes below a page nearly all of
// them stay (glibc 76 MiB, jemalloc 84, mimalloc 85, tcmalloc 90 of 66 MiB a round when this was
// calibrated), so that only growth is judged. From a page on the free slots' pages can go back.
static void few_survivors(void *argument) {
    const struct requests *requests = (const struct requests *)argument;
    static void *kept[GENERATIONS][REQUESTS / 100];
    struct dice dice = { 3 };
    long before = rss_kib();
    long at_twenty = 0;
    for (size_t round = 0; round < 30; round++) {
        one_round(requests, &dice, kept[round % GENERATIONS]);
        at_twenty = round == 20 ? rss_kib() - before : at_twenty;
    }
    size_t pages = 0;
    for (size_t i = 0; i < GENERATIONS * requests->count / 100; i++) {
        size_t per_round = requests->count / 100;
        pages += (malloc_usable_size(kept[i / per_round][i % per_round]) + 4095) / 4096;
    }
    long now = rss_kib() - before;
    say("survivors on %zu KiB of pages keep %ld KiB, %ld ten rounds before\n", pages * 4, now,
        at_twenty);
    CHECK_AT_MOST(now, at_twenty * 11 / 10 + MIB);
    if (requests->least >= 4096) {
        CHECK_AT_MOST(now, pages * 4 * 14 + 4 * MIB);
    }
}

// ---- large and small in turn, all freed, in three orders

enum { PAIRS = 1500 };

static void interleaved_sizes(void *unused) {
    static void *blocks[2 * PAIRS];
    struct dice dice = { 4 };
    (void)unused;
    free(get(100));
    long before = rss_kib();
    long mappings = count_mappings();
    for (size_t round = 0; round < 12; round++) {
        for (size_t i = 0; i < 2 * PAIRS; i++) {
            blocks[i] = get(i % 2 == 0 ? 128 << 10 : 512);
        }
        if (round % 3 == 2) {
            shuffle(&dice, blocks, 2 * PAIRS);
        }
        for (size_t i = 0; i < 2 * PAIRS; i++) {
            free(blocks[round % 3 == 1 ? 2 * PAIRS - 1 - i : i]);
        }
        // 16 MiB of what was freed may wait for a second.
        CHECK_AT_MOST(rss_kib() - before, 20 * MIB);
    }
    CHECK_AT_MOST(count_mappings() - mappings, 300);
}

// ---- big tables built anew while the old ones are still there

enum { TABLE = 50000 };

static void rebuilt_tables(void *unused) {
    static void *tables[2][TABLE];
    static void *kept[TABLE / 10];
    static const size_t sizes[] = { 40, 136, 600 };
    struct dice dice = { 5 };
    long at_ten = 0;
    (void)unused;
    for (size_t cycle = 0; cycle < 40; cycle++) {
        void **fresh = tables[cycle % 2];
        void **old = tables[(cycle + 1) % 2];
        for (size_t i = 0; i < TABLE; i++) {
            fresh[i] = get(sizes[dice_below(&dice, 3)]);
        }
        shuffle(&dice, old, TABLE);
        for (size_t i = 0; i < TABLE; i++) {
            if (i < TABLE / 10) {
                free(kept[i]);
                kept[i] = old[i];
            } else {
                free(old[i]);
            }
            old[i] = NULL;
        }
        at_ten = cycle == 10 ? rss_kib() : at_ten;
    }
    say("tables: %ld KiB in cycle 10, %ld in cycle 40\n", at_ten, rss_kib());
    CHECK_AT_MOST(rss_kib(), at_ten * 115 / 100);
}

// ---- rounding: what 48 MiB of one size cost, all of it written

static void cost_of_a_size(void *argument) {
    size_t size = *(const size_t *)argument;
    size_t count = (48 << 20) / size;
    size_t page = 4096;
    long before = rss_kib();
    for (size_t i = 0; i < count; i++) {
        char *block = (char *)hide(malloc(size));
        REQUIRE(block != NULL);
        memset(block, 1, size);
    }
    size_t asked = count * size / 1024;
    // Classes are 16 bytes, then a sixteenth of a doubling apart; runs are whole pages.
    size_t class = size <= 256 ? (size + 15) / 16 * 16 : size <= 32768 ? size + size / 16 : 0;
    size_t right =
        class != 0 ? count * class / 1024 : count * ((size + page - 1) / page * page) / 1024;
    say("size %zu: %zu KiB asked, %ld taken\n", size, asked, rss_kib() - before);
    CHECK_AT_MOST(rss_kib() - before, right * 106 / 100 + MIB);
}

static void rounding(void) {
    static size_t sizes[] = { 17,
                              33,
                              100,
                              520,
                              1030,
                              2100,
                              4097,
                              5000,
                              9000,
                              33000,
                              70000,
                              1000000,
                              (1 << 12) + 1,
                              (1 << 13) + 1,
                              (1 << 14) + 1,
                              (1 << 15) + 1,
                              (1 << 16) + 1,
                              (1 << 18) + 1,
                              (1 << 20) + 1,
                              (1 << 22) + 1,
                              (1 << 24) + 1 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct child_end end = run_child(cost_of_a_size, &sizes[i], 20);
        expect_exit(&end, 0, "the cost of a size");
    }
}

int main(void) {
    static struct requests small = { 64, 7, 40000 };
    static struct requests of_pages = { 4096, 3, 5000 };
    static const struct {
        const char *name;
        void (*body)(void *);
        void *argument;
    } loads[] = { { "rest after a burst", rest_after_a_burst, NULL },
                  { "rest after a burst freed by another thread", rest_after_a_burst, &token },
                  { "a second later", a_second_later, NULL },
                  { "threads that took turns", threads_that_took_turns, NULL },
                  { "few small survivors", few_survivors, &small },
                  { "few survivors of pages", few_survivors, &of_pages },
                  { "interleaved sizes", interleaved_sizes, NULL },
                  { "rebuilt tables", rebuilt_tables, NULL } };
    api_begin(150);
    for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
        double start = seconds_now();
        struct child_end end = run_child(loads[i].body, loads[i].argument, 60);
        if (expect_exit(&end, 0, loads[i].name)) {
            say("%s", end.text);
        }
        say("%s: %.1f s\n", loads[i].name, seconds_now() - start);
    }
    rounding();
    return test_end();
}

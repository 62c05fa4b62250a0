// Is nothing very much slower than its neighbours: the only object of a class, one size among
// others, two threads against one, a mass of frees for the thread beside it, many blocks or threads
// against few, equal arrays?
//
// Bounds are wide and the best of some rounds counts: this is for cliffs, benches are for slopes.
#include "../figures.h"

#include <malloc.h>
#include <pthread.h>

enum { ROUNDS = 6 };

static void *get(size_t size) {
    void *block = hide(malloc(size));
    REQUIRE(block != NULL);
    return block;
}

static double time_pairs(size_t size, size_t count) {
    double start = seconds_now();
    for (size_t i = 0; i < count; i++) {
        free(get(size));
    }
    return (seconds_now() - start) / (double)count;
}

// ---- the only block of a class, again and again

static void lone_objects(void) {
    static const size_t sizes[] = { 16,     48,     100,    250,     500,     1000,   1024,  2000,
                                    4096,   5000,   8192,   12000,   20000,   32768,  32769, 65536,
                                    131072, 200000, 600000, 1 << 20, 2000000, 5000000 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        double alone = 1;
        double beside = 1;
        for (int round = 0; round < ROUNDS && (round < 2 || alone > 3 * beside); round++) {
            double time = time_pairs(sizes[i], 20000);
            alone = time < alone ? time : alone;
            void *other = get(sizes[i]);
            time = time_pairs(sizes[i], 20000);
            beside = time < beside ? time : beside;
            free(other);
        }
        // A page that flips in and out costs microseconds; a loaded machine some hundred
        // nanoseconds.
        CHECK_SAY(alone <= 3 * beside + 1e-6, "size %zu: %.0f ns alone, %.0f beside another",
                  sizes[i], alone * 1e9, beside * 1e9);
        CHECK_SAY(alone < 3e-6, "size %zu: %.0f ns", sizes[i], alone * 1e9);
    }
}

// ---- one size among its neighbours

static void no_size_stands_out(void) {
    double before = 1;
    for (size_t size = 16; size <= 70000; size = size * 9 / 8 + 1) {
        double best = 1;
        for (int round = 0; round < ROUNDS; round++) {
            double time = time_pairs(size, 5000);
            best = time < best ? time : best;
        }
        CHECK_SAY(best <= 10 * before + 100e-9, "size %zu: %.0f ns, the one before %.0f", size,
                  best * 1e9, before * 1e9);
        before = best;
    }
}

// ---- two threads against one

struct worker {
    pthread_t thread;
    size_t size;
    size_t count;
};

static void *replace(void *argument) {
    struct worker *worker = (struct worker *)argument;
    struct dice dice = { (uint64_t)(uintptr_t)argument };
    void *held[64] = { NULL };
    for (size_t i = 0; i < worker->count; i++) {
        size_t at = dice_below(&dice, 64);
        free(held[at]);
        size_t size = worker->size != 0 ? worker->size : (size_t)32 << dice_below(&dice, 15);
        held[at] = get(size);
    }
    for (size_t i = 0; i < 64; i++) {
        free(held[i]);
    }
    return NULL;
}

static double time_threads(size_t threads, size_t size, size_t count) {
    static struct worker workers[2];
    double start = seconds_now();
    for (size_t i = 0; i < threads; i++) {
        workers[i].size = size;
        workers[i].count = count;
        REQUIRE(pthread_create(&workers[i].thread, NULL, replace, &workers[i]) == 0);
    }
    for (size_t i = 0; i < threads; i++) {
        REQUIRE(pthread_join(workers[i].thread, NULL) == 0);
    }
    return seconds_now() - start;
}

// Twice the work in two threads: no slower than in one, and not several times slower on a machine
// that has only one processor to spare.
static void two_threads_do_not_queue(void) {
    static const size_t sizes[] = { 64, 1024, 4096, 16384, 65536, 262144, 1 << 20, 0 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t count = sizes[i] < 20000 ? 100000 : 10000;
        double ratio = 1000;
        for (int round = 0; round < ROUNDS && ratio > 2.5; round++) {
            double one = time_threads(1, sizes[i], count);
            double two = time_threads(2, sizes[i], count);
            ratio = two / one < ratio ? two / one : ratio;
        }
        CHECK_SAY(ratio <= 4, "size %zu: two threads take %.1f times as long as one", sizes[i],
                  ratio);
    }
}

// ---- a mass of frees stops nobody else

enum { MASS = 2000000 };

static void *mass[MASS];
static bool stop;
static double longest;

static void *time_single_calls(void *unused) {
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        double start = seconds_now();
        free(get(64));
        double time = seconds_now() - start;
        longest = time > longest ? time : longest;
    }
    return unused;
}

// So many blocks, in random order.
static void mass_take(size_t count, size_t size) {
    struct dice dice = { count };
    for (size_t i = 0; i < count; i++) {
        mass[i] = get(size);
    }
    for (size_t i = count; i > 1; i--) {
        size_t k = dice_below(&dice, i);
        void *block = mass[k];
        mass[k] = mass[i - 1];
        mass[i - 1] = block;
    }
}

static double free_the_mass(void) {
    pthread_t thread;
    mass_take(MASS, 64);
    stop = false;
    longest = 0;
    REQUIRE(pthread_create(&thread, NULL, time_single_calls, NULL) == 0);
    double start = seconds_now();
    for (size_t i = 0; i < MASS; i++) {
        free(mass[i]);
    }
    double time = seconds_now() - start;
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    REQUIRE(pthread_join(thread, NULL) == 0);
    return time;
}

// A scheduler's slice alone can be some 10 ms; a lock held for a purge of all is hundreds.
static void a_mass_of_frees_stops_nobody(void) {
    double best = 1000;
    double shortest = 1000;
    for (int round = 0; round < ROUNDS && (round < 2 || shortest > 0.05); round++) {
        double time = free_the_mass();
        best = time < best ? time : best;
        shortest = longest < shortest ? longest : shortest;
    }
    say("2 million random frees: %.2f s, the longest call beside them %.1f ms\n", best,
        shortest * 1e3);
    CHECK_SAY(best <= 3, "2 million random frees take %.1f s", best);
    CHECK_SAY(shortest <= 0.1, "a call beside them takes %.0f ms", shortest * 1e3);
}

// ---- more of the same costs more of the same

static double time_a_free(size_t count) {
    double best = 1;
    for (int round = 0; round < 3; round++) {
        mass_take(count, 48);
        double start = seconds_now();
        for (size_t i = 0; i < count; i++) {
            free(mass[i]);
        }
        double time = (seconds_now() - start) / (double)count;
        best = time < best ? time : best;
    }
    return best;
}

// The larger heap misses the caches at each free; what grows with the heap would be 20 times.
static void random_frees_are_linear(void) {
    double few = time_a_free(MASS / 20);
    double many = time_a_free(MASS);
    say("random frees: %.0f ns of %d, %.0f ns of %d\n", few * 1e9, MASS / 20, many * 1e9, MASS);
    CHECK_SAY(many <= 8 * few + 50e-9, "a random free takes %.0f ns, and %.0f of few", many * 1e9,
              few * 1e9);
}

enum { CROWD = 1500, CROWD_BLOCKS = 32 };

static pthread_barrier_t all_there;

static void *stand_in_the_crowd(void *unused) {
    void *held[CROWD_BLOCKS];
    for (size_t i = 0; i < CROWD_BLOCKS; i++) {
        held[i] = get(16 + 30 * i);
    }
    (void)pthread_barrier_wait(&all_there);
    for (size_t i = 0; i < CROWD_BLOCKS; i++) {
        free(held[i]);
    }
    return unused;
}

static double time_a_thread(size_t count) {
    static pthread_t crowd[CROWD];
    pthread_attr_t attributes;
    REQUIRE(pthread_attr_init(&attributes) == 0);
    REQUIRE(pthread_attr_setstacksize(&attributes, (size_t)1 << 18) == 0);
    double best = 1;
    for (int round = 0; round < 2; round++) {
        REQUIRE(pthread_barrier_init(&all_there, NULL, (unsigned)count) == 0);
        double start = seconds_now();
        for (size_t i = 0; i < count; i++) {
            REQUIRE(pthread_create(&crowd[i], &attributes, stand_in_the_crowd, NULL) == 0);
        }
        for (size_t i = 0; i < count; i++) {
            REQUIRE(pthread_join(crowd[i], NULL) == 0);
        }
        double time = (seconds_now() - start) / (double)count;
        best = time < best ? time : best;
        REQUIRE(pthread_barrier_destroy(&all_there) == 0);
    }
    (void)pthread_attr_destroy(&attributes);
    return best;
}

static void live_threads_are_linear(void) {
    double few = time_a_thread(CROWD / 15);
    double many = time_a_thread(CROWD);
    say("a thread: %.0f us of %d, %.0f us of %d\n", few * 1e6, CROWD / 15, many * 1e6, CROWD);
    CHECK_SAY(many <= 6 * few + 100e-6, "a thread takes %.0f us among %d, and %.0f among few",
              many * 1e6, CROWD, few * 1e6);
}

// ---- equal arrays must not begin in the same cache set

static void arrays_are_spread(void) {
    enum { ARRAYS = 1000, SETS = 64 };
    static char *arrays[ARRAYS];
    size_t counts[SETS] = { 0 };
    size_t used = 0;
    size_t most = 0;
    for (size_t i = 0; i < ARRAYS; i++) {
        arrays[i] = (char *)get(65537 * sizeof(float));
        counts[(uintptr_t)arrays[i] / 64 % SETS]++;
    }
    for (size_t i = 0; i < SETS; i++) {
        used += counts[i] > 0;
        most = counts[i] > most ? counts[i] : most;
    }
    say("1000 arrays begin in %zu of 64 cache sets, at most %zu in one\n", used, most);
    CHECK(used >= 40);
    CHECK_AT_MOST(most, ARRAYS / 10);
    for (size_t i = 0; i < ARRAYS; i++) {
        free(arrays[i]);
    }
}

int main(void) {
    api_begin(150);
    lone_objects();
    no_size_stands_out();
    two_threads_do_not_queue();
    a_mass_of_frees_stops_nobody();
    random_frees_are_linear();
    live_threads_are_linear();
    arrays_are_spread();
    return test_end();
}

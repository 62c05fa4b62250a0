// Is a block's place drawn: no free slot much likelier than others, no two processes or runs alike?
//
// Figures: with 16 or more free slots in a word none may be chosen with a probability above 1/8. A
// count may exceed n/8 by four standard deviations of chance.
#include "../harness.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static void *get(size_t size) {
    void *block = hide(malloc(size));
    REQUIRE(block != NULL);
    return block;
}

static void judge_counts(const size_t *counts, size_t places, const char *what) {
    size_t samples = 0;
    size_t most = 0;
    for (size_t i = 0; i < places; i++) {
        samples += counts[i];
        most = counts[i] > most ? counts[i] : most;
    }
    CHECK_SAY(samples >= 400, "%s: too few samples: %zu", what, samples);
    say("%s: %zu samples, likeliest place %zu %%\n", what, samples,
        most * 100 / (samples + !samples));
    // The variance of a count is n * 1/8 * 7/8 at the limit.
    size_t excess = most > samples / 8 ? most - samples / 8 : 0;
    CHECK_SAY(excess * excess <= 16 * samples * 7 / 64, "%s: one place has %zu of %zu draws", what,
              most, samples);
}

// ---- a class's first block in an arena: sixteen slots are open

enum { NEW_THREADS = 120, OPEN = 16 };

static size_t first_places[OPEN];
static size_t first_skipped;

static void draw_first(size_t size) {
    char *blocks[OPEN];
    char *lowest = NULL;
    char *highest = NULL;
    for (size_t i = 0; i < OPEN; i++) {
        blocks[i] = (char *)get(size);
        lowest = i == 0 || blocks[i] < lowest ? blocks[i] : lowest;
        highest = i == 0 || blocks[i] > highest ? blocks[i] : highest;
    }
    // Sixteen neighbours in a row are the word; anything else is a case this test does not see.
    if ((size_t)(highest - lowest) == (OPEN - 1) * size) {
        size_t place = (size_t)(blocks[0] - lowest) / size;
        (void)__atomic_fetch_add(&first_places[place], 1, __ATOMIC_RELAXED);
    } else {
        (void)__atomic_fetch_add(&first_skipped, 1, __ATOMIC_RELAXED);
    }
}

static pthread_barrier_t all_have_drawn;

// Threads that live at the same time have arenas of their own.
static void *draw_first_of_each_class(void *unused) {
    // The sizes that have classes from the beginning and whose first words are of sixteen slots.
    for (size_t size = 320; size <= 512; size += 64) {
        draw_first(size);
    }
    (void)pthread_barrier_wait(&all_have_drawn);
    return unused;
}

static void first_blocks_are_spread(void) {
    pthread_t threads[NEW_THREADS];
    REQUIRE(pthread_barrier_init(&all_have_drawn, NULL, NEW_THREADS) == 0);
    for (size_t i = 0; i < NEW_THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, draw_first_of_each_class, NULL) == 0);
    }
    for (size_t i = 0; i < NEW_THREADS; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    say("first blocks of a class: %zu not seen\n", first_skipped);
    judge_counts(first_places, OPEN, "sixteen open slots");
}

// ---- a class in use: words of 64 slots of 64 bytes, one on each page of 4 KiB of its slabs

enum { SLOT = 64, WORD = 64, WORD_BYTES = SLOT * WORD, WORDS = 2000, BLOCKS = WORDS * WORD };

static char *blocks[BLOCKS];

static uintptr_t word_of(const char *block) {
    return (uintptr_t)block / WORD_BYTES;
}

static size_t place_of(const char *block) {
    return (uintptr_t)block % WORD_BYTES / SLOT;
}

static int by_address(const void *a, const void *b) {
    char *const *left = (char *const *)a;
    char *const *right = (char *const *)b;
    return (*left > *right) - (*left < *right);
}

// Draws until the class's free slots are used up. The first draw from each word, when all of its
// free slots are still there, is a sample.
static void draw_all(size_t count, size_t *counts) {
    uintptr_t word = 0;
    for (size_t i = 0; i < BLOCKS; i++) {
        if (blocks[i] == NULL && count > 0) {
            blocks[i] = (char *)get(SLOT);
            count--;
            if (word_of(blocks[i]) != word) {
                word = word_of(blocks[i]);
                counts[place_of(blocks[i])]++;
            }
        }
    }
}

// Frees the slots of the pattern in every word that is wholly ours.
static size_t free_pattern(uint64_t pattern) {
    size_t freed = 0;
    qsort(blocks, BLOCKS, sizeof(blocks[0]), by_address);
    for (size_t i = 0; i + WORD <= BLOCKS;) {
        if (place_of(blocks[i]) != 0 || blocks[i + WORD - 1] - blocks[i] != (WORD - 1) * SLOT) {
            i++;
            continue;
        }
        for (size_t k = 0; k < WORD; k++) {
            if ((pattern >> k & 1) != 0) {
                free(hide(blocks[i + k]));
                blocks[i + k] = NULL;
                freed++;
            }
        }
        i += WORD;
    }
    return freed;
}

static uint64_t random_pattern(struct dice *dice, size_t bits) {
    uint64_t pattern = 0;
    while ((size_t)__builtin_popcountll(pattern) < bits) {
        pattern |= (uint64_t)1 << dice_below(dice, WORD);
    }
    return pattern;
}

static void freed_slots_are_spread(uint64_t pattern, const char *what) {
    size_t counts[WORD] = { 0 };
    draw_all(free_pattern(pattern), counts);
    judge_counts(counts, WORD, what);
}

static void slots_in_use_are_spread(void) {
    struct dice dice = { test_seed() };
    size_t counts[WORD] = { 0 };
    draw_all(BLOCKS, counts);
    judge_counts(counts, WORD, "new words");
    freed_slots_are_spread(~(uint64_t)0, "all freed");
    freed_slots_are_spread(0x5555555555555555u, "every second freed");
    freed_slots_are_spread(random_pattern(&dice, 48), "48 random ones freed");
    for (size_t i = 0; i < BLOCKS; i++) {
        free(hide(blocks[i]));
    }
}

// ---- in steady state: half of the heap is free, by chance, and blocks come and go

enum { LIVE = BLOCKS / 2, TURNS = 1000000, GAPS = 2 * WORD };

struct steady {
    size_t places[WORD]; // within the word
    size_t gaps[GAPS];   // slots from the block before, if it lies in the same word
    size_t repeats;      // the slot that was freed last, or one of the seven before
    size_t samples;
};

static void steady_add(struct steady *steady, const char *before, const char *now,
                       char *const *freed) {
    steady->samples++;
    steady->places[place_of(now)]++;
    if (before != NULL && word_of(before) == word_of(now)) {
        steady->gaps[WORD + place_of(now) - place_of(before)]++;
    }
    for (size_t i = 0; i < 8; i++) {
        steady->repeats += freed[i] == now;
    }
}

static void steady_run(struct steady *steady) {
    struct dice dice = { test_seed() + 1 };
    char *freed[8] = { NULL };
    char *before = NULL;
    for (size_t i = 0; i < TURNS; i++) {
        // Which of the live ones goes is drawn: so is, in time, what is free.
        char **place = &blocks[dice_below(&dice, LIVE)];
        memmove(&freed[1], &freed[0], sizeof(freed) - sizeof(freed[0]));
        freed[0] = *place;
        free(hide(*place));
        *place = (char *)get(SLOT);
        steady_add(steady, before, *place, freed);
        before = *place;
    }
}

static void steady_state_is_spread(void) {
    static struct steady steady;
    struct dice dice = { test_seed() };
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = (char *)get(SLOT);
    }
    for (size_t i = BLOCKS; i > LIVE; i--) {
        size_t other = dice_below(&dice, i);
        char *block = blocks[other];
        blocks[other] = blocks[i - 1];
        blocks[i - 1] = NULL;
        free(hide(block));
    }
    steady_run(&steady);
    judge_counts(steady.places, WORD, "steady state, place in the word");
    judge_counts(steady.gaps, GAPS, "steady state, slots from the block before");
    size_t most = 0;
    size_t least = steady.samples;
    for (size_t i = 0; i < WORD; i++) {
        most = steady.places[i] > most ? steady.places[i] : most;
        least = steady.places[i] < least ? steady.places[i] : least;
    }
    say("steady state: places have %zu to %zu of %zu draws, %zu repeats\n", least, most,
        steady.samples, steady.repeats);
    // An even draw gives each place 1/64 of a million draws, 15,625, and chance moves that by 124.
    CHECK_AT_MOST(most, steady.samples / WORD * 11 / 10);
    CHECK_AT_MOST(steady.samples / WORD * 9 / 10, least);
    // Of eight slots freed last the next block gets one in a hundred times at most.
    CHECK_AT_MOST(steady.repeats, steady.samples / 100);
    for (size_t i = 0; i < LIVE; i++) {
        free(hide(blocks[i]));
        blocks[i] = NULL;
    }
}

// ---- processes: the same heap, other draws, however the child was made

enum { SMALL = 64, LARGE = 8, PROCESSES = 9 };

struct sequence {
    void *small[SMALL];
    void *large[LARGE];
};

static void draw_sequence(struct sequence *sequence) {
    for (size_t i = 0; i < SMALL; i++) {
        sequence->small[i] = get(48);
    }
    // Nearly a page is left over in the last one: the start is one of 63 places.
    for (size_t i = 0; i < LARGE; i++) {
        sequence->large[i] = get(10 * 4096 + 64);
    }
}

static void children_draw_anew(void) {
    struct sequence before;
    draw_sequence(&before);
    void *shared = mmap(NULL, sizeof(struct sequence) * PROCESSES, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    struct sequence *sequences = (struct sequence *)shared;
    for (size_t i = 1; i < PROCESSES; i++) {
        // Half of the children are made without libc, so that no fork handler runs.
        pid_t child = i % 2 == 0 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        REQUIRE(child >= 0);
        if (child == 0) {
            draw_sequence(&sequences[i]);
            _exit(0);
        }
        int status = 1;
        REQUIRE(waitpid(child, &status, 0) == child);
        CHECK_EQ(status, 0);
    }
    draw_sequence(&sequences[0]);
    for (size_t i = 0; i < PROCESSES; i++) {
        for (size_t k = 0; k < i; k++) {
            CHECK_SAY(memcmp(sequences[i].small, sequences[k].small, sizeof(before.small)) != 0,
                      "processes %zu and %zu draw the same slots", i, k);
            CHECK_SAY(memcmp(sequences[i].large, sequences[k].large, sizeof(before.large)) != 0,
                      "processes %zu and %zu draw the same starts", i, k);
        }
    }
    (void)munmap(shared, sizeof(struct sequence) * PROCESSES);
}

// A program that is started again has another order of blocks, and regions at other places.
static int tell_places(void) {
    char *first = (char *)get(48);
    printf("%p", (void *)first);
    for (size_t i = 0; i < 32; i++) {
        printf(" %td", (char *)get(48) - first);
    }
    return 0;
}

static void runs_differ(void) {
    char texts[3][2048];
    for (size_t i = 0; i < 3; i++) {
        FILE *pipe = popen("/proc/$PPID/exe places", "r");
        REQUIRE(pipe != NULL);
        size_t length = fread(texts[i], 1, sizeof(texts[i]) - 1, pipe);
        texts[i][length] = 0;
        CHECK_EQ(pclose(pipe), 0);
        CHECK(length > 50);
        for (size_t k = 0; k < i; k++) {
            const char *places[2] = { strchr(texts[i], ' '), strchr(texts[k], ' ') };
            REQUIRE(places[0] != NULL && places[1] != NULL);
            CHECK_SAY(strcmp(places[0], places[1]) != 0, "two runs draw the same slots");
            CHECK_SAY(strtoul(texts[i], NULL, 16) != strtoul(texts[k], NULL, 16),
                      "two runs have their regions at the same place");
        }
    }
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "places") == 0) {
        return tell_places();
    }
    api_begin(60);
    first_blocks_are_spread();
    slots_in_use_are_spread();
    steady_state_is_spread();
    children_draw_anew();
    runs_differ();
    return test_end();
}

// runlist.c - whatever is put in is found by length, and nothing else is.
#include <config.h>

#include "base.h"
#include "harness.h"
#include "random.h"
#include "run.h"
#include "runlist.h"

#define RUNS 400

static struct run runs[RUNS] PMA_ALIGNED(PMA_APART);
static bool is_in[RUNS];
static struct runlist list;
static struct stream stream;

static size_t bits_filled(void) {
    size_t count = 0;
    for (size_t i = 0; i < sizeof(list.filled) / sizeof(list.filled[0]); i++) {
        count += (size_t)__builtin_popcountll(list.filled[i]);
    }
    return count;
}

// The links hold, the bitmap says which lists have runs, and each run that should be there is there
// once.
static void check_links(void) {
    size_t count = 0;
    size_t filled = 0;
    for (size_t bin = 0; bin < PMA_RUNLIST_BINS; bin++) {
        CHECK_EQ(list.filled[bin / 64] >> bin % 64 & 1, list.heads[bin] != NULL);
        filled += list.heads[bin] != NULL;
        const struct run *before = NULL;
        for (const struct run *run = list.heads[bin]; run != NULL; run = run->next) {
            CHECK(run->prev == before);
            CHECK(is_in[run - runs]);
            before = run;
            count++;
            REQUIRE(count <= RUNS);
        }
    }
    CHECK_EQ(bits_filled(), filled);
    for (size_t i = 0; i < RUNS; i++) {
        count -= is_in[i];
    }
    CHECK_EQ(count, 0);
}

static void put(size_t i, uint32_t npages) {
    runs[i].npages = npages;
    pma_runlist_insert(&list, &runs[i]);
    is_in[i] = true;
}

static void drop(size_t i) {
    pma_runlist_remove(&list, &runs[i]);
    is_in[i] = false;
}

static void drop_all(void) {
    static const struct runlist empty;
    for (size_t i = 0; i < RUNS; i++) {
        if (is_in[i]) {
            drop(i);
        }
    }
    CHECK(memcmp(&list, &empty, sizeof(list)) == 0);
}

// ---- what is found

static uint32_t shortest_fit(size_t npages) {
    uint32_t best = 0;
    for (size_t i = 0; i < RUNS; i++) {
        if (is_in[i] && runs[i].npages >= npages && (best == 0 || runs[i].npages < best)) {
            best = runs[i].npages;
        }
    }
    return best;
}

static uint32_t longest(void) {
    uint32_t most = 0;
    for (size_t i = 0; i < RUNS; i++) {
        most = is_in[i] && runs[i].npages > most ? runs[i].npages : most;
    }
    return most;
}

// Exactly the shortest up to 128 pages; above, lengths differ by less than an eighth in a list, and
// the next list may have to do when a list is long.
static void check_found(size_t npages) {
    struct run *run = pma_runlist_find(&list, npages, &stream);
    uint32_t best = shortest_fit(npages);
    if (run == NULL || best == 0) {
        CHECK_SAY(run == NULL && best == 0, "%zu pages: found %p, there is one of %u", npages,
                  (void *)run, best);
        return;
    }
    CHECK(run >= runs && run < runs + RUNS && is_in[run - runs]);
    CHECK(run->npages >= npages);
    if (best <= PMA_EXACT_PAGES) {
        CHECK_EQ(run->npages, best);
    }
}

static void check_longest(size_t npages) {
    struct run *run = pma_runlist_longest(&list, npages);
    uint32_t most = longest();
    if (run == NULL) {
        CHECK_SAY(most < npages + npages / 8 + 1, "%zu pages: none, but there are %u", npages,
                  most);
        return;
    }
    CHECK(is_in[run - runs] && run->npages >= npages);
    CHECK_SAY(most - run->npages <= most / 8, "%u pages, but there are %u", run->npages, most);
}

// One run, asked for by every length near its own.
static void check_alone(uint32_t npages) {
    put(0, npages);
    CHECK(pma_runlist_find(&list, 1, &stream) == &runs[0]);
    CHECK(pma_runlist_find(&list, npages, &stream) == &runs[0]);
    CHECK(pma_runlist_longest(&list, npages) == &runs[0]);
    CHECK(pma_runlist_find(&list, (size_t)npages - (npages > 1), &stream) == &runs[0]);
    CHECK(pma_runlist_find(&list, (size_t)npages + 1, &stream) == NULL);
    CHECK(pma_runlist_longest(&list, (size_t)npages + 1) == NULL);
    drop_all();
}

static void check_each_length(void) {
    CHECK(pma_runlist_find(&list, 1, &stream) == NULL);
    CHECK(pma_runlist_longest(&list, 1) == NULL);
    for (uint32_t npages = 1; npages <= 4096; npages++) {
        check_alone(npages);
    }
    for (unsigned shift = 12; shift < 32; shift++) {
        for (uint32_t eighth = 8; eighth < 16; eighth++) {
            uint32_t npages = eighth << (shift - 3);
            check_alone(npages - 1);
            check_alone(npages);
            check_alone(npages + 1);
        }
    }
    check_alone(UINT32_MAX);
}

// ---- choices

// Of sixteen equal runs each is chosen, and about equally often; a shorter one or a longer one
// never.
static void check_choice(void) {
    unsigned chosen[RUNS] = { 0 };
    for (size_t i = 0; i < 16; i++) {
        put(i, 7);
    }
    put(16, 6);
    put(17, 8);
    for (int round = 0; round < 16000; round++) {
        struct run *run = pma_runlist_find(&list, 7, &stream);
        REQUIRE(run != NULL);
        chosen[run - runs]++;
    }
    // 1000 each; the deviation is 31, and eight times that never happens.
    for (size_t i = 0; i < 16; i++) {
        CHECK_SAY(chosen[i] > 750 && chosen[i] < 1250, "run %zu: %u times", i, chosen[i]);
    }
    CHECK_EQ(chosen[16] + chosen[17], 0);
    drop_all();
}

// The shortest of a list of different lengths; and what only the far end of a long list has is
// found nevertheless.
static void check_long_lists(void) {
    for (size_t i = 0; i < 10; i++) {
        put(i, (uint32_t)(1024 + (i * 7 + 3) % 10 * 10));
    }
    CHECK_EQ(pma_runlist_find(&list, 1034, &stream)->npages, 1034);
    CHECK_EQ(pma_runlist_find(&list, 1041, &stream)->npages, 1044);
    drop_all();
    put(0, 1100);
    for (size_t i = 1; i < 100; i++) {
        put(i, 1024);
    }
    CHECK(pma_runlist_find(&list, 1100, &stream) == &runs[0]);
    CHECK(pma_runlist_find(&list, 1101, &stream) == NULL);
    put(100, 3000);
    CHECK(pma_runlist_find(&list, 1101, &stream) == &runs[100]);
    drop_all();
}

// ---- everything in random order

static uint32_t random_length(struct dice *dice) {
    if (dice_below(dice, 4) != 0) {
        return 1 + (uint32_t)dice_below(dice, 200);
    }
    uint64_t top = (uint64_t)1 << (7 + dice_below(dice, 26));
    return 1 + (uint32_t)dice_below(dice, top - 1);
}

static void check_at_random(struct dice *dice) {
    unsigned rounds = 20000 / slow_factor();
    for (unsigned round = 0; round < rounds; round++) {
        size_t i = dice_below(dice, RUNS);
        // Now and then nearly everything goes, so that sparse lists are met, too.
        if (is_in[i]) {
            drop(i);
        } else if (round % 4096 < 3000 || dice_below(dice, 8) == 0) {
            put(i, random_length(dice));
        }
        check_found(random_length(dice));
        check_longest(random_length(dice));
        if (round % 64 == 0) {
            check_links();
        }
    }
    drop_all();
}

int main(void) {
    test_begin(60);
    struct dice dice = { test_seed() };
    pma_random_set_seed(dice_draw(&dice));
    check_each_length();
    check_choice();
    check_long_lists();
    check_at_random(&dice);
    return test_end();
}

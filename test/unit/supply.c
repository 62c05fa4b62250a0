// supply.c - descriptors of slabs: large enough, apart, and used again only as the same kind.
#include <config.h>

#include "base.h"
#include "harness.h"
#include "meta.h"
#include "os.h"
#include "probe.h"
#include "run.h"
#include "slab.h"
#include "supply.h"

#define TAKEN 2000

// The linker puts this in the place of pma_meta_take, see local.mk.
void *__real_pma_meta_take(enum meta_kind kind, size_t size, size_t alignment);
void *__wrap_pma_meta_take(enum meta_kind kind, size_t size, size_t alignment);
static size_t largest = SIZE_MAX; // what may be taken at once
static size_t pieces;             // how often memory was taken

void *__wrap_pma_meta_take(enum meta_kind kind, size_t size, size_t alignment) {
    pieces++;
    return size > largest ? NULL : __real_pma_meta_take(kind, size, alignment);
}

static struct slab *taken[TAKEN];
static size_t words_of[TAKEN];

static size_t size_of(const struct slab *slab) {
    return pma_slab_descriptor_size(slab->run.capacity);
}

static int order(const void *a, const void *b) {
    uintptr_t left = (uintptr_t) * (struct slab *const *)a;
    uintptr_t right = (uintptr_t) * (struct slab *const *)b;
    return left < right ? -1 : left > right;
}

// Room for what was asked, at least, and as much as its capacity says.
static void check_slab(const struct slab *slab, size_t words) {
    CHECK_EQ((uintptr_t)slab % PMA_APART, 0);
    REQUIRE(slab->run.capacity < PMA_SLAB_CAPACITIES);
    CHECK(pma_slab_capacities[slab->run.capacity] >= words);
    CHECK_EQ(slab->run.capacity, pma_slab_capacity(words));
}

static void check_apart(struct supply *supply, struct dice *dice) {
    for (size_t i = 0; i < TAKEN; i++) {
        words_of[i] = 1 + dice_below(dice, PMA_SLAB_WORDS_MAX + 1);
        taken[i] = pma_supply_take(supply, words_of[i]);
        REQUIRE(taken[i] != NULL);
        check_slab(taken[i], words_of[i]);
        CHECK_EQ(run_kind(&taken[i]->run), RUN_UNUSED);
        CHECK(is_zero(taken[i]->live, pma_slab_capacities[taken[i]->run.capacity] * 8));
    }
    qsort(taken, TAKEN, sizeof(taken[0]), order);
    for (size_t i = 1; i < TAKEN; i++) {
        CHECK((uintptr_t)taken[i - 1] + size_of(taken[i - 1]) <= (uintptr_t)taken[i]);
    }
}

// Given back, they serve again, each for its own capacity, and no new memory is taken.
static void check_again(struct supply *supply) {
    size_t given[PMA_SLAB_CAPACITIES] = { 0 };
    for (size_t i = 0; i < TAKEN; i++) {
        given[taken[i]->run.capacity]++;
        run_set_kind(&taken[i]->run, RUN_SLAB);
        pma_supply_give(supply, taken[i]);
        CHECK_EQ(run_kind(&taken[i]->run), RUN_UNUSED);
    }
    uintptr_t start = supply->start;
    for (unsigned capacity = 0; capacity < PMA_SLAB_CAPACITIES; capacity++) {
        for (size_t i = 0; i < given[capacity]; i++) {
            struct slab *slab = pma_supply_take(supply, pma_slab_capacities[capacity]);
            REQUIRE(slab != NULL);
            check_slab(slab, pma_slab_capacities[capacity]);
            CHECK(bsearch(&slab, taken, TAKEN, sizeof(taken[0]), order) != NULL);
        }
        CHECK(supply->unused[capacity] == NULL);
    }
    CHECK_EQ(supply->start, start);
}

// Without memory there is none, but those in reserve; afterwards there are more.
static void check_refused(struct supply *supply) {
    struct slab *kept = pma_supply_take(supply, 1);
    REQUIRE(kept != NULL);
    pma_supply_give(supply, kept);
    pma_os_fail_at(1, true);
    CHECK(pma_supply_take(supply, 1) == kept);
    size_t count = 0;
    while (pma_supply_take(supply, PMA_SLAB_WORDS_MAX) != NULL) {
        count++;
        REQUIRE(count < 10000);
    }
    pma_os_fail_at(0, false);
    struct slab *slab = pma_supply_take(supply, PMA_SLAB_WORDS_MAX);
    REQUIRE(slab != NULL);
    check_slab(slab, PMA_SLAB_WORDS_MAX);
}

// Memory is taken in pieces that grow with use; where only small ones can be had, those do.
static void check_pieces(void) {
    static struct supply supply;
    pieces = 0;
    for (size_t i = 0; i < 1000; i++) {
        REQUIRE(pma_supply_take(&supply, 3) != NULL);
    }
    CHECK_AT_MOST(pieces, 24);
    largest = 4096;
    for (size_t i = 0; i < 1000; i++) {
        REQUIRE(pma_supply_take(&supply, 3) != NULL);
    }
    largest = SIZE_MAX;
    CHECK(pieces > 24);
}

int main(void) {
    static struct supply supply;
    static struct supply other;
    test_begin(60);
    struct dice dice = { test_seed() };
    pma_os_init();
    check_apart(&supply, &dice);
    check_again(&supply);
    check_refused(&supply);
    check_refused(&other);
    check_pieces();
    return test_end();
}

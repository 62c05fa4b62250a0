// slab.c - positions are exact for every byte of every shape, and a new slab is all free.
#include <config.h>

#include "base.h"
#include "class.h"
#include "harness.h"
#include "os.h"
#include "slab.h"

#include <sys/mman.h>

// Room for the largest descriptor, with a margin behind it that must stay as it is.
#define MARGIN 256
#define MARGIN_BYTE 0xa5

static struct { _Alignas(PMA_APART) unsigned char bytes[8192]; } room;

// No memory is needed where a slab begins: nothing here looks at slots.
#define SLAB_START ((uintptr_t)0x123456780000)
#define OWNER ((struct arena *)(uintptr_t)0x7000)
#define BIN 192

static struct slab *slab_make(size_t size, struct shape shape) {
    struct slab *slab = (struct slab *)room.bytes;
    unsigned capacity = pma_slab_capacity(pma_slab_span_words(size, shape));
    size_t bytes = pma_slab_descriptor_size(capacity);
    REQUIRE(bytes + MARGIN <= sizeof(room.bytes));
    memset(room.bytes, 0, bytes);
    memset(room.bytes + bytes, MARGIN_BYTE, MARGIN);
    slab->run.capacity = (uint8_t)capacity;
    // What an earlier incarnation may have left.
    memset(slab->live, 0xff, pma_slab_capacities[capacity] * sizeof(slab->live[0]));
    pma_slab_init(slab, SLAB_START, size, shape, OWNER, BIN);
    for (size_t i = 0; i < MARGIN; i++) {
        CHECK_EQ(room.bytes[bytes + i], MARGIN_BYTE);
    }
    return slab;
}

// ---- descriptors

static void check_capacities(void) {
    for (size_t words = 1; words <= PMA_SLAB_WORDS_MAX + 1; words++) {
        unsigned capacity = pma_slab_capacity(words);
        REQUIRE(capacity < PMA_SLAB_CAPACITIES);
        CHECK_AT_MOST(words, pma_slab_capacities[capacity]);
        CHECK(capacity == 0 || pma_slab_capacities[capacity - 1] < words);
    }
    for (unsigned capacity = 0; capacity < PMA_SLAB_CAPACITIES; capacity++) {
        size_t size = pma_slab_descriptor_size(capacity);
        CHECK_EQ(size % PMA_APART, 0);
        CHECK(capacity == 0 || size >= pma_slab_descriptor_size(capacity - 1));
    }
}

// What the owner writes and what others write lie PMA_APART bytes apart or more, all of it inside
// the descriptor.
static void check_layout(const struct slab *slab) {
    size_t words = pma_slab_capacities[slab->run.capacity];
    const char *remote = (const char *)slab->run.remote;
    const char *end = (const char *)slab + pma_slab_descriptor_size(slab->run.capacity);
    CHECK_EQ((uintptr_t)remote % PMA_APART, 0);
    CHECK((const char *)&slab->live[words] <= remote);
    CHECK((const char *)&slab->run.remote->bits[words] <= end);
}

static void check_new(const struct slab *slab, size_t size, struct shape shape) {
    const struct run *run = &slab->run;
    CHECK_EQ(run_kind(run), RUN_SLAB);
    CHECK_EQ(run->npages, shape.npages);
    CHECK_EQ(run->start, SLAB_START);
    CHECK_EQ(run->base, SLAB_START);
    CHECK_EQ(run->size, size);
    CHECK_EQ(run->words, shape.words);
    CHECK_EQ(run->shift, shape.shift);
    CHECK_EQ(run->owner, OWNER);
    CHECK_EQ(run->bin, BIN);
    CHECK_EQ(run->count + run->bias, 0);
    CHECK_EQ(slab_slots(slab), (size_t)shape.words * (64u >> shape.shift));
    CHECK_EQ(pma_slab_count_live(slab), 0);
    CHECK_EQ(pma_slab_scan(slab), run->room);
    CHECK_EQ(bits_count(run->room), shape.words);
    CHECK(run->room == ~(uint64_t)0 || run->room == ((uint64_t)1 << shape.words) - 1);
    for (size_t word = 0; word < pma_slab_capacities[run->capacity]; word++) {
        CHECK_EQ(slab_live(slab, word), 0);
        CHECK_EQ(run->remote->bits[word], 0);
        CHECK_EQ(slab_free_bits(slab, word), shape_mask(shape.shift));
    }
}

// ---- positions

// Against division, for every byte of the run; of what lies behind the last slot the live word is
// there and 0.
static void check_positions(const struct slab *slab) {
    size_t unit = slab->run.size >> slab->run.shift;
    size_t bytes = (size_t)slab->run.npages << pma_page_shift;
    size_t span = pma_slab_capacities[slab->run.capacity] * (size_t)64;
    size_t wrong = 0;
    // Checkers of memory and threads make this slow: there a prime stride, which meets every
    // remainder in time.
    size_t stride = slow_factor() > 1 ? 127 : 1;
    uint64_t index = 0;
    size_t rest = 0;
    for (size_t offset = 0; offset < bytes; offset += stride) {
        struct position position = slab_position(&slab->run, SLAB_START + offset);
        wrong += position.index != index || position.exact != (rest == 0);
        rest += stride;
        while (rest >= unit) {
            rest -= unit;
            index++;
        }
    }
    CHECK_SAY(wrong == 0, "slots of %zu, shift %u: %zu of %zu offsets are wrong", slab->run.size,
              slab->run.shift, wrong, bytes);
    CHECK_AT_MOST((bytes - 1) / unit + 1, span);
}

// Positions depend on the unit and the length only.
static bool is_known(size_t unit, size_t npages) {
    static struct {
        size_t unit;
        size_t npages;
    } known[PMA_CLASSES * PMA_LEVELS];
    static size_t count, page;
    if (page != pma_page_size) {
        page = pma_page_size;
        count = 0;
    }
    for (size_t i = 0; i < count; i++) {
        if (known[i].unit == unit && known[i].npages >= npages) {
            return true;
        }
    }
    known[count].unit = unit;
    known[count++].npages = npages;
    return false;
}

static void check_shape(size_t size, struct shape shape) {
    struct slab *slab = slab_make(size, shape);
    size_t bytes = (size_t)shape.npages << pma_page_shift;
    CHECK_EQ(pma_slab_span_words(size, shape),
             ((bytes << shape.shift) + 64 * size - 1) / (64 * size));
    check_layout(slab);
    check_new(slab, size, shape);
    if (!is_known(size >> shape.shift, shape.npages)) {
        check_positions(slab);
    }
}

// From the longest to the shortest, since a long slab's positions are those of shorter ones, too.
static void check_shapes(void) {
    for (unsigned class = 0; class < PMA_CLASSES; class ++) {
        for (unsigned level = PMA_LEVELS; level-- > 0;) {
            check_shape(class_size(class), pma_class_shape(class_size(class), level));
        }
    }
}

// A pointer that is far away, as a stale descriptor sees it, is never exact where it is no slot:
// the remainder decides, whatever the distance.
static void check_far_positions(uint64_t seed) {
    struct dice dice = { seed };
    for (int round = 0; round < 1000; round++) {
        unsigned class = 1 + (unsigned)dice_below(&dice, PMA_CLASSES - 1);
        struct shape shape = pma_class_shape(class_size(class), PMA_LEVELS - 1);
        struct slab *slab = slab_make(class_size(class), shape);
        size_t unit = slab->run.size >> slab->run.shift;
        uint64_t distance = dice_draw(&dice) >> 17;
        struct position position = slab_position(&slab->run, SLAB_START + distance);
        CHECK_EQ(position.index, distance / unit);
        CHECK_EQ(position.exact, distance % unit == 0);
    }
}

// ---- live words

static void check_live(uint64_t seed) {
    struct dice dice = { seed };
    for (unsigned class = 0; class < PMA_CLASSES; class ++) {
        struct shape shape =
            pma_class_shape(class_size(class), (unsigned)dice_below(&dice, PMA_LEVELS));
        struct slab *slab = slab_make(class_size(class), shape);
        uint64_t mask = shape_mask(shape.shift);
        uint64_t room_left = 0;
        size_t count = 0;
        for (size_t word = 0; word < shape.words; word++) {
            uint64_t live = dice_below(&dice, 3) == 0 ? mask : dice_draw(&dice) & mask;
            slab_set_live(slab, word, live);
            CHECK_EQ(slab_live(slab, word), live);
            CHECK_EQ(slab_free_bits(slab, word), mask & ~live);
            room_left |= (uint64_t)(live != mask) << word;
            count += (size_t)__builtin_popcountll(live);
        }
        CHECK_EQ(pma_slab_scan(slab), room_left);
        CHECK_EQ(pma_slab_count_live(slab), count);
    }
}

// ---- pages of free slots

// What lies in whole pages of free slots is dropped, if the stretch is long enough; live slots keep
// every byte.
static void check_drop(struct dice *dice, size_t size, unsigned level, size_t least) {
    struct shape shape = pma_class_shape(size, level);
    struct slab *slab = slab_make(size, shape);
    size_t bytes = (size_t)shape.npages << pma_page_shift;
    unsigned char *start = pma_os_map(NULL, bytes);
    REQUIRE(start != NULL);
    slab->run.start = slab->run.base = (uintptr_t)start;
    memset(start, 7, bytes);
    size_t slots = slab_slots(slab);
    size_t expected = 0;
    uintptr_t free_from = slab->run.base;
    for (size_t slot = 0; slot <= slots; slot++) {
        uint64_t index = (uint64_t)slot << shape.shift;
        bool live = slot < slots && dice_below(dice, 16) == 0;
        if (live) {
            uint64_t bit = (uint64_t)1 << index % 64;
            slab_set_live(slab, index / 64, slab_live(slab, index / 64) | bit);
        }
        if (live || slot == slots) {
            uintptr_t to = slab->run.base + slot * size;
            uintptr_t first = align_up(free_from, pma_page_size);
            uintptr_t last = align_down(to, pma_page_size);
            expected += last > first && last - first >= least ? last - first : 0;
            free_from = to + size;
        }
    }
    CHECK_EQ(pma_slab_drop(slab, least), expected);
    size_t zeroes = 0;
    for (size_t at = 0; at < bytes; at++) {
        zeroes += start[at] == 0;
    }
    CHECK_EQ(zeroes, expected);
    for (size_t slot = 0; slot < slots; slot++) {
        uint64_t index = (uint64_t)slot << shape.shift;
        if ((slab_live(slab, index / 64) >> index % 64 & 1) != 0) {
            CHECK_EQ(start[slot * size] + start[slot * size + size - 1], 14);
        }
    }
    // Nothing is lost when the kernel refuses.
    memset(start, 8, bytes);
    pma_os_fail_at(1, true);
    CHECK_EQ(pma_slab_drop(slab, least), 0);
    pma_os_fail_at(0, false);
    CHECK(start[0] == 8 && start[bytes - 1] == 8);
    CHECK(pma_os_unmap(start, bytes));
}

static void check_drops(struct dice *dice) {
    static const size_t sizes[] = { 16, 48, 240, 1024, 2304, 4096, 7168, 16384, 20480, 32768 };
    void *page = pma_os_map(NULL, pma_page_size);
    REQUIRE(page != NULL);
    if (!pma_os_purge(page, pma_page_size)) {
        return; // an emulator that does not drop pages
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (unsigned level = 0; level < PMA_LEVELS; level += 5) {
            check_drop(dice, sizes[i], level, pma_page_size);
            check_drop(dice, sizes[i], level, 4 * pma_page_size);
        }
    }
}

int main(void) {
    static const char *const pages[] = { "4096", "16384", "65536" };
    test_begin(120);
    uint64_t seed = test_seed();
    struct dice dice = { seed };
    for (size_t i = 0; i < 3; i++) {
        REQUIRE(setenv("PMA_TEST_PAGE", pages[i], 1) == 0);
        pma_os_init();
        check_capacities();
        check_shapes();
        check_far_positions(seed + i);
        check_live(seed + i);
        check_drops(&dice);
    }
    return test_end();
}

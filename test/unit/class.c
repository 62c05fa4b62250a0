// class.c - the list of slot sizes and every shape of every class, all of them, for each page size.
#include <config.h>

#include "base.h"
#include "class.h"
#include "harness.h"
#include "os.h"
#include "slab.h"

// ---- sizes

// The list of the header, spelled out: 16-byte steps to 256, 16 per doubling to 1 KiB, 64-byte
// steps to 4 KiB, 32 per doubling.
static size_t slow_sizes(size_t sizes[PMA_CLASSES]) {
    size_t count = 0;
    sizes[count++] = 16;
    for (size_t size = 16; size <= PMA_SLOT_MAX;) {
        sizes[count++] = size;
        size_t doubling = 16;
        while (2 * doubling <= size) {
            doubling *= 2;
        }
        size += size < 256 ? 16 : size < 1024 ? doubling / 16 : size < 4096 ? 64 : doubling / 32;
    }
    return count;
}

static void check_sizes(void) {
    size_t sizes[PMA_CLASSES];
    REQUIRE(slow_sizes(sizes) == PMA_CLASSES);
    for (unsigned class = 0; class < PMA_CLASSES; class ++) {
        CHECK_EQ(class_size(class), sizes[class]);
        CHECK_EQ(class_size(class) % PMA_SLOT_MIN, 0);
    }
    unsigned class = 0;
    for (size_t size = 0; size <= PMA_SLOT_MAX; size++) {
        while (size > 0 && (class == 0 || sizes[class] < size)) {
            class ++;
        }
        if (class_of(size) != class) {
            CHECK_SAY(false, "class_of(%zu) is %u and not %u", size, class_of(size), class);
        }
    }
    CHECK_EQ(class_size(PMA_CLASSES - 1), PMA_SLOT_MAX);
}

// What a size is rounded to in an arena with the classes of a grade.
static size_t rounded(size_t size, enum grade grade) {
    return align_up(size, pma_class_step(size, grade));
}

// Rounding wastes at most 15 bytes up to 256, or a sixteenth; at first a quarter, and less than a
// thirty-second of large slots in the end.
static void check_rounding(void) {
    for (size_t size = 1; size <= PMA_SLOT_MAX; size++) {
        for (enum grade grade = GRADE_COARSE; grade < GRADES; grade++) {
            size_t slot = rounded(size, grade);
            size_t part = grade == GRADE_COARSE ? 4 : grade == GRADE_FINE && size > 2048 ? 32 : 16;
            size_t most = size_max(15, (size - 1) / part);
            CHECK_SAY(slot >= size && slot - size <= most, "%zu bytes in %zu, grade %d", size, slot,
                      (int)grade);
            CHECK_EQ(class_size(class_of(slot)), slot);
            // Finer classes lie between coarser ones.
            CHECK(grade == GRADE_COARSE || slot <= rounded(size, grade - 1));
        }
        CHECK(class_size(class_of(size)) <= rounded(size, GRADE_FINE));
    }
    CHECK_EQ(rounded(150, GRADE_COARSE), 160);
    CHECK_EQ(rounded(150, GRADE_MIDDLE), 160);
    CHECK_EQ(rounded(161, GRADE_MIDDLE), 176);
    CHECK_EQ(rounded(5000, GRADE_COARSE), 5120);
    CHECK_EQ(rounded(5121, GRADE_COARSE), 6144);
    CHECK_EQ(rounded(5121, GRADE_MIDDLE), 5376);
    CHECK_EQ(rounded(5121, GRADE_FINE), 5248);
}

// Whatever is a multiple of a power of two up to the page has slots that are so, too, in every
// grade: pma_alloc_aligned counts on it.
static void check_multiples(void) {
    for (size_t alignment = 16; alignment <= PMA_SLOT_MAX; alignment *= 2) {
        for (size_t size = alignment; size <= PMA_SLOT_MAX; size += alignment) {
            for (enum grade grade = GRADE_COARSE; grade < GRADES; grade++) {
                CHECK_SAY(rounded(size, grade) % alignment == 0,
                          "slots for %zu are no multiples of %zu in grade %d", size, alignment,
                          (int)grade);
            }
        }
    }
}

// ---- shapes

static void check_mask(void) {
    for (unsigned shift = 0; shift <= PMA_SHIFT_MAX; shift++) {
        for (unsigned bit = 0; bit < 64; bit++) {
            CHECK_EQ(shape_mask(shift) >> bit & 1, bit % (1u << shift) == 0);
        }
    }
}

// A draw names one of sixteen bits, four apart, and takes the first slot from there on: in a word
// of sixteen slots or fewer that is even.
static void check_even(void) {
    for (unsigned shift = 2; shift <= PMA_SHIFT_MAX; shift++) {
        unsigned drawn[64] = { 0 };
        for (unsigned rotation = 0; rotation < 64; rotation += 4) {
            uint64_t turned = bits_rotate_right(shape_mask(shift), rotation);
            drawn[(bits_lowest(turned) + rotation) & 63]++;
        }
        for (unsigned bit = 0; bit < 64; bit++) {
            CHECK_EQ(drawn[bit], (shape_mask(shift) >> bit & 1) != 0 ? (1u << shift) / 4 : 0);
        }
    }
}

static size_t shape_slots(struct shape shape) {
    return (size_t)shape.words * (64u >> shape.shift);
}

static void check_shape(size_t size, unsigned level, struct shape shape) {
    size_t bytes = (size_t)shape.npages << pma_page_shift;
    size_t used = shape_slots(shape) * size;
    bool good =
        shape.words >= 1 && shape.words <= PMA_SLAB_WORDS_MAX && shape.shift <= PMA_SHIFT_MAX;
    CHECK_SAY(good, "%zu at level %u: %u words, shift %u", size, level, shape.words, shape.shift);
    // A bit is whole bytes.
    CHECK_EQ(size % ((size_t)1 << shape.shift), 0);
    CHECK_SAY(bytes >= used && bytes - used < pma_page_size,
              "%zu at level %u: %zu bytes for slots of %zu", size, level, bytes, used);
    // A slab of many words ends well: slots of 48 bytes on a page of 64 KiB leave 1024 of it; on
    // larger pages large slots end in up to half a page.
    size_t part = pma_page_size > PMA_GRANULE && size > PMA_FINE_MAX ? 30 : 63;
    CHECK_SAY(shape.words < 16 || (bytes - used) * part <= used, "%zu at level %u: tail of %zu",
              size, level, bytes - used);
    size_t span = pma_slab_span_words(size, shape);
    CHECK_SAY(span >= shape.words && span <= PMA_SLAB_WORDS_MAX + 1, "%zu at level %u: span %zu",
              size, level, span);
    unsigned capacity = pma_slab_capacity(span);
    REQUIRE(capacity < PMA_SLAB_CAPACITIES);
    CHECK_AT_MOST(span, pma_slab_capacities[capacity]);
    CHECK(capacity == 0 || pma_slab_capacities[capacity - 1] < span);
    // A descriptor against what it describes: most is 384 bytes for 4096.
    CHECK_AT_MOST(pma_slab_descriptor_size(capacity) * 10, bytes);
}

static void check_levels(unsigned class) {
    size_t size = class_size(class);
    struct shape before = { 0, 0, 0 };
    for (unsigned level = 0; level < PMA_LEVELS; level++) {
        struct shape shape = pma_class_shape(size, level);
        check_shape(size, level, shape);
        // A slab may be cut shorter where a longer word ends worse, but by less than half.
        CHECK_SAY(2 * shape_slots(shape) > shape_slots(before), "%zu shrinks at level %u", size,
                  level);
        CHECK_SAY(level == 0 || shape_slots(shape) <= 5 * shape_slots(before),
                  "%zu jumps at level %u", size, level);
        CHECK_SAY(level == 0 || shape.shift <= before.shift, "%zu has shorter words at level %u",
                  size, level);
        before = shape;
    }
    // No longer than it takes for words of 64 slots: twice, if it ends better so.
    size_t most = 2 * size_max(PMA_SLAB_BYTES_MAX, 64 * size);
    CHECK_AT_MOST((size_t)before.npages << pma_page_shift, align_up(most, pma_page_size));
}

// The first slab of a class is small: three pages, or 16 slots.
static void check_first(unsigned class) {
    size_t size = class_size(class);
    struct shape shape = pma_class_shape(size, 0);
    size_t least = align_up(16 * size, pma_page_size);
    size_t tight = size_max(least, 3 * pma_page_size);
    CHECK_AT_MOST((size_t)shape.npages << pma_page_shift, tight);
}

// Classes of whole pages are exact.
static void check_exact(unsigned class) {
    size_t size = class_size(class);
    for (unsigned level = 0; level < PMA_LEVELS && size % pma_page_size == 0; level++) {
        struct shape shape = pma_class_shape(size, level);
        CHECK_EQ((size_t)shape.npages << pma_page_shift, shape_slots(shape) * size);
    }
}

// Of slabs as long as they get, the mean tail over all classes is 0.0006 with pages of 4 KiB, 0.024
// with 16 KiB and 0.098 with 64 KiB.
static void check_waste(double most) {
    double sum = 0;
    for (unsigned class = 1; class < PMA_CLASSES; class ++) {
        struct shape shape = pma_class_shape(class_size(class), PMA_LEVELS - 1);
        double bytes = (double)((size_t)shape.npages << pma_page_shift);
        sum += 1 - (double)(shape_slots(shape) * class_size(class)) / bytes;
    }
    CHECK_SAY(sum / (PMA_CLASSES - 1) <= most, "%.4f of slabs with pages of %zu is tail",
              sum / (PMA_CLASSES - 1), pma_page_size);
}

int main(void) {
    static const double tails[] = { 0.01, 0.05, 0.12 };
    static const char *const pages[] = { "4096", "16384", "65536" };
    test_begin(60);
    check_sizes();
    check_rounding();
    check_multiples();
    check_mask();
    check_even();
    for (size_t i = 0; i < 3; i++) {
        REQUIRE(setenv("PMA_TEST_PAGE", pages[i], 1) == 0);
        pma_os_init();
        for (unsigned class = 0; class < PMA_CLASSES; class ++) {
            check_levels(class);
            check_first(class);
            check_exact(class);
        }
        check_waste(tails[i]);
    }
    return test_end();
}

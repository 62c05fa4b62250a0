// parse.c - what is a number, a size, a word or a flag, what is not, and how alike two names are.
#include <config.h>

#include "base.h"
#include "harness.h"
#include "parse.h"

// A slice behind which and before which stands what would be taken for more of it.
static struct slice slice_of(const char *text) {
    static char around[256];
    size_t length = strlen(text);
    REQUIRE(length + 2 <= sizeof(around));
    around[0] = '7';
    memcpy(around + 1, text, length);
    around[length + 1] = '7';
    return (struct slice){ around + 1, length };
}

static void check_trim(void) {
    static const char *const texts[][2] = {
        { "", "" },     { " \t\r ", "" },       { "a", "a" },          { " a", "a" },
        { "a\t", "a" }, { "\r a b \t", "a b" }, { " \na\n ", "\na\n" }
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *text = texts[i][0];
        struct slice slice = pma_slice_trim(text, text + strlen(text));
        CHECK_SAY(pma_slice_is(slice, texts[i][1], strlen(texts[i][1])), "\"%s\"", text);
        CHECK(slice.start >= text && slice.start + slice.length <= text + strlen(text));
    }
    CHECK(!pma_slice_is(slice_of("abc"), "abd", 3));
    CHECK(!pma_slice_is(slice_of("abc"), "abcd", 4));
    // Behind the slice there is a 7.
    CHECK(!pma_slice_is(slice_of("abc"), "abc7", 4));
    CHECK(!pma_slice_is(slice_of("abc"), "ab", 2));
}

typedef bool (*parser)(struct slice text, uint64_t *number);

struct trial {
    const char *text;
    bool good;
    uint64_t number;
};

static void check_all(parser parse, const struct trial *trials, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint64_t number = 77;
        bool good = parse(slice_of(trials[i].text), &number);
        CHECK_SAY(good == trials[i].good, "\"%s\" is %s", trials[i].text, good ? "good" : "bad");
        CHECK_SAY(!good || number == trials[i].number, "\"%s\" is %ju", trials[i].text,
                  (uintmax_t)number);
    }
}

#define CHECK_ALL(parse, trials) check_all(parse, trials, sizeof(trials) / sizeof(trials[0]))

static void check_numbers(void) {
    static const struct trial trials[] = {
        { "0", true, 0 },
        { "9", true, 9 },
        { "1234567890", true, 1234567890 },
        { "0000000000000000000000000000012", true, 12 },
        { "18446744073709551615", true, UINT64_MAX },
        { "18446744073709551616", false, 0 },
        { "18446744073709551620", false, 0 },
        { "99999999999999999999999", false, 0 },
        { "0x0", true, 0 },
        { "0XaF", true, 0xaf },
        { "0x0123456789abcdef", true, 0x0123456789abcdef },
        { "0xffffffffffffffff", true, UINT64_MAX },
        { "0x10000000000000000", false, 0 },
        { "", false, 0 },
        { "0x", false, 0 },
        { "x1", false, 0 },
        { "1x1", false, 0 },
        { "0xg", false, 0 },
        { "0x@", false, 0 },
        { "1a", false, 0 },
        { "1 ", false, 0 },
        { " 1", false, 0 },
        { "-1", false, 0 },
        { "+1", false, 0 },
        { "1:", false, 0 },
        { "1/", false, 0 },
        { "1\xb1", false, 0 },
        { "1K", false, 0 },
    };
    CHECK_ALL(pma_parse_number, trials);
    uint64_t number;
    CHECK(!pma_parse_number((struct slice){ "1\0002", 3 }, &number));
}

static void check_sizes(void) {
    static const struct trial trials[] = {
        { "0", true, 0 },
        { "17", true, 17 },
        { "1K", true, 1024 },
        { "1k", true, 1024 },
        { "3M", true, 3 << 20 },
        { "3m", true, 3 << 20 },
        { "5G", true, (uint64_t)5 << 30 },
        { "2t", true, (uint64_t)2 << 40 },
        { "0x10K", true, 16 << 10 },
        { "16777215T", true, (uint64_t)16777215 << 40 },
        { "16777216T", false, 0 },
        { "18446744073709551615", true, UINT64_MAX },
        { "18446744073709551615K", false, 0 },
        { "K", false, 0 },
        { "", false, 0 },
        { "1KK", false, 0 },
        { "1KB", false, 0 },
        { "1P", false, 0 },
        { "1 K", false, 0 },
        { "1.5K", false, 0 },
        { "-1K", false, 0 },
    };
    CHECK_ALL(pma_parse_size, trials);
}

static bool parse_colour(struct slice text, uint64_t *number) {
    return pma_parse_word(text, "red|green|blue", number);
}

static void check_words(void) {
    static const struct trial trials[] = {
        { "red", true, 0 },     { "green", true, 1 },      { "blue", true, 2 }, { "", false, 0 },
        { "re", false, 0 },     { "reds", false, 0 },      { "lue", false, 0 }, { "|", false, 0 },
        { "green|", false, 0 }, { "red|green", false, 0 }, { "Red", false, 0 }, { "0", false, 0 },
    };
    CHECK_ALL(parse_colour, trials);
    static const struct trial flags[] = {
        { "0", true, 0 },   { "1", true, 1 },     { "no", true, 0 },    { "yes", true, 1 },
        { "off", true, 0 }, { "on", true, 1 },    { "false", true, 0 }, { "true", true, 1 },
        { "2", false, 0 },  { "", false, 0 },     { "o", false, 0 },    { "yes!", false, 0 },
        { "00", false, 0 }, { "TRUE", false, 0 },
    };
    CHECK_ALL(pma_parse_flag, flags);
}

static void check_value(struct kind kind, const char *text, bool good, uint64_t number) {
    uint64_t found = 77;
    CHECK_SAY(pma_parse_value(&kind, slice_of(text), &found) == good, "%s", text);
    CHECK_SAY(!good || found == number, "%s is %ju", text, (uintmax_t)found);
}

static void check_values(void) {
    struct kind number = { KIND_NUMBER, 10, 20, "" };
    check_value(number, "9", false, 0);
    check_value(number, "10", true, 10);
    check_value(number, "0x14", true, 20);
    check_value(number, "21", false, 0);
    check_value(number, "yes", false, 0);
    struct kind size = { KIND_SIZE, 4096, 1 << 20, "" };
    check_value(size, "4095", false, 0);
    check_value(size, "4K", true, 4096);
    check_value(size, "3K", false, 0);
    check_value(size, "1M", true, 1 << 20);
    check_value(size, "1048577", false, 0);
    check_value(size, "2M", false, 0);
    struct kind flag = { KIND_FLAG, 0, 1, "" };
    check_value(flag, "on", true, 1);
    check_value(flag, "2", false, 0);
    struct kind choice = { KIND_CHOICE, 0, 2, "red|green|blue" };
    check_value(choice, "blue", true, 2);
    check_value(choice, "2", false, 0);
    choice.greatest = 1;
    check_value(choice, "blue", false, 0);
}

static void check_distances(void) {
    static const struct {
        const char *a;
        const char *b;
        unsigned far;
    } trials[] = {
        { "seed", "seed", 0 },
        { "SEED", "seed", 0 },
        { "Realloc-Zero", "realloc_zero", 0 },
        { "", "seed", 4 },
        { "seed", "", 4 },
        { "sead", "seed", 1 },
        { "see", "seed", 1 },
        { "seeds", "seed", 1 },
        { "sede", "seed", 1 },
        { "esed", "seed", 1 },
        { "desed", "seed", 2 },
        { "abcd", "wxyz", 4 },
        { "kitten", "sitting", 3 },
        // Two letters that changed places may not be changed again.
        { "ca", "abc", 3 },
        { "aaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbb", 24 },
        { "aaaaaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaaaaaaaa", 0 },
    };
    for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
        unsigned far = pma_names_distance(slice_of(trials[i].a), trials[i].b);
        CHECK_SAY(far == trials[i].far, "%s to %s is %u", trials[i].a, trials[i].b, far);
        unsigned back = pma_names_distance(slice_of(trials[i].b), trials[i].a);
        CHECK_SAY(back == far, "%s to %s is %u, back %u", trials[i].a, trials[i].b, far, back);
    }
    CHECK_EQ(strlen(trials[14].a), PMA_NAME_MAX);
}

int main(void) {
    test_begin(20);
    check_trim();
    check_numbers();
    check_sizes();
    check_words();
    check_values();
    check_distances();
    return test_end();
}

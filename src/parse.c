// parse.c - words, numbers and sizes in text, and how alike two names are.
#include <config.h>

#include "parse.h"

#include <string.h>

static bool is_blank(char letter) {
    return letter == ' ' || letter == '\t' || letter == '\r';
}

struct slice pma_slice_trim(const char *start, const char *end) {
    while (start < end && is_blank(*start)) {
        start++;
    }
    while (start < end && is_blank(end[-1])) {
        end--;
    }
    return (struct slice){ start, (size_t)(end - start) };
}

bool pma_slice_is(struct slice slice, const char *text, size_t length) {
    return slice.length == length && memcmp(slice.start, text, length) == 0;
}

bool pma_parse_number(struct slice text, uint64_t *number) {
    bool hex = text.length > 2 && text.start[0] == '0' && (text.start[1] | 32) == 'x';
    unsigned base = hex ? 16 : 10;
    *number = 0;
    for (size_t i = hex ? 2 : 0; i < text.length; i++) {
        unsigned digit = (unsigned char)text.start[i];
        digit = digit >= '0' && digit <= '9'                 ? digit - '0'
                : (digit | 32) >= 'a' && (digit | 32) <= 'f' ? (digit | 32) - 'a' + 10
                                                             : base;
        if (digit >= base || __builtin_mul_overflow(*number, base, number) ||
            __builtin_add_overflow(*number, digit, number)) {
            return false;
        }
    }
    return text.length > 0;
}

bool pma_parse_size(struct slice text, uint64_t *number) {
    static const char units[] = "kmgt";
    unsigned shift = 0;
    for (unsigned i = 0; i < 4 && text.length > 0; i++) {
        if ((text.start[text.length - 1] | 32) == units[i]) {
            shift = 10 * (i + 1);
            text.length--;
            break;
        }
    }
    return pma_parse_number(text, number) &&
           !__builtin_mul_overflow(*number, (uint64_t)1 << shift, number);
}

bool pma_parse_word(struct slice text, const char *words, uint64_t *number) {
    for (*number = 0;; ++*number) {
        size_t length = strcspn(words, "|");
        if (pma_slice_is(text, words, length)) {
            return true;
        }
        words += length;
        if (*words++ == '\0') {
            return false;
        }
    }
}

bool pma_parse_flag(struct slice text, uint64_t *number) {
    bool known = pma_parse_word(text, "0|1|no|yes|off|on|false|true", number);
    *number &= 1;
    return known;
}

static bool type_parse(const struct kind *kind, struct slice text, uint64_t *number) {
    switch (kind->type) {
    case KIND_FLAG:
        return pma_parse_flag(text, number);
    case KIND_SIZE:
        return pma_parse_size(text, number);
    case KIND_CHOICE:
        return pma_parse_word(text, kind->words, number);
    default:
        return pma_parse_number(text, number);
    }
}

bool pma_parse_value(const struct kind *kind, struct slice text, uint64_t *number) {
    return type_parse(kind, text, number) && *number >= kind->least && *number <= kind->greatest;
}

// ---- how alike names are

static unsigned char folded(char letter) {
    return letter == '-' ? '_'
                         : (unsigned char)(letter >= 'A' && letter <= 'Z' ? letter | 32 : letter);
}

// Rows and columns are letters done; three rows are enough.
unsigned pma_names_distance(struct slice a, const char *b) {
    unsigned char rows[3][PMA_NAME_MAX + 1];
    size_t length = strlen(b);
    for (size_t j = 0; j <= length; j++) {
        rows[0][j] = (unsigned char)j;
    }
    for (size_t i = 1; i <= a.length; i++) {
        unsigned char *row = rows[i % 3];
        const unsigned char *above = rows[(i - 1) % 3];
        row[0] = (unsigned char)i;
        for (size_t j = 1; j <= length; j++) {
            bool same = folded(a.start[i - 1]) == folded(b[j - 1]);
            size_t least = size_min(size_min(above[j], row[j - 1]) + 1u, above[j - 1] + !same);
            if (i > 1 && j > 1 && folded(a.start[i - 1]) == folded(b[j - 2]) &&
                folded(a.start[i - 2]) == folded(b[j - 1])) {
                least = size_min(least, rows[(i - 2) % 3][j - 2] + 1u);
            }
            row[j] = (unsigned char)least;
        }
    }
    return rows[a.length % 3][length];
}

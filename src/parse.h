// parse.h - words, numbers and sizes in text, and how alike two names are.
//
// Owns nothing: text comes as slices, which need not end in a zero. It must not know what options
// there are.
#ifndef PMA_PARSE_H
#define PMA_PARSE_H

#include "base.h"

struct slice {
    const char *start;
    size_t length;
};

// Without the blanks at both ends.
struct slice pma_slice_trim(const char *start, const char *end);

bool pma_slice_is(struct slice slice, const char *text, size_t length);

// The whole of the text: decimal digits, or hexadecimal ones behind 0x. False if there is anything
// else in it, or the number does not fit.
bool pma_parse_number(struct slice text, uint64_t *number);

// The same, or with K, M, G or T behind it: times 1024, once to four times.
bool pma_parse_size(struct slice text, uint64_t *number);

// The place, from 0, of the text among words with bars between them. False if it is none of them.
bool pma_parse_word(struct slice text, const char *words, uint64_t *number);

// 0 or 1, or a pair of words that are commonly used for them.
bool pma_parse_flag(struct slice text, uint64_t *number);

// What values there are, and what may be chosen of them.
struct kind {
    enum { KIND_FLAG, KIND_NUMBER, KIND_SIZE, KIND_CHOICE } type;
    uint64_t least;
    uint64_t greatest;
    const char *words; // of a choice
};

// One of them. False if the text is no such value.
bool pma_parse_value(const struct kind *kind, struct slice text, uint64_t *number);

// Neither name of a pair may be longer to be compared.
enum { PMA_NAME_MAX = 24 };

// How many letters must be put in, left out, replaced, or swapped with their neighbour, to make one
// name of the other (the distance that is called optimal string alignment). Large and small letters
// are the same, - and _ too.
unsigned pma_names_distance(struct slice a, const char *b);

#endif

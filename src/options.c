// options.c - what a user may choose when the program starts.
#include <config.h>

#include "options.h"

#include "fatal.h"
#include "os.h"

#include <stdlib.h>
#include <string.h>

enum option_type {
    OPTION_FLAG,  // the name alone, or name=0 or 1
    OPTION_NUMBER // name=N, decimal or 0x...
};

struct option {
    const char *name;
    enum option_type type;
    uint64_t initial;
    uint64_t least;
    uint64_t greatest;
    const char *sentence;
    size_t offset;
};

static const struct option table[] = {
#define OPTION(name, type, initial, least, greatest, sentence) \
    { #name, type, initial, least, greatest, sentence, offsetof(struct options, name) },
#include "options.def"
#undef OPTION
};

#define OPTIONS (sizeof(table) / sizeof(table[0]))

struct options pma_options = {
#define OPTION(name, type, initial, least, greatest, sentence) .name = initial,
#include "options.def"
#undef OPTION
};

static uint64_t *value_of(const struct option *option) {
    return (uint64_t *)((char *)&pma_options + option->offset);
}

// Digits up to the end; false if there is anything else or the number does not fit.
static bool number_parse(const char *text, size_t length, uint64_t *number) {
    bool hex = length > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    unsigned base = hex ? 16 : 10;
    *number = 0;
    for (size_t i = hex ? 2 : 0; i < length; i++) {
        unsigned digit = (unsigned char)text[i];
        digit = digit >= '0' && digit <= '9'                 ? digit - '0'
                : (digit | 32) >= 'a' && (digit | 32) <= 'f' ? (digit | 32) - 'a' + 10
                                                             : base;
        if (digit >= base || __builtin_mul_overflow(*number, base, number) ||
            __builtin_add_overflow(*number, digit, number)) {
            return false;
        }
    }
    return length > (hex ? 2 : 0);
}

static void complain(const char *text, const char *item, size_t length) {
    char name[64];
    length = size_min(length, sizeof(name) - 1);
    memcpy(name, item, length);
    name[length] = '\0';
    pma_warn(text, name);
}

// One item, name or name=value. An item that is not understood is named on stderr and changes
// nothing.
static void item_parse(const char *item, size_t length) {
    const char *equals = memchr(item, '=', length);
    size_t name_length = equals == NULL ? length : (size_t)(equals - item);
    for (size_t i = 0; i < OPTIONS; i++) {
        const struct option *option = &table[i];
        if (strlen(option->name) != name_length || memcmp(option->name, item, name_length) != 0) {
            continue;
        }
        uint64_t number = 1;
        bool good = equals == NULL ? option->type == OPTION_FLAG
                                   : number_parse(equals + 1, length - name_length - 1, &number);
        if (good && number >= option->least && number <= option->greatest) {
            *value_of(option) = number;
        } else {
            complain("bad value of option", item, length);
        }
        return;
    }
    complain("unknown option", item, length);
}

static void text_parse(const char *text) {
    while (*text != '\0') {
        size_t length = strcspn(text, ",");
        if (length > 0) {
            item_parse(text, length);
        }
        text += length + (text[length] == ',');
    }
}

static void help_print(void) {
    for (size_t i = 0; i < OPTIONS; i++) {
        struct fatal_line line = { .length = 0 };
        pma_line_text(&line, "pamalloc: ");
        pma_line_text(&line, table[i].name);
        pma_line_text(&line, table[i].type == OPTION_NUMBER ? "=N (" : " (");
        pma_line_decimal(&line, table[i].initial);
        pma_line_text(&line, "): ");
        pma_line_text(&line, table[i].sentence);
        pma_line_text(&line, "\n");
        pma_line_write(&line, 2);
    }
}

void pma_options_init(void) {
    const char *text = pma_os_is_privileged() ? NULL : getenv("PAMALLOC_OPTIONS");
    if (text != NULL) {
        text_parse(text);
    }
    if (pma_options.help != 0) {
        help_print();
    }
}

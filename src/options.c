// options.c - what a user may choose when the program starts.
//
// Nothing here allocates. What is not understood costs one line on standard error and changes
// nothing: a program never fails to start because of an option.
#include <config.h>

#include "options.h"

#include "fatal.h"
#include "os.h"
#include "parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Longer items are cut in messages.
enum { ITEM_SHOWN = 40 };
// It lies on the stack, which at the start of a program is the first thread's.
enum { FILE_SIZE_MAX = 8192 };

struct option {
    const char *name;
    struct kind kind;
    uint64_t initial;
    const char *sentence;
    size_t offset;
};

static const struct option table[] = {
#define OPTION(name, type, initial, least, greatest, words, sentence) \
    { #name, \
      { KIND_##type, least, greatest, words }, \
      initial, \
      sentence, \
      offsetof(struct options, name) },
#include "options.def"
#undef OPTION
};

#define OPTIONS (sizeof(table) / sizeof(table[0]))

// Among what the loader closes to writing when it has relocated it: who chooses nothing pays for no
// page of our own and no call. Inside one page, since a page is opened when something is chosen.
struct options pma_options PMA_ALIGNED(512) __attribute__((section(".data.rel.ro.pma_options"))) = {
#define OPTION(name, type, initial, least, greatest, words, sentence) .name = initial,
#include "options.def"
#undef OPTION
};

_Static_assert(sizeof(struct options) <= 512, "the options lie inside one page");

// The program's own string, if it has one that the linker or the loader can see. <pamalloc.h> says
// the same to programs, but not that there may be none.
extern const char *pamalloc_options __attribute__((weak, visibility("default")));

// What is being read, and what has been understood so far.
struct reading {
    struct options chosen;
    const char *place; // for messages
    unsigned line;     // from 1; 0: the place has no lines
};

static uint64_t *value_of(struct options *options, const struct option *option) {
    return (uint64_t *)((char *)options + option->offset);
}

// ---- lines

static void line_slice(struct fatal_line *line, struct slice slice) {
    pma_line_text(line, "\"");
    for (size_t i = 0; i < size_min(slice.length, ITEM_SHOWN); i++) {
        char letter[2] = { slice.start[i], '\0' };
        if (letter[0] < ' ' || letter[0] > '~') {
            letter[0] = '?';
        }
        pma_line_text(line, letter);
    }
    pma_line_text(line, slice.length > ITEM_SHOWN ? "...\"" : "\"");
}

static void line_word(struct fatal_line *line, const char *words, uint64_t place) {
    for (; place > 0; place--) {
        words = strchr(words, '|') + 1;
    }
    for (; *words != '\0' && *words != '|'; words++) {
        pma_line_text(line, (const char[2]){ *words, '\0' });
    }
}

static void line_value(struct fatal_line *line, const struct option *option, uint64_t value) {
    if (option->kind.type == KIND_CHOICE) {
        line_word(line, option->kind.words, value);
    } else if (option->kind.type == KIND_SIZE) {
        pma_line_size(line, value);
    } else {
        pma_line_decimal(line, value);
    }
}

static void line_range(struct fatal_line *line, const struct option *option) {
    if (option->kind.type == KIND_CHOICE) {
        pma_line_text(line, option->kind.words);
        return;
    }
    line_value(line, option, option->kind.least);
    pma_line_text(line, option->kind.type == KIND_FLAG ? "|" : " to ");
    line_value(line, option, option->kind.greatest);
}

static struct fatal_line line_begin(const struct reading *reading) {
    struct fatal_line line = { .length = 0 };
    pma_line_text(&line, "pamalloc: ");
    pma_line_text(&line, reading->place);
    if (reading->line != 0) {
        pma_line_text(&line, ":");
        pma_line_decimal(&line, reading->line);
    }
    pma_line_text(&line, ": ");
    return line;
}

static void line_tell(struct fatal_line *line) {
    pma_line_end(line);
    pma_line_write(line, STDERR_FILENO);
}

// ---- the nearest name

// The known name that is most like this one, if more than half of it is right: NULL if none is.
static const char *nearest(struct slice name) {
    const char *found = NULL;
    unsigned best = PMA_NAME_MAX;
    for (size_t i = 0; i < OPTIONS && name.length <= PMA_NAME_MAX; i++) {
        unsigned far = pma_names_distance(name, table[i].name);
        if (far < best && 2 * far < size_max(name.length, strlen(table[i].name))) {
            best = far;
            found = table[i].name;
        }
    }
    return found;
}

// ---- items

static void unknown_tell(const struct reading *reading, struct slice name) {
    struct fatal_line line = line_begin(reading);
    const char *near = nearest(name);
    pma_line_text(&line, "unknown option ");
    line_slice(&line, name);
    if (near != NULL) {
        pma_line_text(&line, ", the nearest is \"");
        pma_line_text(&line, near);
        pma_line_text(&line, "\"");
    }
    line_tell(&line);
}

static void value_refuse(const struct reading *reading, const struct option *option,
                         struct slice value) {
    struct fatal_line line = line_begin(reading);
    pma_line_text(&line, "bad value ");
    line_slice(&line, value);
    pma_line_text(&line, " of option ");
    pma_line_text(&line, option->name);
    pma_line_text(&line, ": ");
    line_range(&line, option);
    line_tell(&line);
}

// One item, name or name=value.
static void item_read(struct reading *reading, const char *start, const char *end) {
    struct slice item = pma_slice_trim(start, end);
    if (item.length == 0) {
        return;
    }
    const char *equals = memchr(item.start, '=', item.length);
    struct slice name = pma_slice_trim(item.start, equals == NULL ? end : equals);
    struct slice value = equals == NULL ? (struct slice){ "", 0 } : pma_slice_trim(equals + 1, end);
    for (size_t i = 0; i < OPTIONS; i++) {
        const struct option *option = &table[i];
        if (!pma_slice_is(name, option->name, strlen(option->name))) {
            continue;
        }
        uint64_t number = 1;
        if ((equals == NULL && option->kind.type == KIND_FLAG) ||
            pma_parse_value(&option->kind, value, &number)) {
            *value_of(&reading->chosen, option) = number;
        } else {
            value_refuse(reading, option, value);
        }
        return;
    }
    unknown_tell(reading, name);
}

// What stands behind # is a comment; items end at a comma.
static void line_read(struct reading *reading, const char *start, const char *end) {
    const char *comment = memchr(start, '#', (size_t)(end - start));
    end = comment == NULL ? end : comment;
    for (;;) {
        const char *comma = memchr(start, ',', (size_t)(end - start));
        item_read(reading, start, comma == NULL ? end : comma);
        if (comma == NULL) {
            return;
        }
        start = comma + 1;
    }
}

static void text_read(struct reading *reading, const char *text, size_t length) {
    const char *end = text + length;
    for (;;) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        line_read(reading, text, newline == NULL ? end : newline);
        if (newline == NULL) {
            return;
        }
        text = newline + 1;
        reading->line += reading->line != 0;
    }
}

// ---- places

// A library for tests may be installed: messages would show lines of files that the caller may not
// read.
static const char *file_path(void) {
    const char *path = PMA_TEST && !pma_os_is_privileged() ? getenv("PMA_TEST_CONF") : NULL;
    return path == NULL ? PMA_CONF_FILE : path;
}

// What says that there is a file. A sandbox, or a process without a free descriptor, gets other
// errors, and so does nearly everybody: it is not there.
static const char *error_text(ptrdiff_t error) {
    switch (error) {
    case -EACCES:
        return "permission denied";
    case -EISDIR:
        return "a directory";
    case -ELOOP:
        return "too many links";
    case -EIO:
        return "input/output error";
    case -EAGAIN:
    case -ENXIO:
        return "no plain file";
    default:
        return NULL;
    }
}

static void file_read(struct reading *reading) {
    char text[FILE_SIZE_MAX];
    reading->place = file_path();
    ptrdiff_t length = pma_os_read_file(reading->place, text, sizeof(text));
    const char *error = length == FILE_SIZE_MAX ? "longer than 8191 bytes" : error_text(length);
    if (error != NULL) {
        struct fatal_line line = line_begin(reading);
        pma_line_text(&line, "not read: ");
        pma_line_text(&line, error);
        line_tell(&line);
    }
    if (error != NULL || length <= 0) {
        return;
    }
    reading->line = 1;
    text_read(reading, text, (size_t)length);
    reading->line = 0;
}

static void string_read(struct reading *reading, const char *place, const char *text) {
    if (text != NULL) {
        reading->place = place;
        text_read(reading, text, strlen(text));
    }
}

// ---- telling

enum { COLUMN_NAME, COLUMN_VALUES, COLUMN_DEFAULT, COLUMN_SENTENCE, COLUMNS };

// The row without an option is the head.
static void line_column(struct fatal_line *line, const struct option *option, unsigned column) {
    static const char *const heads[COLUMNS] = { "option", "values", "default", "what it does" };
    if (option == NULL) {
        pma_line_text(line, heads[column]);
    } else if (column == COLUMN_VALUES) {
        line_range(line, option);
    } else if (column == COLUMN_DEFAULT) {
        line_value(line, option, option->initial);
    } else {
        pma_line_text(line, column == COLUMN_NAME ? option->name : option->sentence);
    }
}

static const struct option *row_option(size_t row) {
    return row == 0 ? NULL : &table[row - 1];
}

static void help_print(void) {
    size_t starts[COLUMNS] = { 2 };
    for (unsigned column = 0; column < COLUMN_SENTENCE; column++) {
        size_t width = 0;
        for (size_t row = 0; row <= OPTIONS; row++) {
            struct fatal_line line = { .length = 0 };
            line_column(&line, row_option(row), column);
            width = size_max(width, line.length);
        }
        starts[column + 1] = starts[column] + width + 2;
    }
    for (size_t row = 0; row <= OPTIONS; row++) {
        struct fatal_line line = { .length = 0 };
        for (unsigned column = 0; column < COLUMNS; column++) {
            while (line.length < starts[column]) {
                pma_line_text(&line, " ");
            }
            line_column(&line, row_option(row), column);
        }
        line_tell(&line);
    }
}

static void version_tell(const struct options *chosen) {
    struct fatal_line line = { .length = 0 };
    pma_line_text(&line, "pamalloc: version " PACKAGE_VERSION);
    for (size_t i = 0; i < OPTIONS; i++) {
        uint64_t value;
        memcpy(&value, (const char *)chosen + table[i].offset, sizeof(value));
        if (value != table[i].initial) {
            pma_line_text(&line, " ");
            pma_line_text(&line, table[i].name);
            pma_line_text(&line, "=");
            line_value(&line, &table[i], value);
        }
    }
    line_tell(&line);
}

void pma_options_init(void) {
    struct reading reading = { .chosen = pma_options };
    file_read(&reading);
    string_read(&reading, "pamalloc_options", &pamalloc_options == NULL ? NULL : pamalloc_options);
    string_read(&reading, "PAMALLOC_OPTIONS",
                pma_os_is_privileged() ? NULL : getenv("PAMALLOC_OPTIONS"));
    // The page is opened only if there is something to write.
    if (memcmp(&reading.chosen, &pma_options, sizeof(pma_options)) != 0 &&
        !pma_os_overwrite((uint64_t *)&pma_options, &reading.chosen, sizeof(pma_options))) {
        struct fatal_line line = { .length = 0 };
        pma_line_text(&line, "pamalloc: the kernel lets no option be set");
        line_tell(&line);
    }
    if (pma_options.help != 0) {
        help_print();
    }
    if (pma_options.verbose != 0) {
        version_tell(&pma_options);
    }
}

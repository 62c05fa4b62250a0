// options.c - every option of the table is parsed within its bounds, from three places of which the
// later wins, and what is not understood is told and changes nothing.
//
// Options are read once a process, so each text is tried in a child.
#include <config.h>

#include "base.h"
#include "fatal.h"
#include "harness.h"
#include "options.h"
#include "os.h"
#include "parse.h"

#include <sys/auxv.h>
#include <sys/stat.h>

// The linker puts this in the place of getauxval for the library, see local.mk.
unsigned long __real_getauxval(unsigned long type);
unsigned long __wrap_getauxval(unsigned long type);
static unsigned long secure; // what AT_SECURE says

unsigned long __wrap_getauxval(unsigned long type) {
    return type == AT_SECURE ? secure : __real_getauxval(type);
}

// The program's own string, as a program has it.
extern const char *pamalloc_options;
const char *pamalloc_options = NULL;

static const struct known {
    const char *name;
    struct kind kind;
    uint64_t initial;
    const char *sentence;
    size_t offset;
} known[] = {
#define OPTION(name, type, initial, least, greatest, words, sentence) \
    { #name, \
      { KIND_##type, least, greatest, words }, \
      initial, \
      sentence, \
      offsetof(struct options, name) },
#include "options.def"
#undef OPTION
};

#define KNOWN (sizeof(known) / sizeof(known[0]))

static uint64_t value_of(const struct known *option) {
    uint64_t value;
    memcpy(&value, (const char *)&pma_options + option->offset, sizeof(value));
    return value;
}

static void value_text(char *text, size_t size, const struct known *option, uint64_t value) {
    if (option->kind.type == KIND_SIZE) {
        struct fatal_line line = { .length = 0 };
        pma_line_size(&line, value);
        (void)snprintf(text, size, "%.*s", (int)line.length, line.text);
        return;
    }
    if (option->kind.type != KIND_CHOICE) {
        (void)snprintf(text, size, "%llu", (unsigned long long)value);
        return;
    }
    const char *word = option->kind.words;
    for (; value > 0; value--) {
        word = strchr(word, '|') + 1;
    }
    (void)snprintf(text, size, "%.*s", (int)strcspn(word, "|"), word);
}

// ---- one trial

static char path[64];

// What stands in the three places, NULL: nothing, and what is expected: one option is set, or none,
// and something is said, or nothing.
struct trial {
    const char *text; // in the environment
    const char *name; // NULL: every option keeps its default
    uint64_t value;
    const char *said; // NULL: nothing
    const char *program;
    const char *file;
    size_t file_length; // 0: as a string
};

static void file_write(const struct trial *trial) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    size_t length = trial->file_length != 0 ? trial->file_length : strlen(trial->file);
    REQUIRE(file >= 0 && write(file, trial->file, length) == (ssize_t)length && close(file) == 0);
}

static void read_options(void *argument) {
    const struct trial *trial = argument;
    if (trial->text != NULL) {
        REQUIRE(setenv("PAMALLOC_OPTIONS", trial->text, 1) == 0);
    } else {
        REQUIRE(unsetenv("PAMALLOC_OPTIONS") == 0);
    }
    pamalloc_options = trial->program;
    // Nothing that the checks say may stand among what the library says.
    errno = 1234;
    pma_options_init();
    CHECK_EQ(errno, 1234);
    for (size_t i = 0; i < KNOWN; i++) {
        bool set = trial->name != NULL && strcmp(known[i].name, trial->name) == 0;
        CHECK_EQ(value_of(&known[i]), set ? trial->value : known[i].initial);
    }
}

static struct child_end run_trial(struct trial *trial) {
    if (trial->file != NULL) {
        file_write(trial);
    }
    struct child_end end = run_child(read_options, trial, 20);
    if (trial->file != NULL) {
        REQUIRE(unlink(path) == 0);
    }
    return end;
}

static void check_trial(struct trial trial) {
    struct child_end end = run_trial(&trial);
    const char *text = trial.text != NULL      ? trial.text
                       : trial.program != NULL ? trial.program
                       : trial.file != NULL    ? trial.file
                                               : "no text";
    expect_exit(&end, 0, text);
    if (trial.said == NULL) {
        CHECK_SAY(end.length == 0, "\"%s\" says: %s", text, end.text);
    } else {
        CHECK_SAY(strstr(end.text, trial.said) != NULL, "\"%s\" does not say \"%s\" but: %s", text,
                  trial.said, end.text);
        CHECK(end.length > 0 && end.text[end.length - 1] == '\n');
    }
}

static void check_trials(const struct trial *trials, size_t count) {
    for (size_t i = 0; i < count; i++) {
        check_trial(trials[i]);
    }
}

#define CHECK_TRIALS(trials) check_trials(trials, sizeof(trials) / sizeof(trials[0]))

// ---- the table

static void check_words(const struct known *option) {
    uint64_t words = 1;
    for (const char *letter = option->kind.words; *letter != '\0'; letter++) {
        words += *letter == '|';
        CHECK((*letter >= 'a' && *letter <= 'z') || *letter == '|');
    }
    CHECK_EQ(option->kind.least, 0);
    CHECK_EQ(option->kind.greatest, words - 1);
    CHECK(words >= 2);
}

static void check_table(void) {
    for (size_t i = 0; i < KNOWN; i++) {
        const struct known *option = &known[i];
        CHECK(option->initial >= option->kind.least && option->initial <= option->kind.greatest);
        // A line of help, and of the manual page's table, is one line on a terminal.
        CHECK(strlen(option->sentence) > 10 && strlen(option->sentence) <= 64);
        CHECK(strlen(option->name) <= PMA_NAME_MAX);
        CHECK(option->kind.type != KIND_FLAG ||
              (option->kind.least == 0 && option->kind.greatest == 1));
        if (option->kind.type == KIND_CHOICE) {
            check_words(option);
        } else {
            CHECK_EQ(option->kind.words[0], '\0');
        }
        for (const char *letter = option->name; *letter != '\0'; letter++) {
            CHECK((*letter >= 'a' && *letter <= 'z') || *letter == '_' ||
                  (*letter >= '0' && *letter <= '9'));
        }
        for (size_t j = 0; j < i; j++) {
            CHECK(strcmp(known[j].name, option->name) != 0);
        }
        CHECK_EQ(value_of(option), option->initial);
    }
}

static void check_value(const struct known *option, uint64_t value) {
    char number[64];
    char text[96];
    value_text(number, sizeof(number), option, value);
    (void)snprintf(text, sizeof(text), "%s=%s", option->name, number);
    bool told =
        value == 1 && (strcmp(option->name, "help") == 0 || strcmp(option->name, "verbose") == 0);
    check_trial((struct trial){ text, option->name, value, told ? "" : NULL, NULL, NULL, 0 });
}

static void check_refused(const struct known *option, const char *value) {
    char text[96];
    char said[128];
    (void)snprintf(text, sizeof(text), "%s=%s", option->name, value);
    (void)snprintf(said, sizeof(said),
                   "pamalloc: PAMALLOC_OPTIONS: bad value \"%s\" of option %s: ", value,
                   option->name);
    check_trial((struct trial){ text, NULL, 0, said, NULL, NULL, 0 });
}

// The least and the greatest value are taken, their neighbours outside are not.
static void check_bounds(void) {
    for (size_t i = 0; i < KNOWN; i++) {
        const struct known *option = &known[i];
        char text[64];
        check_value(option, option->kind.least);
        check_value(option, option->kind.greatest);
        if (option->kind.type == KIND_CHOICE) {
            check_refused(option, "0");
            check_refused(option, option->kind.words);
            continue;
        }
        if (option->kind.least > 0) {
            value_text(text, sizeof(text), option, option->kind.least - 1);
            check_refused(option, text);
        }
        if (option->kind.greatest < UINT64_MAX) {
            value_text(text, sizeof(text), option, option->kind.greatest + 1);
            check_refused(option, text);
        }
    }
}

// ---- texts

#define SAYS(text) "pamalloc: PAMALLOC_OPTIONS: " text "\n"

static void check_texts(void) {
    static const struct trial trials[] = {
        { NULL, NULL, 0, NULL, NULL, NULL, 0 },
        { "", NULL, 0, NULL, NULL, NULL, 0 },
        { ",,,", NULL, 0, NULL, NULL, NULL, 0 },
        { " \t,\n ,\r\n", NULL, 0, NULL, NULL, NULL, 0 },
        { "seed=7", "seed", 7, NULL, NULL, NULL, 0 },
        { ",seed=7,", "seed", 7, NULL, NULL, NULL, 0 },
        { " seed\t= 7 ", "seed", 7, NULL, NULL, NULL, 0 },
        { "seed=1,seed=2", "seed", 2, NULL, NULL, NULL, 0 },
        { "seed=1\nseed=3", "seed", 3, NULL, NULL, NULL, 0 },
        { "seed=1#,seed=2\n#seed=3", "seed", 1, NULL, NULL, NULL, 0 },
        { "seed=0x0123456789abcdef", "seed", 0x0123456789abcdef, NULL, NULL, NULL, 0 },
        { "seed=18446744073709551615", "seed", UINT64_MAX, NULL, NULL, NULL, 0 },
        { "sized=strict", "sized", SIZED_STRICT, NULL, NULL, NULL, 0 },
        { "sized=strict,sized=tolerate", NULL, 0, NULL, NULL, NULL, 0 },
        { "realloc_zero=keep", "realloc_zero", REALLOC_ZERO_KEEP, NULL, NULL, NULL, 0 },
        { "stats", "stats", 1, NULL, NULL, NULL, 0 },
        { "stats=on", "stats", 1, NULL, NULL, NULL, 0 },
        { "stats,stats=no", NULL, 0, NULL, NULL, NULL, 0 },
        { "seed=18446744073709551616", NULL, 0,
          SAYS("bad value \"18446744073709551616\" of option seed: 0 to 18446744073709551615"),
          NULL, NULL, 0 },
        { "seed", NULL, 0, SAYS("bad value \"\" of option seed: 0 to 18446744073709551615"), NULL,
          NULL, 0 },
        { "seed=", NULL, 0, SAYS("bad value \"\" of option seed: 0 to 18446744073709551615"), NULL,
          NULL, 0 },
        { "seed=1 2", NULL, 0, SAYS("bad value \"1 2\" of option seed: 0 to 18446744073709551615"),
          NULL, NULL, 0 },
        { "seed=1=2", NULL, 0, SAYS("bad value \"1=2\" of option seed: 0 to 18446744073709551615"),
          NULL, NULL, 0 },
        { "stats=2", NULL, 0, SAYS("bad value \"2\" of option stats: 0|1"), NULL, NULL, 0 },
        { "stats=", NULL, 0, SAYS("bad value \"\" of option stats: 0|1"), NULL, NULL, 0 },
        { "sized", NULL, 0, SAYS("bad value \"\" of option sized: tolerate|strict"), NULL, NULL,
          0 },
        { "sized=1", NULL, 0, SAYS("bad value \"1\" of option sized: tolerate|strict"), NULL, NULL,
          0 },
        { "see=1", NULL, 0, SAYS("unknown option \"see\", the nearest is \"seed\""), NULL, NULL,
          0 },
        { "sede", NULL, 0, SAYS("unknown option \"sede\", the nearest is \"seed\""), NULL, NULL,
          0 },
        { "Seed=1", NULL, 0, SAYS("unknown option \"Seed\", the nearest is \"seed\""), NULL, NULL,
          0 },
        { "realloc-zero", NULL, 0,
          SAYS("unknown option \"realloc-zero\", the nearest is \"realloc_zero\""), NULL, NULL, 0 },
        { "size=strict", NULL, 0, SAYS("unknown option \"size\", the nearest is \"sized\""), NULL,
          NULL, 0 },
        { "=1", NULL, 0, SAYS("unknown option \"\""), NULL, NULL, 0 },
        { "=", NULL, 0, SAYS("unknown option \"\""), NULL, NULL, 0 },
        { "x", NULL, 0, SAYS("unknown option \"x\""), NULL, NULL, 0 },
        { "nonsense", NULL, 0, SAYS("unknown option \"nonsense\""), NULL, NULL, 0 },
        { "\nbad", NULL, 0, SAYS("unknown option \"bad\""), NULL, NULL, 0 },
        { "\033[31m\377", NULL, 0, SAYS("unknown option \"?[31m?\""), NULL, NULL, 0 },
        // What is understood counts, whatever stands around it.
        { "nonsense,seed=5", "seed", 5, SAYS("unknown option \"nonsense\""), NULL, NULL, 0 },
        { "seed=5,nonsense", "seed", 5, SAYS("unknown option \"nonsense\""), NULL, NULL, 0 },
        { "seed=5,seed=x", "seed", 5,
          SAYS("bad value \"x\" of option seed: 0 to 18446744073709551615"), NULL, NULL, 0 },
        { "help", "help", 1, "\n  seed ", NULL, NULL, 0 },
        { "help=0", NULL, 0, NULL, NULL, NULL, 0 },
        { "verbose", "verbose", 1, "pamalloc: version " PACKAGE_VERSION " verbose=1\n", NULL, NULL,
          0 },
    };
    CHECK_TRIALS(trials);
}

// A name as long as an environment may hold is cut in the message, and nothing else happens.
static void check_long_text(void) {
    static char text[100000];
    memset(text, 'a', sizeof(text) - 1);
    check_trial((struct trial){
        text, NULL, 0, SAYS("unknown option \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...\""), NULL,
        NULL, 0 });
    memcpy(text, "seed=", 5);
    memset(text + 5, '0', sizeof(text) - 7);
    text[sizeof(text) - 2] = '9';
    check_trial((struct trial){ text, "seed", 9, NULL, NULL, NULL, 0 });
    memset(text + 5, '1', sizeof(text) - 6);
    check_trial(
        (struct trial){ text, NULL, 0,
                        "bad value \"1111111111111111111111111111111111111111...\" of option "
                        "seed: 0 to 18446744073709551615\n",
                        NULL, NULL, 0 });
    memset(text, ',', sizeof(text) - 1);
    memcpy(text + 50000, "seed=4", 6);
    check_trial((struct trial){ text, "seed", 4, NULL, NULL, NULL, 0 });
}

static void read_noise(void *argument) {
    static const char *const pieces[] = { "seed",  "=", "0x",   "7",     ",",    "\n",     "#",
                                          "sized", " ", "\t",   "\377",  "K",    "strict", "|",
                                          "stats", "-", "real", "seeed", "\001", "==",     ",," };
    struct dice *dice = argument;
    char text[400];
    for (size_t round = 0; round < 500; round++) {
        text[0] = '\0';
        for (size_t i = dice_below(dice, 40); i > 0; i--) {
            strcat(text, pieces[dice_below(dice, sizeof(pieces) / sizeof(pieces[0]))]);
        }
        REQUIRE(setenv("PAMALLOC_OPTIONS", text, 1) == 0);
        pma_options_init();
        CHECK(pma_options.sized <= SIZED_STRICT && pma_options.stats <= 1);
    }
}

// Whatever stands there, each complaint is a whole line that a terminal can show.
static void check_noise(void) {
    struct dice dice = { test_seed() };
    struct child_end end = run_child(read_noise, &dice, 20);
    expect_exit(&end, 0, "noise");
    CHECK_EQ(end.length, sizeof(end.text) - 1);
    char *line = end.text;
    for (char *newline; (newline = strchr(line, '\n')) != NULL; line = newline + 1) {
        CHECK_SAY(strncmp(line, "pamalloc: PAMALLOC_OPTIONS: ", 28) == 0, "%.*s",
                  (int)(newline - line), line);
        for (const char *letter = line; letter < newline; letter++) {
            CHECK(*letter >= ' ' && *letter <= '~');
        }
    }
}

// ---- places

// The environment wins over the program, and the program over the file; what only one place sets
// counts.
static void check_places(void) {
    static const struct trial trials[] = {
        { NULL, "seed", 1, NULL, "seed=1", NULL, 0 },
        { NULL, "seed", 1, NULL, NULL, "seed=1", 0 },
        { NULL, "seed", 2, NULL, "seed=2", "seed=1", 0 },
        { "seed=3", "seed", 3, NULL, "seed=2", "seed=1", 0 },
        { "seed=3", "seed", 3, NULL, NULL, "seed=1\n", 0 },
        { "seed=3", "seed", 3, NULL, "seed=2", NULL, 0 },
        { "", "seed", 2, NULL, "seed=2", "stats=0", 0 },
        { "bad", "seed", 1, SAYS("unknown option \"bad\""), NULL, "seed=1\n", 0 },
        { "stats=0", "seed", 1, NULL, "", "seed=1", 0 },
        { NULL, "seed", 1, "pamalloc: pamalloc_options: unknown option \"sead\", the nearest is",
          "seed=1,sead=2", NULL, 0 },
    };
    CHECK_TRIALS(trials);
}

static void check_files(void) {
    static char name[96];
    static char said[200];
    static const struct trial trials[] = {
        { NULL, NULL, 0, NULL, NULL, "", 0 },
        { NULL, NULL, 0, NULL, NULL, "\n\n", 0 },
        { NULL, NULL, 0, NULL, NULL, "# seed=1, seed=2\n   # seed=3", 0 },
        { NULL, "seed", 4, NULL, NULL, "# a comment\n\n  seed = 4  # and why, of course\r\n", 0 },
        { NULL, "seed", 5, NULL, NULL, "stats=0,seed=4\nseed=5", 0 },
        { NULL, "seed", 6, ":3: unknown option \"bad\"\n", NULL, "\nseed=6\nbad\nstats=0", 0 },
        { NULL, "seed", 6, ":1: bad value \"maybe\" of option sized: tolerate|strict\n", NULL,
          "sized=maybe,seed=6", 0 },
        // Zeroes, as an editor or a crash of the machine may leave them.
        { NULL, "seed", 7, ":2: unknown option \"??\"\n", NULL, "seed=7\n\0\0\n", 10 },
        { NULL, NULL, 0, ":1: unknown option \"?ELF???\"\n", NULL, "\177ELF\2\1\1\n", 0 },
    };
    CHECK_TRIALS(trials);
    (void)snprintf(name, sizeof(name), "pamalloc: %s:2: unknown option \"bad\"\n", path);
    check_trial((struct trial){ NULL, NULL, 0, name, NULL, "#\nbad", 0 });
    (void)snprintf(said, sizeof(said), "pamalloc: %s: not read: longer than 8191 bytes\n", path);
    // The longest that is read, and one byte more.
    static char text[8193];
    memset(text, '#', sizeof(text) - 1);
    memcpy(text, "seed=5", 6);
    text[8191] = '\0';
    check_trial((struct trial){ NULL, "seed", 5, NULL, NULL, text, 0 });
    text[8191] = '#';
    check_trial((struct trial){ NULL, NULL, 0, said, NULL, text, 0 });
}

static void check_not_read(const char *why) {
    char said[200];
    (void)snprintf(said, sizeof(said), "pamalloc: %s: not read: %s\n", path, why);
    check_trial((struct trial){ "seed=3", "seed", 3, said, NULL, NULL, 0 });
}

static void read_as_nobody(void *argument) {
    if (getuid() != 0 || setuid(65534) == 0) {
        read_options(argument);
    }
}

static void read_without_descriptors(void *argument) {
    // Under valgrind the limit may not become 0.
    struct rlimit few;
    REQUIRE(getrlimit(RLIMIT_NOFILE, &few) == 0);
    few.rlim_cur = 64;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
    while (dup(2) >= 0) {
    }
    read_options(argument);
}

// What is no plain file is told and left alone; one that cannot be looked at for want of a
// descriptor may as well not be there.
static void check_odd_files(void) {
    REQUIRE(mkdir(path, 0700) == 0);
    check_not_read("a directory");
    REQUIRE(rmdir(path) == 0);
    REQUIRE(symlink(path, path) == 0);
    check_not_read("too many links");
    REQUIRE(unlink(path) == 0);
    REQUIRE(mkfifo(path, 0600) == 0);
    check_trial((struct trial){ "seed=3", "seed", 3, NULL, NULL, NULL, 0 });
    int ends = open(path, O_RDWR);
    REQUIRE(ends >= 0);
    check_not_read("no plain file");
    REQUIRE(close(ends) == 0 && unlink(path) == 0);
    REQUIRE(symlink("/nonexistent", path) == 0);
    check_trial((struct trial){ "seed=3", "seed", 3, NULL, NULL, NULL, 0 });
    REQUIRE(unlink(path) == 0);
    struct trial trial = { "seed=3", "seed", 3, NULL, NULL, "seed=1", 0 };
    file_write(&trial);
    REQUIRE(chmod(path, 0) == 0);
    struct child_end end = run_child(read_as_nobody, &trial, 20);
    expect_exit(&end, 0, "a file that nobody may read");
    CHECK_SAY(strstr(end.text, ": not read: permission denied\n") != NULL, "says: %s", end.text);
    REQUIRE(chmod(path, 0600) == 0);
    end = run_child(read_without_descriptors, &trial, 20);
    expect_exit(&end, 0, "no descriptor");
    CHECK_SAY(end.length == 0, "says: %s", end.text);
    REQUIRE(unlink(path) == 0);
}

// ---- the page

static void overwrite_after(void *argument) {
    read_options(argument);
    ((volatile struct options *)&pma_options)->seed = 1;
}

static void read_refused(void *argument) {
    pma_os_fail_at(1, true);
    read_options(argument);
}

// With or without an option the page is closed when the options are read. If it cannot be opened,
// that is told, and the defaults act.
static void check_page(void) {
    struct trial trials[] = {
        { NULL, NULL, 0, NULL, NULL, NULL, 0 },
        { "seed=3", "seed", 3, NULL, NULL, NULL, 0 },
    };
    for (size_t i = 0; i < 2; i++) {
        struct child_end end = run_child(overwrite_after, &trials[i], 20);
        CHECK(!WIFEXITED(end.status) || WEXITSTATUS(end.status) != 0);
    }
    trials[1].name = NULL;
    struct child_end end = run_child(read_refused, &trials[1], 20);
    expect_exit(&end, 0, "a page that cannot be opened");
    CHECK(strcmp(end.text, "pamalloc: the kernel lets no option be set\n") == 0);
    end = run_child(read_refused, &trials[0], 20);
    expect_exit(&end, 0, "a page that need not be opened");
    CHECK_EQ(end.length, 0);
}

// ---- help

// The column in which a row's n-th cell starts, if two spaces at least stand before it.
static size_t column_of(const char *row, const char *cell) {
    const char *found = strstr(row, cell);
    return found == NULL || found - row < 2 || found[-1] != ' ' || found[-2] != ' '
               ? 0
               : (size_t)(found - row);
}

// Each option has its row, and the cells stand below each other.
static void check_help(void) {
    struct trial trial = { "help", "help", 1, NULL, NULL, NULL, 0 };
    struct child_end end = run_child(read_options, &trial, 20);
    expect_exit(&end, 0, "help");
    char *row = end.text;
    size_t columns[3] = { 0, 0, 0 };
    for (size_t i = 0; i <= KNOWN; i++) {
        char *newline = strchr(row, '\n');
        REQUIRE(newline != NULL);
        *newline = '\0';
        char initial[64];
        value_text(initial, sizeof(initial), &known[i == 0 ? 0 : i - 1],
                   known[i == 0 ? 0 : i - 1].initial);
        const char *cells[3] = { i == 0 ? "option" : known[i - 1].name,
                                 i == 0 ? "default" : initial,
                                 i == 0 ? "what it does" : known[i - 1].sentence };
        CHECK_EQ(column_of(row, cells[0]), 2);
        size_t sentence = column_of(row, cells[2]);
        columns[2] = i == 0 ? sentence : columns[2];
        columns[1] = i == 0 ? column_of(row, "default") : columns[1];
        CHECK_EQ(sentence, columns[2]);
        CHECK(strncmp(row + columns[1], cells[1], strlen(cells[1])) == 0);
        CHECK(row[columns[1] - 1] == ' ' && row[columns[1] - 2] == ' ');
        CHECK_EQ(strlen(row), sentence + strlen(cells[2]));
        row = newline + 1;
    }
    CHECK_EQ(*row, '\0');
}

int main(void) {
    test_begin(60);
    (void)snprintf(path, sizeof(path), "options-test.%d", (int)getpid());
    REQUIRE(setenv("PMA_TEST_CONF", path, 1) == 0);
    pma_os_init();
    check_table();
    check_bounds();
    check_texts();
    check_long_text();
    check_noise();
    check_places();
    check_files();
    check_odd_files();
    check_page();
    check_help();
    // A program with more rights than its caller does not look at the environment.
    secure = 1;
    check_trial((struct trial){ "seed=7", NULL, 0, NULL, NULL, NULL, 0 });
    check_trial((struct trial){ "help,nonsense", NULL, 0, NULL, NULL, NULL, 0 });
    check_trial((struct trial){ "seed=7", "seed", 2, NULL, "seed=2", NULL, 0 });
    // Nor at a file that its caller names.
    check_trial((struct trial){ "seed=7", NULL, 0, NULL, NULL, "seed=1", 0 });
    return test_end();
}

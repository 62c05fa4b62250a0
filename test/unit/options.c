// options.c - every option of the table is parsed within its bounds, and what is not understood is
// told and changes nothing.
//
// Options are read once a process, so each text is tried in a child.
#include <config.h>

#include "base.h"
#include "harness.h"
#include "options.h"
#include "os.h"

#include <sys/auxv.h>

// The linker puts this in the place of getauxval for the library, see local.mk.
unsigned long __real_getauxval(unsigned long type);
unsigned long __wrap_getauxval(unsigned long type);
static unsigned long secure; // what AT_SECURE says

unsigned long __wrap_getauxval(unsigned long type) {
    return type == AT_SECURE ? secure : __real_getauxval(type);
}

enum option_type { OPTION_FLAG, OPTION_NUMBER };

static const struct known {
    const char *name;
    enum option_type type;
    uint64_t initial;
    uint64_t least;
    uint64_t greatest;
    const char *sentence;
    size_t offset;
} known[] = {
#define OPTION(name, type, initial, least, greatest, sentence) \
    { #name, type, initial, least, greatest, sentence, offsetof(struct options, name) },
#include "options.def"
#undef OPTION
};

#define KNOWN (sizeof(known) / sizeof(known[0]))

static uint64_t value_of(const struct known *option) {
    uint64_t value;
    memcpy(&value, (const char *)&pma_options + option->offset, sizeof(value));
    return value;
}

// ---- one text

// What a text is expected to do: set one option, or none, and say something, or nothing.
struct trial {
    const char *text; // NULL: not in the environment
    const char *name; // NULL: every option keeps its default
    uint64_t value;
    const char *said; // NULL: nothing
};

static void read_options(void *argument) {
    const struct trial *trial = argument;
    if (trial->text != NULL) {
        REQUIRE(setenv("PAMALLOC_OPTIONS", trial->text, 1) == 0);
    } else {
        REQUIRE(unsetenv("PAMALLOC_OPTIONS") == 0);
    }
    // Nothing that the checks say may stand among what the library says.
    pma_options_init();
    for (size_t i = 0; i < KNOWN; i++) {
        bool set = trial->name != NULL && strcmp(known[i].name, trial->name) == 0;
        CHECK_EQ(value_of(&known[i]), set ? trial->value : known[i].initial);
    }
}

static void check_trial(struct trial trial) {
    struct child_end end = run_child(read_options, &trial, 20);
    expect_exit(&end, 0, trial.text != NULL ? trial.text : "no text");
    if (trial.said == NULL) {
        CHECK_SAY(end.length == 0, "\"%s\" says: %s", trial.text, end.text);
    } else {
        CHECK_SAY(strstr(end.text, trial.said) != NULL, "\"%s\" does not say \"%s\" but: %s",
                  trial.text, trial.said, end.text);
        CHECK(end.length > 0 && end.text[end.length - 1] == '\n');
    }
}

// ---- the table

static void check_table(void) {
    for (size_t i = 0; i < KNOWN; i++) {
        const struct known *option = &known[i];
        CHECK(option->initial >= option->least && option->initial <= option->greatest);
        CHECK(strlen(option->sentence) > 10);
        CHECK(option->type != OPTION_FLAG || option->greatest == 1);
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

static void check_bound(const struct known *option, uint64_t value, bool fits) {
    char text[64];
    static const char *const forms[] = { "%s=%llu", "%s=0x%llx", "%s=0X%llX", "%s=00%llu" };
    for (size_t form = 0; form < 4; form++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        (void)snprintf(text, sizeof(text), forms[form], option->name, (unsigned long long)value);
#pragma GCC diagnostic pop
        bool help = strcmp(option->name, "help") == 0 && value == 1;
        check_trial((struct trial){ text, fits ? option->name : NULL, value,
                                    !fits  ? "bad value of option"
                                    : help ? "pamalloc: help (0): "
                                           : NULL });
    }
}

// The least and the greatest value are taken, their neighbours outside are not.
static void check_bounds(void) {
    for (size_t i = 0; i < KNOWN; i++) {
        const struct known *option = &known[i];
        check_bound(option, option->least, true);
        check_bound(option, option->greatest, true);
        if (option->least > 0) {
            check_bound(option, option->least - 1, false);
        }
        if (option->greatest < UINT64_MAX) {
            check_bound(option, option->greatest + 1, false);
        }
    }
}

// ---- texts

static void check_texts(void) {
    static const struct trial trials[] = {
        { NULL, NULL, 0, NULL },
        { "", NULL, 0, NULL },
        { ",,,", NULL, 0, NULL },
        { "seed=7", "seed", 7, NULL },
        { ",seed=7,", "seed", 7, NULL },
        { "seed=1,seed=2", "seed", 2, NULL },
        { "seed=0x0123456789abcdef", "seed", 0x0123456789abcdef, NULL },
        { "seed=0xFEDcba", "seed", 0xfedcba, NULL },
        { "seed=18446744073709551615", "seed", UINT64_MAX, NULL },
        { "seed=18446744073709551616", NULL, 0, "pamalloc: bad value of option seed=184" },
        { "seed=0x10000000000000000", NULL, 0, "pamalloc: bad value of option seed=0x1" },
        { "seed", NULL, 0, "pamalloc: bad value of option seed\n" },
        { "seed=", NULL, 0, "pamalloc: bad value of option seed=\n" },
        { "seed=0x", NULL, 0, "bad value of option seed=0x\n" },
        { "seed=-1", NULL, 0, "bad value of option seed=-1\n" },
        { "seed=+1", NULL, 0, "bad value of option seed=+1\n" },
        { "seed= 1", NULL, 0, "bad value of option seed= 1\n" },
        { "seed=1 ", NULL, 0, "bad value of option seed=1 \n" },
        { "seed=1f", NULL, 0, "bad value of option seed=1f\n" },
        { "seed=0xg", NULL, 0, "bad value of option seed=0xg\n" },
        { "seed=1=2", NULL, 0, "bad value of option seed=1=2\n" },
        { "see=1", NULL, 0, "pamalloc: unknown option see=1\n" },
        { "seedy=1", NULL, 0, "pamalloc: unknown option seedy=1\n" },
        { "Seed=1", NULL, 0, "pamalloc: unknown option Seed=1\n" },
        { "=1", NULL, 0, "pamalloc: unknown option =1\n" },
        { "=", NULL, 0, "pamalloc: unknown option =\n" },
        { "nonsense", NULL, 0, "pamalloc: unknown option nonsense\n" },
        // What is understood counts, whatever stands around it.
        { "nonsense,seed=5", "seed", 5, "pamalloc: unknown option nonsense\n" },
        { "seed=5,nonsense", "seed", 5, "pamalloc: unknown option nonsense\n" },
        { "seed=5,seed=x", "seed", 5, "pamalloc: bad value of option seed=x\n" },
        { "help=2", NULL, 0, "pamalloc: bad value of option help=2\n" },
        { "help=0", "help", 0, NULL },
        { "help", "help", 1, "pamalloc: seed=N (0): draw the same random numbers" },
    };
    for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
        check_trial(trials[i]);
    }
}

// A name as long as an environment may hold is cut in the message, and nothing else happens.
static void check_long_text(void) {
    static char text[100000];
    memset(text, 'a', sizeof(text) - 1);
    check_trial((struct trial){ text, NULL, 0, "pamalloc: unknown option aaaa" });
    memcpy(text, "seed=", 5);
    memset(text + 5, '0', sizeof(text) - 7);
    text[sizeof(text) - 2] = '9';
    check_trial((struct trial){ text, "seed", 9, NULL });
    memset(text + 5, '1', sizeof(text) - 6);
    check_trial((struct trial){ text, NULL, 0, "pamalloc: bad value of option seed=1111" });
}

// Each option has its line of help.
static void check_help(void) {
    struct trial trial = { "help", "help", 1, NULL };
    struct child_end end = run_child(read_options, &trial, 20);
    expect_exit(&end, 0, "help");
    const char *text = end.text;
    for (size_t i = 0; i < KNOWN; i++) {
        const char *newline = strchr(text, '\n');
        REQUIRE(newline != NULL);
        CHECK(strncmp(text, "pamalloc: ", 10) == 0);
        CHECK(strncmp(text + 10, known[i].name, strlen(known[i].name)) == 0);
        CHECK(strncmp(newline - strlen(known[i].sentence), known[i].sentence,
                      strlen(known[i].sentence)) == 0);
        text = newline + 1;
    }
    CHECK_EQ(*text, '\0');
}

int main(void) {
    test_begin(60);
    pma_os_init();
    check_table();
    check_bounds();
    check_texts();
    check_long_text();
    check_help();
    // A program with more rights than its caller does not look.
    secure = 1;
    check_trial((struct trial){ "seed=7", NULL, 0, NULL });
    check_trial((struct trial){ "help,nonsense", NULL, 0, NULL });
    return test_end();
}

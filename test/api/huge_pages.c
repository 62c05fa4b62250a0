// huge_pages.c - what the option thp says, does the kernel hear it of each kind of memory, and do
// huge blocks go back whole?
//
// The program starts itself again with each word. What the kernel was told stands in smaps: "nh"
// for never, "hg" for advice to use them.
#include "../figures.h"

#include <malloc.h>

enum { HUGE = 24 << 20 };

// Is the flag set for the mapping that holds the address?
static bool has_flag(const void *address, const char *flag) {
    char text[16384];
    size_t used = 0;
    bool inside = false;
    int file = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
    REQUIRE(file >= 0);
    for (ssize_t got; (got = read(file, text + used, sizeof(text) - 1 - used)) > 0;) {
        char *line = text;
        used += (size_t)got;
        text[used] = 0;
        for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            unsigned long from;
            unsigned long to;
            *end = 0;
            if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
                inside = from <= (uintptr_t)address && (uintptr_t)address < to;
            } else if (inside && strncmp(line, "VmFlags:", 8) == 0) {
                (void)close(file);
                return strstr(line, flag) != NULL;
            }
        }
        used -= (size_t)(line - text);
        memmove(text, line, used);
    }
    (void)close(file);
    return false;
}

static char *get(size_t size) {
    char *block = hide(malloc(size));
    REQUIRE(block != NULL);
    memset(block, 1, size);
    return block;
}

static long huge_kib(void) {
    return proc_number("/proc/self/smaps_rollup", "AnonHugePages:");
}

static void judge(const char *choice) {
    bool never = strcmp(choice, "thp=never") == 0;
    bool advise = strcmp(choice, "thp=advise") == 0;
    static const size_t sizes[] = { 100, 5000, 40000, 500000 };
    long before = rss_kib();
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (int k = 0; k < 50; k++) {
            char *block = get(sizes[i]);
            CHECK_SAY(has_flag(block, " nh") == never, "a block of %zu: %s", sizes[i], choice);
            CHECK_SAY(!has_flag(block, " hg"), "a block of %zu: %s", sizes[i], choice);
            free(block);
        }
    }
    char *block = get(HUGE);
    CHECK(has_flag(block, " nh") == never);
    CHECK(has_flag(block, " hg") == advise);
    say("%s: %ld KiB of huge pages\n", choice, huge_kib());
    CHECK(!never || huge_kib() == 0);
    // Grown and cut, it is still what it was; freed, it is gone.
    block = hide(realloc(block, 2 * (size_t)HUGE));
    REQUIRE(block != NULL);
    CHECK(has_flag(block + HUGE + HUGE / 2, " hg") == advise);
    memset(block + HUGE, 1, HUGE);
    block = hide(realloc(block, HUGE / 2));
    REQUIRE(block != NULL);
    // The huge page in which it was cut may stay.
    CHECK_AT_MOST(rss_kib() - before, HUGE / 2 / 1024 + 4 * 1024);
    free(block);
    (void)malloc_trim(0);
    CHECK_AT_MOST(rss_kib() - before, 2 * 1024);
    CHECK(!advise || huge_kib() <= 2 * 1024);
}

int main(int count, char **arguments) {
    if (access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) != 0) {
        say("this kernel has no transparent huge pages\n");
        return 0;
    }
    if (count > 1) {
        api_begin(30);
        judge(arguments[1]);
        return test_end();
    }
    api_begin(60);
    static const char *const choices[] = { "thp=leave", "thp=never", "thp=advise" };
    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
        int status = 0;
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            (void)setenv("PAMALLOC_OPTIONS", choices[i], 1);
            (void)execl("/proc/self/exe", arguments[0], choices[i], (char *)NULL);
            _exit(EXIT_HARD);
        }
        REQUIRE(waitpid(child, &status, 0) == child);
        CHECK_SAY(status == 0, "%s: status %#x", choices[i], (unsigned)status);
    }
    return test_end();
}

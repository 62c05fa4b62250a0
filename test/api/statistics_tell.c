// Do glibc's statistics and tuning calls speak of this heap, and tell the truth within limits?
#include "entry.h"
#include "../figures.h"

#include <limits.h>

static struct mallinfo2 (*info2)(void);
static int (*info_xml)(int, FILE *);
static int (*trim)(size_t);
static int (*tune)(int, int);
static void (*print_stats)(void);

// The old call, which the headers mark as deprecated, is still there for old programs.
static struct mallinfo (*info1)(void);

static void find_calls(void) {
    info2 = (struct mallinfo2(*)(void))(uintptr_t)find_call("mallinfo2");
    info1 = (struct mallinfo(*)(void))(uintptr_t)find_call("mallinfo");
    info_xml = (int (*)(int, FILE *))(uintptr_t)find_call("malloc_info");
    trim = (int (*)(size_t))(uintptr_t)find_call("malloc_trim");
    tune = (int (*)(int, int))(uintptr_t)find_call("mallopt");
    print_stats = (void (*)(void))(uintptr_t)find_call("malloc_stats");
    REQUIRE(failures == 0);
}

enum { MIB = 1 << 20, SMALL = 1000, COUNT = 100 * MIB / SMALL };

static char *blocks[COUNT];

static void fill(size_t count) {
    for (size_t i = 0; i < count; i++) {
        blocks[i] = (char *)call.malloc(SMALL);
        REQUIRE(blocks[i] != NULL);
        memset(blocks[i], 1, SMALL);
    }
}

static void drain(size_t count) {
    for (size_t i = 0; i < count; i++) {
        call.free(blocks[i]);
        blocks[i] = NULL;
    }
}

// More than an int can hold: the new call is exact, the old one stops at the largest int.
static void three_gigabytes_are_counted(void) {
    void *huge[3];
    for (size_t i = 0; i < 3; i++) {
        huge[i] = call.malloc((size_t)1 << 30);
        REQUIRE(huge[i] != NULL);
    }
    fill(COUNT);
    struct mallinfo2 now = info2();
    size_t live = ((size_t)3 << 30) + 100 * MIB;
    CHECK_SAY(now.uordblks + now.hblkhd >= live / 100 * 99, "%zu and %zu", now.uordblks,
              now.hblkhd);
    CHECK_SAY(now.uordblks + now.hblkhd <= live / 10 * 13, "%zu and %zu", now.uordblks, now.hblkhd);
    struct mallinfo old = info1();
    const int fields[] = { old.arena,   old.ordblks, old.smblks,   old.hblks,    old.hblkhd,
                           old.usmblks, old.fsmblks, old.uordblks, old.fordblks, old.keepcost };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        CHECK_SAY(fields[i] >= 0, "mallinfo field %zu is %d", i, fields[i]);
    }
    CHECK(old.uordblks >= 100 * MIB || old.hblkhd == INT_MAX);
    for (size_t i = 0; i < 3; i++) {
        call.free(huge[i]);
    }
    drain(COUNT);
}

// Half is freed: used falls, and together they stay what the heap has.
static void totals_follow_the_program(void) {
    size_t at_start = info2().uordblks;
    fill(COUNT);
    size_t full = info2().uordblks - at_start;
    CHECK_SAY(full >= (size_t)COUNT * SMALL / 10 * 9 && full <= (size_t)COUNT * SMALL / 10 * 11,
              "%zu used", full);
    for (size_t i = 0; i < COUNT; i += 2) {
        call.free(blocks[i]);
        blocks[i] = NULL;
    }
    struct mallinfo2 half = info2();
    CHECK_SAY(half.uordblks - at_start <= full / 100 * 55, "%zu of %zu", half.uordblks, full);
    CHECK_SAY(half.arena + half.hblkhd >= half.uordblks, "arena %zu, used %zu", half.arena,
              half.uordblks);
    drain(COUNT);
}

// Well formed as far as a reader needs: names nest and close, values are quoted.
static void check_xml(const char *text) {
    char open[16][32];
    size_t depth = 0;
    size_t roots = 0;
    for (const char *at = strchr(text, '<'); at != NULL; at = strchr(at + 1, '<')) {
        const char *end = strchr(at, '>');
        REQUIRE(end != NULL);
        const char *name = at + (at[1] == '/' ? 2 : 1);
        size_t length = strcspn(name, " />\n");
        if (at[1] == '/') {
            REQUIRE(depth > 0);
            depth--;
            CHECK_SAY(strlen(open[depth]) == length && memcmp(open[depth], name, length) == 0,
                      "</%.*s> closes <%s>", (int)length, name, open[depth]);
            continue;
        }
        roots += depth == 0;
        size_t quotes = 0;
        for (const char *c = at; c < end; c++) {
            quotes += *c == '"';
        }
        CHECK_SAY(quotes % 2 == 0, "unbalanced quotes: %.40s", at);
        if (end[-1] != '/' && at[1] != '?') {
            REQUIRE(depth < 16 && length < 32);
            memcpy(open[depth], name, length);
            open[depth][length] = 0;
            depth++;
        }
    }
    CHECK_EQ(depth, 0);
    CHECK_EQ(roots, 1);
    CHECK(strncmp(text, "<malloc version=", 16) == 0);
}

static void malloc_info_writes_xml(void) {
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    REQUIRE(stream != NULL);
    fill(1000);
    CHECK_EQ(info_xml(0, stream), 0);
    CHECK_EQ(fclose(stream), 0);
    check_xml(text);
    CHECK(length > 100 && text[length - 1] == '\n');
    free(text);
    drain(1000);
    stream = fopen("/dev/null", "w");
    REQUIRE(stream != NULL);
    CHECK_EQ(info_xml(1, stream), EINVAL);
    CHECK_EQ(fclose(stream), 0);
}

static void stats_in_child(void *unused) {
    (void)unused;
    print_stats();
}

static void malloc_stats_goes_to_standard_error(void) {
    fill(50 * MIB / SMALL);
    struct child_end end = run_child(stats_in_child, NULL, 10);
    expect_exit(&end, 0, "malloc_stats");
    // A number of ten or more million must be in it: what is live.
    bool found = false;
    for (const char *c = end.text; *c != 0 && !found; c++) {
        found = strspn(c, "0123456789") >= 8;
    }
    CHECK_SAY(found || end.length == 0, "malloc_stats: %s", end.text);
    CHECK(end.length > 0);
    drain(50 * MIB / SMALL);
}

static void trim_gives_back(void) {
    (void)trim(0);
    long at_start = rss_kib();
    fill(COUNT);
    CHECK(rss_kib() - at_start > 90 * 1024);
    drain(COUNT);
    (void)trim(0);
    CHECK_AT_MOST(rss_kib() - at_start, 4096);
    // 1: something was given back. Less than this much is kept by itself for a second.
    fill(3 * MIB / SMALL);
    drain(3 * MIB / SMALL);
    CHECK_EQ(trim(0), 1);
    CHECK_EQ(trim(0), 0);
}

static void mallopt_accepts_what_glibc_knows(void) {
    const int known[] = { M_MXFAST,         M_TRIM_THRESHOLD, M_TOP_PAD,
                          M_MMAP_THRESHOLD, M_MMAP_MAX,       M_CHECK_ACTION,
                          M_PERTURB,        M_ARENA_TEST,     M_ARENA_MAX };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        CHECK_SAY(tune(known[i], 64) == 1, "mallopt(%d)", known[i]);
    }
    (void)tune(12345, 1);
    (void)tune(INT_MIN, INT_MIN);
    void *block = call.malloc(100);
    CHECK(block != NULL);
    call.free(block);
}

int main(void) {
    entry_begin(60);
    find_calls();
    three_gigabytes_are_counted();
    totals_follow_the_program();
    malloc_info_writes_xml();
    malloc_stats_goes_to_standard_error();
    trim_gives_back();
    mallopt_accepts_what_glibc_knows();
    return test_end();
}

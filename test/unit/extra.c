// extra.c - the GNU C library's extras answer as that library's do, with sums that hold.
#include <config.h>

#include "alloc.h"
#include "base.h"
#include "extra.h"
#include "harness.h"
#include "malloc.h"
#include "os.h"
#include "pageheap.h"
#include "stats.h"

#include <limits.h>
#include <malloc.h>

#ifdef __GLIBC__
// The structs are the C library's own.
_Static_assert(sizeof(struct pma_mallinfo) == sizeof(struct mallinfo), "mallinfo");
_Static_assert(offsetof(struct pma_mallinfo, keepcost) == offsetof(struct mallinfo, keepcost),
               "mallinfo");
_Static_assert(offsetof(struct pma_mallinfo, uordblks) == offsetof(struct mallinfo, uordblks),
               "mallinfo");
#endif

static void check_mallinfo(void) {
    struct pma_mallinfo2 before = pma_mallinfo2();
    void *blocks[300];
    size_t bytes = 0;
    for (size_t i = 0; i < 300; i++) {
        size_t size = 1 + i * i * 3;
        blocks[i] = pma_malloc(size);
        REQUIRE(blocks[i] != NULL);
        bytes += size;
    }
    void *huge = pma_malloc((size_t)5 << 20);
    REQUIRE(huge != NULL);
    struct pma_mallinfo2 info = pma_mallinfo2();
    struct pma_mallinfo small = pma_mallinfo();
    CHECK_EQ(info.hblks - before.hblks, 1);
    CHECK_EQ(info.hblkhd - before.hblkhd, (size_t)5 << 20);
    size_t used = info.uordblks - before.uordblks;
    CHECK(used >= bytes && used < bytes + bytes / 8 + 300 * pma_page_size);
    CHECK_EQ(info.arena, info.uordblks + info.fordblks);
    CHECK(info.keepcost <= info.arena);
    CHECK_EQ(info.smblks + info.usmblks + info.fsmblks, 0);
    CHECK_EQ((size_t)small.uordblks, info.uordblks);
    CHECK_EQ((size_t)small.hblkhd, info.hblkhd);
    CHECK_EQ((size_t)small.hblks, info.hblks);
    CHECK_EQ((size_t)small.arena, info.arena);
    CHECK_EQ((size_t)small.fordblks, info.fordblks);
    CHECK_EQ((size_t)small.ordblks, info.ordblks);
    for (size_t i = 0; i < 300; i++) {
        pma_free(blocks[i]);
    }
    pma_free(huge);
    struct pma_mallinfo2 after = pma_mallinfo2();
    CHECK_EQ(after.uordblks, before.uordblks);
    CHECK_EQ(after.hblks, before.hblks);
    CHECK(after.keepcost >= info.keepcost && after.keepcost < info.keepcost + ((size_t)1 << 30));
}

// The old struct has room for 2 GiB: more than that stays the most.
static void check_saturation(void) {
    // Address space; nothing of it is touched.
    void *giant = pma_malloc((size_t)3 << 30);
    if (giant == NULL) {
        say("no 3 GiB to be had: not tried\n");
        return;
    }
    CHECK(pma_mallinfo2().hblkhd >= (size_t)3 << 30);
    CHECK_EQ(pma_mallinfo().hblkhd, INT_MAX);
    pma_free(giant);
}

static void check_trim(void) {
    void *blocks[200];
    for (size_t i = 0; i < 200; i++) {
        blocks[i] = pma_malloc(20000);
        REQUIRE(blocks[i] != NULL);
        memset(blocks[i], 1, 20000);
    }
    for (size_t i = 0; i < 200; i++) {
        pma_free(blocks[i]);
    }
    CHECK_EQ(pma_malloc_trim(0), 1);
    CHECK_EQ(pma_malloc_trim(0), 0);
    CHECK_EQ(pma_malloc_trim((size_t)1 << 20), 0);
    CHECK_EQ(pma_pageheap.dirty, 0);
}

// The GNU C library's parameters, M_ARENA_MAX (-8) to M_MXFAST (1), are accepted, whatever their
// value, and others are not.
static void check_mallopt(void) {
    for (int parameter = -100; parameter <= 100; parameter++) {
        CHECK_EQ(pma_mallopt(parameter, 1), parameter >= -8 && parameter <= 1);
    }
    CHECK_EQ(pma_mallopt(-3, INT_MAX), 1);
    CHECK_EQ(pma_mallopt(-1, -1), 1);
    CHECK_EQ(pma_mallopt(INT_MAX, 0), 0);
    CHECK_EQ(pma_mallopt(INT_MIN, 0), 0);
}

static void check_malloc_info(void) {
    char text[8192] = { 0 };
    FILE *file = tmpfile();
    REQUIRE(file != NULL);
    CHECK_EQ(pma_malloc_info(1, file), EINVAL);
    CHECK_EQ(pma_malloc_info(-1, file), EINVAL);
    CHECK_EQ(ftell(file), 0);
    CHECK_EQ(pma_malloc_info(0, file), 0);
    CHECK(ftell(file) > 0);
    rewind(file);
    CHECK(fread(text, 1, sizeof(text) - 1, file) > 100);
    CHECK(strncmp(text, "<malloc version=\"1\">\n", 21) == 0);
    CHECK(strcmp(text + strlen(text) - 10, "</malloc>\n") == 0);
    REQUIRE(fclose(file) == 0);
}

static void print_stats(void *argument) {
    (void)argument;
    pma_malloc_stats();
}

static void check_malloc_stats(void) {
    struct child_end end = run_child(print_stats, NULL, 20);
    expect_exit(&end, 0, "malloc_stats");
    CHECK(strncmp(end.text, "pamalloc ", 9) == 0);
    CHECK(strstr(end.text, "slots in use") != NULL);
}

static void check_version(void) {
    const char *version = pma_pamalloc_version();
    CHECK(strcmp(version, PACKAGE_VERSION) == 0);
    CHECK(strspn(version, "0123456789.") >= 5);
}

int main(void) {
    test_begin(60);
    check_mallinfo();
    check_saturation();
    check_trim();
    check_mallopt();
    check_malloc_info();
    check_malloc_stats();
    check_version();
    return test_end();
}

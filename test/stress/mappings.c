// Do mappings and writable memory stay in proportion to what is live, does the heap live with a
// full map table, and does a small program stay small?
#include "../figures.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

enum { MIB = 1024 };

static void *get(size_t size) {
    void *block = hide(malloc(size));
    REQUIRE(block != NULL);
    return block;
}

// ---- writable memory is charged by strict systems whether it is touched or not

static void judge_writable(long before, size_t live_bytes, const char *when) {
    long live = (long)(live_bytes / 1024);
    long data = status_kib("VmData:") - before;
    say("%s: %ld KiB live, %ld writable, %ld mappings\n", when, live, data, count_mappings());
    // Runs below 1 MiB stay writable when they are purged.
    CHECK_AT_MOST(data, 2 * live + 160 * MIB);
    CHECK_AT_MOST(count_mappings(), 1000);
}

static void writable_memory(void *argument) {
    size_t size = *(const size_t *)argument;
    static void *blocks[400 << 10];
    size_t count = ((size_t)400 << 20) / size;
    struct dice dice = { 6 };
    free(get(1));
    long before = status_kib("VmData:");
    for (size_t i = 0; i < count; i++) {
        blocks[i] = get(size);
    }
    judge_writable(before, count * size, "all live");
    for (size_t i = count; i > 1; i--) {
        size_t k = dice_below(&dice, i);
        void *block = blocks[k];
        blocks[k] = blocks[i - 1];
        blocks[i - 1] = block;
    }
    for (size_t i = 0; i < count / 2; i++) {
        free(blocks[i]);
    }
    // Half of small blocks at random leave hardly a page whole.
    if (size > 32768) {
        judge_writable(before, count * size / 2, "half freed at random");
    }
    for (size_t i = count / 2; i < count; i++) {
        free(blocks[i]);
    }
    judge_writable(before, 0, "all freed");
}

// ---- very many blocks

static void *do_nothing(void *unused) {
    free(get(100));
    return unused;
}

static void very_many_blocks(void *unused) {
    enum { PAGES = 300000, LARGE = 40000 };
    static char *blocks[PAGES];
    static char *large[LARGE];
    pthread_t threads[100];
    (void)unused;
    for (size_t i = 0; i < PAGES; i++) {
        blocks[i] = (char *)get(8192);
        if (i % 10 == 0) {
            blocks[i][0] = 1;
        }
    }
    for (size_t i = 0; i < PAGES; i += 2) {
        free(blocks[i]);
    }
    for (size_t i = 0; i < LARGE; i++) {
        large[i] = (char *)get(300 << 10);
    }
    say("very many blocks: %ld mappings\n", count_mappings());
    CHECK_AT_MOST(count_mappings(), 16000);
    for (size_t i = 0; i < 100; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, do_nothing, NULL) == 0);
    }
    for (size_t i = 0; i < 100; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    for (size_t i = 0; i < LARGE; i++) {
        free(large[i]);
    }
    for (size_t i = 1; i < PAGES; i += 2) {
        free(blocks[i]);
    }
    (void)malloc_trim(0);
    CHECK_AT_MOST(count_mappings(), 2000);
}

// ---- the map table is full: no mapping can be split, so nothing can be unmapped in part

static char *fill_map_table(size_t *length) {
    *length = (size_t)140000 * 4096;
    char *filler = (char *)mmap(NULL, *length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(filler != MAP_FAILED);
    for (size_t i = 0; i < 140000; i += 2) {
        if (mprotect(filler + i * 4096, 4096, PROT_NONE) != 0) {
            return filler;
        }
    }
    say("the map table has no end\n");
    _exit(EXIT_SKIP);
}

static void full_map_table(void *unused) {
    enum { BLOCKS = 300 };
    static char *blocks[BLOCKS];
    static char *small[20000];
    size_t length;
    (void)unused;
    for (size_t i = 0; i < BLOCKS; i++) {
        size_t size = i % 3 == 0 ? 3 << 20 : i % 3 == 1 ? 300 << 10 : 60000;
        blocks[i] = (char *)get(size);
        memset(blocks[i], (int)(i % 100 + 1), size);
    }
    char *filler = fill_map_table(&length);
    for (size_t i = 0; i < BLOCKS; i++) {
        CHECK(blocks[i][0] == (char)(i % 100 + 1) && blocks[i][50000] == (char)(i % 100 + 1));
        if (i % 2 == 0) {
            free(blocks[i]);
            blocks[i] = NULL;
        } else {
            blocks[i] = (char *)hide(realloc(blocks[i], 40000 + i));
            CHECK(blocks[i] != NULL);
        }
    }
    for (size_t i = 0; i < 20000; i++) {
        small[i] = (char *)hide(malloc(100));
        CHECK(small[i] != NULL || errno == ENOMEM);
    }
    // A large request may be refused now, for lack of a mapping; it may not abort.
    free(hide(malloc(10 << 20)));
    REQUIRE(munmap(filler, length) == 0);
    char *after = (char *)get(256 << 20);
    memset(after, 1, 256 << 20);
    for (size_t i = 0; i < BLOCKS; i++) {
        CHECK(blocks[i] == NULL || blocks[i][39999] == (char)(i % 100 + 1));
        free(blocks[i]);
    }
    for (size_t i = 0; i < 20000; i++) {
        free(small[i]);
    }
    free(after);
    (void)malloc_trim(0);
    CHECK_AT_MOST(rss_kib(), 16 * MIB);
}

// ---- what blocks that move leave behind

static void blocks_that_move(void *argument) {
    const size_t *sizes = (const size_t *)argument;
    long mapped = 0;
    long rss = 0;
    long mappings = 0;
    for (size_t i = 0; i <= 3000; i++) {
        char *block = (char *)get(sizes[0]);
        for (size_t k = 1; k < 4; k++) {
            block = (char *)hide(realloc(block, sizes[k]));
            REQUIRE(block != NULL);
            block[0] = 1;
        }
        free(block);
        // Without the cache of freed mappings each one comes from the kernel, at a place of its
        // own.
        if (i % 2 == 0) {
            (void)malloc_trim(0);
        }
        if (i == 100) {
            mapped = status_kib("VmSize:");
            mappings = count_mappings();
            rss = rss_kib();
        }
    }
    CHECK_AT_MOST(status_kib("VmSize:") - mapped, 16 * MIB);
    CHECK_AT_MOST(rss_kib() - rss, 1 * MIB);
    CHECK_AT_MOST(count_mappings() - mappings, 50);
}

// ---- a program that does next to nothing, with and without the library

struct footprint {
    long rss, size, data, mappings, faults, huge;
};

static int tell_footprint(void) {
    struct rusage usage;
    struct footprint mine = { rss_kib(),
                              status_kib("VmSize:"),
                              status_kib("VmData:"),
                              count_mappings(),
                              0,
                              proc_number("/proc/self/smaps_rollup", "AnonHugePages:") };
    (void)getrusage(RUSAGE_SELF, &usage);
    mine.faults = usage.ru_minflt;
    return write(1, &mine, sizeof(mine)) == sizeof(mine) ? 0 : 1;
}

static struct footprint measure(const char *what, bool preloaded) {
    struct footprint footprint;
    int ends[2];
    memset(&footprint, 0, sizeof(footprint));
    REQUIRE(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        (void)dup2(ends[1], 1);
        if (!preloaded) {
            (void)unsetenv("LD_PRELOAD");
        }
        (void)execl("/proc/self/exe", "mappings", what, (char *)NULL);
        _exit(EXIT_HARD);
    }
    (void)close(ends[1]);
    CHECK_EQ(read(ends[0], &footprint, sizeof(footprint)), sizeof(footprint));
    (void)close(ends[0]);
    (void)waitpid(child, NULL, 0);
    return footprint;
}

static void a_small_program_stays_small(void) {
    if (getenv("LD_PRELOAD") == NULL) {
        say("nothing to compare with: not preloaded\n");
        return;
    }
    struct footprint with = measure("footprint", true);
    struct footprint without = measure("footprint", false);
    say("a program that does nothing: RSS %+ld KiB, VmData %+ld, mappings %+ld, faults %+ld\n",
        with.rss - without.rss, with.data - without.data, with.mappings - without.mappings,
        with.faults - without.faults);
    CHECK_AT_MOST(with.rss - without.rss, 1 * MIB);
    CHECK_AT_MOST(with.data - without.data, 4 * MIB);
    CHECK_AT_MOST(with.mappings - without.mappings, 16);
    CHECK_AT_MOST(with.faults - without.faults, 250);
    // Small heaps do not invite huge pages, whatever the machine's setting.
    struct footprint six = measure("six", true);
    CHECK_EQ(six.huge, 0);
}

int main(int count, char **arguments) {
    if (count > 1) {
        for (size_t i = 0; strcmp(arguments[1], "six") == 0 && i < 6 * 1024; i++) {
            memset(get(1024), 1, 1024);
        }
        return tell_footprint();
    }
    static size_t sizes[] = { 1000, 8192, 256 << 10, 3 << 20 };
    static size_t moves[][4] = { { 3000000, 5000000, 3000000, 5000000 },
                                 { 40000, 3000000, 50000, 5000000 },
                                 { 1000, 100000, 200000, 2000000 },
                                 { 900000, 1100000, 900000, 1100000 } };
    api_begin(120);
    a_small_program_stays_small();
    for (size_t i = 0; i < 4; i++) {
        struct child_end end = run_child(writable_memory, &sizes[i], 30);
        expect_exit(&end, 0, "writable memory");
        say("%s", end.status == 0 ? end.text : "");
    }
    for (size_t i = 0; i < 4; i++) {
        struct child_end end = run_child(blocks_that_move, moves[i], 30);
        expect_exit(&end, 0, "blocks that move");
    }
    struct child_end end = run_child(very_many_blocks, NULL, 30);
    expect_exit(&end, 0, "very many blocks");
    end = run_child(full_map_table, NULL, 30);
    if (!WIFEXITED(end.status) || WEXITSTATUS(end.status) != EXIT_SKIP) {
        expect_exit(&end, 0, "a full map table");
        CHECK_SAY(end.length == 0, "standard error: %s", end.text);
    }
    return test_end();
}

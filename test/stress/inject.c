// What if the kernel refuses one call, any one, or all calls from any one on? A fixed load that
// goes every way is run with the n-th call failing, for every n until it makes fewer calls than n.
//
// NULL with ENOMEM is right. A crash, a hang, a damaged block, another errno, memory that is lost
// or a heap that does not recover is not. Linked with the internal names of the test build; libc's
// heap stays out of it.
#include "../figures.h"
#include "shadow.h"

#include <pthread.h>

extern void *pma_malloc(size_t);
extern void *pma_calloc(size_t, size_t);
extern void *pma_realloc(void *, size_t);
extern void *pma_memalign(size_t, size_t);
extern int pma_posix_memalign(void **, size_t, size_t);
extern void pma_free(void *);
extern int pma_malloc_trim(size_t);
extern size_t pma_malloc_usable_size(void *);
extern void pma_verify(void);
extern void pma_os_fail_at(uint64_t n, bool forever);
extern uint64_t pma_os_calls(void);

enum { HELD = 400, ERRNO_BEFORE = 4711 };

struct load {
    struct {
        unsigned char *start;
        size_t size;
        uint64_t tag;
    } held[HELD];
    size_t count;
    size_t refused;
};

static void keep(struct load *load, void *block, size_t size) {
    if (block == NULL) {
        CHECK_EQ(errno, ENOMEM);
        load->refused++;
        return;
    }
    CHECK_EQ(errno, ERRNO_BEFORE);
    CHECK(shadow_mark(block, pma_malloc_usable_size(block), true));
    CHECK(load->count < HELD);
    load->held[load->count].start = (unsigned char *)block;
    load->held[load->count].size = size;
    load->held[load->count].tag = load->count;
    shadow_fill((unsigned char *)block, load->count, size);
    load->count++;
}

static void drop(struct load *load, size_t i) {
    unsigned char *start = load->held[i].start;
    size_t size = load->held[i].size;
    CHECK_SAY(shadow_holds(start, load->held[i].tag, size, size), "block of %zu is damaged", size);
    CHECK(shadow_mark(start, pma_malloc_usable_size(start), false));
    load->held[i] = load->held[--load->count];
    errno = ERRNO_BEFORE;
    pma_free(start);
    CHECK_EQ(errno, ERRNO_BEFORE);
}

static void resize(struct load *load, size_t i, size_t size) {
    unsigned char *start = load->held[i].start;
    size_t old = load->held[i].size;
    size_t usable = pma_malloc_usable_size(start);
    errno = ERRNO_BEFORE;
    CHECK(shadow_mark(start, usable, false));
    unsigned char *moved = (unsigned char *)pma_realloc(start, size);
    if (moved == NULL) {
        CHECK_EQ(errno, ENOMEM);
        CHECK_SAY(size > old, "a block of %zu cannot shrink to %zu", old, size);
        CHECK_EQ(pma_malloc_usable_size(start), usable);
        CHECK(shadow_mark(start, usable, true));
        load->refused++;
        return;
    }
    CHECK_EQ(errno, ERRNO_BEFORE);
    CHECK(shadow_holds(moved, load->held[i].tag, old, old < size ? old : size));
    CHECK(shadow_mark(moved, pma_malloc_usable_size(moved), true));
    load->held[i].start = moved;
    load->held[i].size = size;
    shadow_fill(moved, load->held[i].tag, size);
}

static void get(struct load *load, size_t size) {
    errno = ERRNO_BEFORE;
    keep(load, pma_malloc(size), size);
}

static void get_zeroed(struct load *load, size_t size) {
    errno = ERRNO_BEFORE;
    char *block = (char *)pma_calloc(1, size);
    size_t checked = size < 1 << 17 ? size : 1 << 17;
    CHECK_SAY(block == NULL || (block[0] == 0 && memcmp(block, block + 1, checked - 1) == 0),
              "calloc(%zu) is dirty", size);
    keep(load, block, size);
}

static void get_aligned(struct load *load, size_t alignment, size_t size) {
    void *block = NULL;
    errno = ERRNO_BEFORE;
    int code = pma_posix_memalign(&block, alignment, size);
    CHECK(code == 0 || (code == ENOMEM && block == NULL));
    CHECK_EQ(errno, ERRNO_BEFORE);
    errno = code == 0 ? ERRNO_BEFORE : ENOMEM;
    keep(load, block, size);
}

static void small_and_page_sized(struct load *load) {
    for (size_t size = 1; size <= 32768; size = size * 3 / 2 + 1) {
        get(load, size);
        get_zeroed(load, size);
    }
    for (size_t i = 0; i < 40; i++) {
        get(load, 4096 * (1 + i % 4));
    }
    get_aligned(load, 4096, 100);
    get_aligned(load, 1 << 16, 5000);
}

static void large_and_huge(struct load *load) {
    for (size_t size = 40000; size <= (4 << 20); size = size * 5 / 2) {
        get(load, size);
        get_zeroed(load, size);
    }
    get_aligned(load, 1 << 21, 1 << 20);
    get_aligned(load, 1 << 25, 100);
}

static void grow_and_shrink(struct load *load) {
    static const size_t steps[] = { 100,     5000,    40000,  60000, 300000, 2 << 20, 5 << 20,
                                    3 << 20, 1 << 20, 200000, 50000, 39000,  900,     10 };
    get(load, 10);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && load->count > 0; i++) {
        resize(load, load->count - 1, steps[i]);
        get(load, 50000);
        if (load->count > 1) {
            drop(load, load->count - 1);
        }
    }
}

static void *run_in_thread(void *argument) {
    struct load *load = (struct load *)argument;
    small_and_page_sized(load);
    get(load, 100000);
    return NULL;
}

// The thread's end leaves its blocks to be freed by another; the next thread inherits its arena.
static void two_threads(struct load *load) {
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, run_in_thread, load) == 0);
        REQUIRE(pthread_join(thread, NULL) == 0);
        while (load->count > 100) {
            drop(load, load->count / 2);
        }
    }
}

static void drop_all(struct load *load) {
    while (load->count > 0) {
        drop(load, load->count * 7 % 13 % load->count);
    }
}

static size_t run_load(void) {
    static struct load load;
    memset(&load, 0, sizeof(load));
    small_and_page_sized(&load);
    large_and_huge(&load);
    while (load.count > 60) {
        drop(&load, load.count / 3);
    }
    grow_and_shrink(&load);
    two_threads(&load);
    drop_all(&load);
    (void)pma_malloc_trim(0);
    get(&load, 3 << 20);
    get_zeroed(&load, 100);
    drop_all(&load);
    return load.refused;
}

// ---- a child for each n, from the very first call of a fresh heap

struct trial {
    uint64_t n;
    bool forever;
    uint64_t calls; // the child's answer
    size_t refused; // the child's answer
};

static void try_one(void *argument) {
    struct trial *trial = (struct trial *)argument;
    if (trial->n > 0) {
        pma_os_fail_at(trial->n, trial->forever);
    }
    trial->refused = run_load();
    trial->calls = pma_os_calls();
    pma_verify();
    // With a kernel that is willing again everything must be there again.
    pma_os_fail_at(0, false);
    CHECK_EQ(run_load(), 0);
    pma_verify();
}

static struct trial *trial;

static bool succeeds(uint64_t n, bool forever) {
    trial->n = n;
    trial->forever = forever;
    struct child_end end = run_child(try_one, trial, 20);
    if (!expect_exit(&end, 0, "a load with failing calls")) {
        say("call %zu%s failed\n", (size_t)n, forever ? " and all after it" : "");
        return false;
    }
    CHECK_SAY(end.length == 0, "standard error: %s", end.text);
    return true;
}

// Calls near the start are the ones that build the heap: each is tried. Later ones are many of a
// kind, so of those every few.
static void fail_every_call(bool forever) {
    uint64_t n = 1;
    size_t tried = 0;
    size_t refused = 0;
    do {
        bool good = succeeds(n, forever);
        if (!good && failures > 5) {
            return;
        }
        refused += trial->refused > 0;
        tried++;
        n += n < 300 || getenv("PMA_TEST_LONG") != NULL ? 1 : n / 50;
    } while (n <= trial->calls);
    say("%zu runs, %zu of them with refusals, the last made %zu calls\n", tried, refused,
        (size_t)trial->calls);
    // One call that fails is retried another way; if all do, somebody has to be told.
    CHECK(tried > 20 && (!forever || refused > 5));
}

// ---- one heap that meets failures again and again, and loses nothing

static long mapped_kib(void) {
    return status_kib("VmSize:") - (long)(shadow_bytes / 1024);
}

static void fail_again_and_again(void *unused) {
    struct dice dice = { 5 };
    long before = 0;
    (void)unused;
    for (size_t i = 0; i < 150; i++) {
        pma_os_fail_at(1 + dice_below(&dice, 200), i % 4 == 0);
        (void)run_load();
        pma_os_fail_at(0, false);
        (void)pma_malloc_trim(0);
        if (i == 30) {
            before = mapped_kib();
        }
    }
    pma_verify();
    CHECK_EQ(run_load(), 0);
    (void)pma_malloc_trim(0);
    CHECK_AT_MOST(mapped_kib() - before, 32 * 1024);
    CHECK_AT_MOST(rss_kib(), 32 * 1024);
}

int main(void) {
    test_begin(200);
    void *shared =
        mmap(NULL, sizeof(*trial), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    trial = (struct trial *)shared;
    CHECK(succeeds(0, false));
    CHECK_EQ(trial->refused, 0);
    say("the load makes %zu calls\n", (size_t)trial->calls);
    fail_every_call(false);
    fail_every_call(true);
    struct child_end end = run_child(fail_again_and_again, NULL, 60);
    expect_exit(&end, 0, "a heap that meets failures again and again");
    return test_end();
}

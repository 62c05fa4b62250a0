// How often is the kernel called: for one object again and again, for bursts, for growth?
//
// Counted inside: linked with the internal names of the test build, so that nothing of libc's or of
// the program's own calls is in the figures.
#include "../figures.h"

#include <pthread.h>

extern void *pma_malloc(size_t);
extern void *pma_calloc(size_t, size_t);
extern void *pma_realloc(void *, size_t);
extern void pma_free(void *);
extern uint64_t pma_os_calls(void);

static void *get(size_t size) {
    char *block = (char *)pma_malloc(size);
    REQUIRE(block != NULL);
    block[0] = 1;
    return block;
}

static void a_lone_object(size_t size) {
    uint64_t before = pma_os_calls();
    for (size_t i = 0; i < 100000; i++) {
        pma_free(get(size));
    }
    CHECK_SAY(pma_os_calls() - before < 20, "100,000 times %zu bytes: %zu calls", size,
              (size_t)(pma_os_calls() - before));
}

// A MiB in pages, all freed again, by two threads at a time.
static void *bursts(void *count) {
    void *blocks[256];
    for (size_t i = 0; i < *(const size_t *)count; i++) {
        for (size_t k = 0; k < 256; k++) {
            blocks[k] = get(4096);
        }
        for (size_t k = 0; k < 256; k++) {
            pma_free(blocks[k]);
        }
    }
    return NULL;
}

static void run_bursts(size_t count) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, bursts, &count) == 0);
    }
    for (int i = 0; i < 2; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
}

static long faults(void) {
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static void bursts_settle(void) {
    run_bursts(100);
    uint64_t calls = pma_os_calls();
    long faults_before = faults();
    run_bursts(2000);
    size_t operations = (size_t)2 * 2000 * 512;
    say("%zu operations in bursts: %zu calls, %ld faults\n", operations,
        (size_t)(pma_os_calls() - calls), faults() - faults_before);
    CHECK_AT_MOST(pma_os_calls() - calls, operations / 50);
    CHECK_AT_MOST(faults() - faults_before, operations / 50);
}

static void growth(size_t from, size_t to, size_t step, size_t limit) {
    uint64_t before = pma_os_calls();
    char *block = (char *)get(from);
    for (size_t size = from; size <= to; size += step) {
        block = (char *)pma_realloc(block, size);
        REQUIRE(block != NULL);
    }
    pma_free(block);
    say("%zu steps of %zu: %zu calls\n", (to - from) / step, step,
        (size_t)(pma_os_calls() - before));
    CHECK_AT_MOST(pma_os_calls() - before, limit);
}

// Two GiB of small objects, 256 MiB here: the heap grows in logarithmically many steps.
static void filling_a_heap(void) {
    enum { COUNT = (256 << 20) / 1024 };
    static void *blocks[COUNT];
    uint64_t before = pma_os_calls();
    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = pma_malloc(1024);
        REQUIRE(blocks[i] != NULL);
    }
    say("256 MiB in blocks of a KiB: %zu calls\n", (size_t)(pma_os_calls() - before));
    // Populating ahead takes one call for each slab of 64 KiB.
    CHECK_AT_MOST(pma_os_calls() - before, 400 + COUNT / 64);
    for (size_t i = 0; i < COUNT; i++) {
        pma_free(blocks[i]);
    }
}

int main(void) {
    static const size_t sizes[] = { 16, 100, 4096, 20000, 40000, 200000, 900000, 1 << 20, 5 << 20 };
    test_begin(60);
    uint64_t start = pma_os_calls();
    pma_free(get(100));
    say("the first object: %zu calls\n", (size_t)(pma_os_calls() - start));
    CHECK_AT_MOST(pma_os_calls() - start, 20);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        a_lone_object(sizes[i]);
    }
    bursts_settle();
    growth(1 << 20, 1 << 30, 1 << 20, 2500);
    growth(4096, 64 << 20, 4096, 6000);
    filling_a_heap();
    return test_end();
}

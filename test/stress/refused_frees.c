// A heap is filled, and then freed while the kernel refuses every call: munmap, madvise, mprotect,
// and more memory for descriptors. Does each free succeed, and is all of it there again afterwards?
//
// Linked with the internal names of the test build.
#include "../figures.h"

#include <pthread.h>

extern void *pma_malloc(size_t);
extern void pma_free(void *);
extern int pma_malloc_trim(size_t);
extern void pma_verify(void);
extern void pma_os_fail_at(uint64_t n, bool forever);
extern uint64_t pma_os_calls(void);

enum { BLOCKS = 6000, ERRNO_BEFORE = 4711 };

static void *blocks[BLOCKS];

// Slots, runs and huge blocks: about 120 MiB.
static size_t size_of(size_t i) {
    return i % 100 == 0 ? (1 << 20) + i * 16 : i % 10 == 0 ? 40000 + i * 8 : 16 + i % 5000;
}

static size_t fill(void) {
    size_t sum = 0;
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = pma_malloc(size_of(i));
        REQUIRE(blocks[i] != NULL);
        memset(blocks[i], 1, size_of(i));
        sum += size_of(i);
    }
    return sum;
}

static void *free_part(void *which) {
    size_t part = (size_t)(uintptr_t)which;
    for (size_t i = part; i < BLOCKS; i += 2) {
        errno = ERRNO_BEFORE;
        pma_free(blocks[i]);
        CHECK_EQ(errno, ERRNO_BEFORE);
    }
    return NULL;
}

static void round_do(bool by_another) {
    pthread_t thread;
    (void)fill();
    uint64_t calls = pma_os_calls();
    pma_os_fail_at(1, true);
    if (by_another) {
        REQUIRE(pthread_create(&thread, NULL, free_part, (void *)(uintptr_t)1) == 0);
        (void)free_part(NULL);
        REQUIRE(pthread_join(thread, NULL) == 0);
    } else {
        (void)free_part(NULL);
        (void)free_part((void *)(uintptr_t)1);
    }
    (void)pma_malloc_trim(0);
    // The proof that something was refused.
    CHECK(pma_os_calls() > calls);
    pma_os_fail_at(0, false);
    pma_verify();
    // Mappings that the kernel would not take are offered again.
    (void)pma_malloc_trim(0);
}

static void body(void *by_another) {
    size_t sum = fill() / 1024;
    (void)free_part(NULL);
    (void)free_part((void *)(uintptr_t)1);
    (void)pma_malloc_trim(0);
    long rss = rss_kib();
    round_do(by_another != NULL);
    long space = status_kib("VmSize:");
    for (int i = 0; i < 4; i++) {
        round_do(by_another != NULL);
    }
    // Four heaps that were lost would be four times the sum; half of one is allowed for pieces.
    say("%zu KiB in a heap; address space grew by %ld in four rounds\n", sum,
        status_kib("VmSize:") - space);
    CHECK_AT_MOST(status_kib("VmSize:") - space, sum / 2);
    (void)pma_malloc_trim(0);
    CHECK_AT_MOST(rss_kib() - rss, 4096);
}

int main(void) {
    test_begin(60);
    static bool token;
    struct child_end end = run_child(body, NULL, 30);
    if (expect_exit(&end, 0, "frees that the kernel refuses")) {
        say("%s", end.text);
    }
    end = run_child(body, &token, 30);
    if (expect_exit(&end, 0, "frees that the kernel refuses, in two threads")) {
        say("%s", end.text);
    }
    return test_end();
}

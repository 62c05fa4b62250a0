// os.c - what each call to the kernel promises.
#include <config.h>

#include "base.h"
#include "harness.h"
#include "os.h"
#include "probe.h"

#include <pthread.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static bool is_aligned(const void *address) {
    return address != NULL && ((uintptr_t)address & (pma_page_size - 1)) == 0;
}

// ---- mappings

static void check_page_size(void) {
    CHECK(is_power_of_two(pma_page_size));
    CHECK_EQ((size_t)1 << pma_page_shift, pma_page_size);
    CHECK(pma_page_size % (size_t)sysconf(_SC_PAGESIZE) == 0);
    if (getenv("PMA_TEST_PAGE") == NULL) {
        CHECK_EQ(pma_page_size, sysconf(_SC_PAGESIZE));
    }
}

static void check_new_mappings(void) {
    const size_t size = 3 * pma_page_size;
    uint8_t *reserved = pma_os_reserve(NULL, size);
    uint8_t *mapped = pma_os_map(NULL, size);
    const uint8_t *constant = pma_os_map_readonly(NULL, size);
    REQUIRE(is_aligned(reserved) && is_aligned(mapped) && is_aligned(constant));
    for (size_t at = 0; at < size; at += pma_page_size) {
        CHECK(!is_readable(reserved + at) && !is_writable(reserved + at));
        CHECK(is_writable(mapped + at));
        CHECK(is_readable(constant + at) && !is_writable((void *)(uintptr_t)(constant + at)));
    }
    CHECK(is_zero(mapped, size) && is_zero(constant, size));
    memset(mapped, 1, size);
    CHECK(pma_os_unmap(mapped + pma_page_size, pma_page_size));
    CHECK(is_readable(mapped) && is_readable(mapped + 2 * pma_page_size));
    CHECK(!is_readable(mapped + pma_page_size));
    CHECK(pma_os_unmap(mapped, size) && pma_os_unmap(reserved, size));
    CHECK(pma_os_unmap((void *)(uintptr_t)constant, size));
    CHECK(!is_readable(mapped) && !is_readable(constant));
    CHECK(pma_os_reserve(NULL, align_down(SIZE_MAX, pma_page_size)) == NULL);
    CHECK(pma_os_map(NULL, align_down(SIZE_MAX, pma_page_size)) == NULL);
}

// At the hint, or not at all: nothing that is there is replaced.
static void check_hint(void *(*call)(void *, size_t)) {
    const size_t page = pma_page_size;
    uint8_t *place = pma_os_reserve(NULL, 4 * page);
    REQUIRE(place != NULL && pma_os_unmap(place, 4 * page));
    CHECK(call(place + page, page) == place + page);
    CHECK(call(place + page, page) == NULL);
    CHECK(call(place, 4 * page) == NULL);
    CHECK(call(place + 2 * page, page) == place + 2 * page);
    CHECK(pma_os_unmap(place + page, 2 * page));
    uint8_t *used = pma_os_map(place, page);
    REQUIRE(used == place);
    memset(used, 7, page);
    CHECK(call(place, 2 * page) == NULL);
    CHECK(is_filled(used, 7, page));
    CHECK(call((void *)((uintptr_t)1 << 60), page) == NULL);
    CHECK(pma_os_unmap(used, page));
}

static size_t address_space(void) {
    char text[32] = "";
    int file = open("/proc/self/statm", O_RDONLY);
    REQUIRE(file >= 0 && read(file, text, sizeof(text) - 1) > 0 && close(file) == 0);
    return strtoul(text, NULL, 10);
}

// What is mapped for the sake of alignment does not stay, nor what came to another place.
static void check_no_rest(void) {
    uint8_t *taken = pma_os_map(NULL, pma_page_size);
    size_t before = address_space();
    void *start = pma_os_map(NULL, 5 * pma_page_size);
    CHECK_EQ(address_space() - before, 5 * pma_page_size / (size_t)sysconf(_SC_PAGESIZE));
    CHECK(pma_os_reserve(taken, pma_page_size) == NULL);
    CHECK(pma_os_unmap(start, 5 * pma_page_size));
    CHECK_EQ(address_space(), before);
    CHECK(pma_os_unmap(taken, pma_page_size));
}

static void check_commit(void) {
    const size_t page = pma_page_size;
    uint8_t *start = pma_os_reserve(NULL, 4 * page);
    REQUIRE(start != NULL && pma_os_commit(start, 3 * page));
    CHECK(is_writable(start + 2 * page) && !is_readable(start + 3 * page));
    CHECK(is_zero(start, 3 * page));
    memset(start, 5, 3 * page);
    CHECK(pma_os_protect(start, page));
    CHECK(is_readable(start) && !is_writable(start) && is_writable(start + page));
    CHECK(pma_os_commit(start, page));
    CHECK(is_writable(start) && is_filled(start, 5, 3 * page));
    CHECK(pma_os_decommit(start + page, page));
    CHECK(!is_readable(start + page));
    CHECK(is_filled(start, 5, page) && is_filled(start + 2 * page, 5, page));
    CHECK(pma_os_commit(start + page, page));
    CHECK(is_zero(start + page, page));
    CHECK(pma_os_unmap(start, 4 * page));
    CHECK(!pma_os_commit(start, page));
    CHECK(!pma_os_protect(start, page));
}

static size_t resident(void *start, size_t size) {
    static unsigned char map[4096];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t count = 0;
    REQUIRE(size / page <= sizeof(map) && mincore(start, size, map) == 0);
    for (size_t i = 0; i < size / page; i++) {
        count += map[i] & 1u;
    }
    return count * page;
}

static void check_purge_and_populate(void) {
    const size_t size = 64 * pma_page_size;
    uint8_t *start = pma_os_map(NULL, size);
    REQUIRE(start != NULL);
    const bool honest = advice_is_heard(start, size);
    CHECK_EQ(resident(start, size), 0);
    if (honest && pma_os_populate(start, size / 2)) {
        CHECK_EQ(resident(start, size / 2), size / 2);
    }
    CHECK(is_zero(start, size));
    memset(start, 3, size);
    CHECK_EQ(resident(start, size), size);
    for (int round = 0; round < 2; round++) {
        memset(start, 3, size);
        CHECK(pma_os_purge(start + pma_page_size, size / 2));
        CHECK(is_filled(start, 3, pma_page_size));
        CHECK_EQ(resident(start, size), size / 2);
        CHECK(is_zero(start + pma_page_size, size / 2));
        CHECK(is_filled(start + pma_page_size + size / 2, 3, size / 2 - pma_page_size));
        CHECK(is_writable(start + pma_page_size));
    }
    // What cannot be dropped must not be called zero. (Sanitizers make mlock do nothing.)
    if (syscall(SYS_mlock, start, pma_page_size) == 0) {
        CHECK(!pma_os_purge(start, pma_page_size));
        CHECK(is_filled(start, 3, pma_page_size));
    }
    CHECK(pma_os_unmap(start, size));
    CHECK(!honest || !pma_os_populate(start, size));
    CHECK(!honest || !pma_os_purge(start, size));
}

static void check_remap_in_place(void) {
    const size_t page = pma_page_size;
    uint8_t *start = pma_os_reserve(NULL, 4 * page);
    REQUIRE(start != NULL && pma_os_commit(start, 2 * page));
    memset(start, 9, 2 * page);
    // The next page is taken: no growth in place.
    CHECK(pma_os_remap(start, 2 * page, 3 * page, NULL) == NULL);
    CHECK(is_filled(start, 9, 2 * page) && !is_readable(start + 2 * page));
    CHECK(pma_os_unmap(start + 2 * page, 2 * page));
    CHECK(pma_os_remap(start, 2 * page, 4 * page, NULL) == start);
    CHECK(is_filled(start, 9, 2 * page) && is_zero(start + 2 * page, 2 * page));
    CHECK(pma_os_unmap(start, 4 * page));
}

static void check_remap_to(void) {
    const size_t page = pma_page_size;
    uint8_t *start = pma_os_map(NULL, 2 * page);
    uint8_t *target = pma_os_reserve(NULL, 10 * page);
    REQUIRE(start != NULL && target != NULL);
    memset(start, 9, 2 * page);
    CHECK(pma_os_remap(start, 2 * page, 8 * page, target + page) == target + page);
    CHECK(!is_readable(start) && !is_readable(start + page));
    CHECK(is_filled(target + page, 9, 2 * page) && is_zero(target + 3 * page, 6 * page));
    CHECK(is_writable(target + 3 * page));
    CHECK(!is_readable(target) && !is_readable(target + 9 * page));
    CHECK(pma_os_remap(target + page, 8 * page, 9 * page, (void *)((uintptr_t)1 << 60)) == NULL);
    CHECK(pma_os_remap(target + page, 8 * page, align_down(SIZE_MAX / 2, page), NULL) == NULL);
    CHECK(is_filled(target + page, 9, 2 * page));
    CHECK(pma_os_unmap(target, 10 * page));
}

// Mappings at addresses of the kernel's choice are aligned, though the kernel's next choice is off
// by one of its own pages.
static void check_alignment(void) {
    const size_t kernel_page = (size_t)sysconf(_SC_PAGESIZE);
    void *kept[20];
    for (size_t i = 0; i < 20; i++) {
        kept[i] = mmap(NULL, kernel_page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        void *start = pma_os_map(NULL, (i + 1) * pma_page_size);
        REQUIRE(kept[i] != MAP_FAILED && is_aligned(start));
        memset(start, 1, (i + 1) * pma_page_size);
        CHECK(pma_os_unmap(start, (i + 1) * pma_page_size));
    }
    for (size_t i = 0; i < 20; i++) {
        CHECK(munmap(kept[i], kernel_page) == 0);
    }
}

static void see_zero(void *start) {
    CHECK(is_zero(start, pma_page_size));
    CHECK(is_filled((uint8_t *)start + pma_page_size, 4, pma_page_size));
}

static void check_wipe_on_fork(void) {
    uint8_t *start = pma_os_map(NULL, 2 * pma_page_size);
    REQUIRE(start != NULL);
    if (!advice_is_heard(start, pma_page_size)) {
        CHECK(!pma_os_wipe_on_fork(start, pma_page_size));
        return;
    }
    REQUIRE(pma_os_wipe_on_fork(start, pma_page_size));
    memset(start, 4, 2 * pma_page_size);
    struct child_end end = run_child(see_zero, start, 20);
    expect_exit(&end, 0, "the child sees zero");
    CHECK(is_filled(start, 4, 2 * pma_page_size));
    CHECK(pma_os_unmap(start, 2 * pma_page_size));
    CHECK(!pma_os_wipe_on_fork(start, pma_page_size));
}

// ---- entropy

// About half the bits of each generator are set, no two blocks of it are the same, and nothing is
// written outside.
static void check_random(bool (*call)(void *, size_t)) {
    static uint8_t bytes[4096];
    uint64_t blocks[256];
    REQUIRE(call(bytes, sizeof(bytes)));
    uint64_t ones = 0;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        ones += bits_count(bytes[i]);
    }
    // 32,768 bits have a standard deviation of 90.5; seven of them.
    CHECK_SAY(ones > 16384 - 634 && ones < 16384 + 634, "%ju bits of 32768", (uintmax_t)ones);
    for (size_t i = 0; i < 256; i++) {
        REQUIRE(call(&blocks[i], sizeof(blocks[i])));
        for (size_t j = 0; j < i; j++) {
            CHECK(blocks[i] != blocks[j]);
        }
    }
    for (size_t size = 0; size < 40; size++) {
        memset(bytes, 0xa5, 64);
        REQUIRE(call(bytes + 8, size));
        CHECK(is_filled(bytes, 0xa5, 8) && is_filled(bytes + 8 + size, 0xa5, 56 - size));
        CHECK(size < 16 || !is_filled(bytes + size, 0xa5, 8));
    }
}

static bool random_fallback(void *buffer, size_t size) {
    pma_os_random_fallback(buffer, size);
    return true;
}

// ---- time, processors, sleep

static uint64_t now(void) {
    struct timespec time;
    REQUIRE(clock_gettime(CLOCK_MONOTONIC, &time) == 0);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void check_time(void) {
    struct timespec rest = { 0, 50000000 };
    uint64_t first = pma_os_time();
    CHECK_AT_MOST(first, now());
    CHECK(nanosleep(&rest, NULL) == 0);
    uint64_t second = pma_os_time();
    CHECK(second - first > 20000000);
    CHECK_AT_MOST(second, now());
    CHECK_AT_MOST(now() - second, 1000000000);
}

static void check_processors(void) {
    cpu_set_t usable, one;
    REQUIRE(sched_getaffinity(0, sizeof(usable), &usable) == 0);
    CHECK_EQ(pma_os_processors(), CPU_COUNT(&usable));
    int first = 0;
    while (!CPU_ISSET(first, &usable)) {
        first++;
    }
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    REQUIRE(sched_setaffinity(0, sizeof(one), &one) == 0);
    CHECK_EQ(pma_os_processors(), 1);
    REQUIRE(sched_setaffinity(0, sizeof(usable), &usable) == 0);
}

static uint32_t word;   // atomic
static uint32_t events; // atomic

static void *thread_wait(void *argument) {
    (void)argument;
    while (__atomic_load_n(&word, __ATOMIC_SEQ_CST) == 1) {
        __atomic_fetch_add(&events, 1, __ATOMIC_SEQ_CST);
        pma_os_wait(&word, 1);
    }
    return NULL;
}

static void check_wait(void) {
    pthread_t threads[2];
    struct timespec rest = { 0, 30000000 };
    word = 1;
    events = 0;
    pma_os_wait(&word, 2);
    pma_os_wake(&word);
    for (int i = 0; i < 2; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, thread_wait, NULL) == 0);
    }
    while (__atomic_load_n(&events, __ATOMIC_SEQ_CST) < 2) {
        pma_os_yield();
    }
    CHECK(nanosleep(&rest, NULL) == 0);
    CHECK_EQ(__atomic_load_n(&events, __ATOMIC_SEQ_CST), 2);
    // A wake wakes one at most: it finds the word as it was and sleeps again.
    pma_os_wake(&word);
    CHECK(nanosleep(&rest, NULL) == 0);
    CHECK_AT_MOST(__atomic_load_n(&events, __ATOMIC_SEQ_CST), 3);
    __atomic_store_n(&word, 0, __ATOMIC_SEQ_CST);
    pma_os_wake(&word);
    pma_os_wake(&word);
    for (int i = 0; i < 2; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
}

// ---- descriptors and files

static void signal_nothing(int number) {
    (void)number;
}

static pthread_t writer;
static char written[300000];

// Reads little at a time, and interrupts the writer each time, so that it writes in parts.
static void *thread_read_slowly(void *argument) {
    const int *end = argument;
    static char got[sizeof(written)];
    size_t filled = 0;
    struct timespec rest = { 0, 1000000 };
    while (filled < sizeof(got)) {
        ssize_t n = read(*end, got + filled, 30000);
        REQUIRE(n > 0);
        filled += (size_t)n;
        CHECK(nanosleep(&rest, NULL) == 0);
        CHECK(pthread_kill(writer, SIGUSR1) == 0);
    }
    CHECK(memcmp(got, written, sizeof(got)) == 0);
    return NULL;
}

static void check_write(void) {
    int ends[2];
    pthread_t reader;
    struct sigaction action = { .sa_handler = signal_nothing };
    for (size_t i = 0; i < sizeof(written); i++) {
        written[i] = (char)(i % 251);
    }
    writer = pthread_self();
    REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0 && pipe(ends) == 0);
    REQUIRE(pthread_create(&reader, NULL, thread_read_slowly, &ends[0]) == 0);
    pma_os_write(ends[1], written, sizeof(written));
    REQUIRE(pthread_join(reader, NULL) == 0);
    // A full pipe that does not wait ends it, and so does a descriptor that is none.
    REQUIRE(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
    pma_os_write(ends[1], written, sizeof(written));
    pma_os_write(-1, written, sizeof(written));
    REQUIRE(close(ends[0]) == 0 && close(ends[1]) == 0);
}

static void check_read_file(void) {
    char path[64], text[64];
    (void)snprintf(path, sizeof(path), "os-test-file.%d", (int)getpid());
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    REQUIRE(file >= 0 && write(file, "seed=1\n", 7) == 7 && close(file) == 0);
    memset(text, '.', sizeof(text));
    CHECK_EQ(pma_os_read_file(path, text, sizeof(text)), 7);
    CHECK(memcmp(text, "seed=1\n.", 8) == 0);
    CHECK_EQ(pma_os_read_file(path, text + 10, 4), 4);
    CHECK(memcmp(text + 10, "seed.", 5) == 0);
    REQUIRE(unlink(path) == 0);
    CHECK_EQ(pma_os_read_file(path, text, sizeof(text)), -ENOENT);
    CHECK_EQ(pma_os_read_file(".", text, sizeof(text)), -EISDIR);
    REQUIRE(mkfifo(path, 0600) == 0);
    CHECK_EQ(pma_os_read_file(path, text, sizeof(text)), 0);
    REQUIRE(unlink(path) == 0);
    // No descriptor is left open: the next one is the one that was next before.
    int next = open("/", O_RDONLY);
    CHECK_EQ(next, file);
    REQUIRE(close(next) == 0);
}

// ---- overwriting what may be closed

struct closed {
    uint64_t words[4];
};

static void write_to(void *argument) {
    *(volatile uint64_t *)argument = 1;
}

static bool can_write(void *address) {
    struct child_end end = run_child(write_to, address, 20);
    return WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0;
}

static void check_overwrite(void) {
    uint64_t *page = pma_os_map(NULL, 2 * pma_page_size);
    REQUIRE(page != NULL);
    // The library's page may be a larger one than the kernel's, by which this goes.
    uint64_t *object = page + getauxval(AT_PAGESZ) / sizeof(*page) - 4;
    struct closed first = { { 1, 2, 3, 4 } };
    struct closed second = { { 5, 6, 7, 8 } };
    CHECK(pma_os_overwrite(object, &first, sizeof(first)));
    CHECK(memcmp(object, &first, sizeof(first)) == 0);
    CHECK(can_write(object));
    REQUIRE(pma_os_protect(page, pma_page_size));
    CHECK(pma_os_overwrite(object, &second, sizeof(second)));
    CHECK(memcmp(object, &second, sizeof(second)) == 0);
    CHECK(!can_write(object));
    CHECK(!can_write(page));
    CHECK(can_write(page + pma_page_size / sizeof(*page)));
    // Nothing changes when the page cannot be opened.
    pma_os_fail_at(1, false);
    CHECK(!pma_os_overwrite(object, &first, sizeof(first)));
    pma_os_fail_at(0, false);
    CHECK(memcmp(object, &second, sizeof(second)) == 0);
    REQUIRE(pma_os_unmap(page, 2 * pma_page_size));
}

static void check_all(void) {
    check_page_size();
    check_new_mappings();
    check_hint(pma_os_reserve);
    check_hint(pma_os_map);
    check_hint(pma_os_map_readonly);
    check_no_rest();
    check_commit();
    check_purge_and_populate();
    check_remap_in_place();
    check_remap_to();
    check_alignment();
    check_wipe_on_fork();
    check_random(pma_os_random);
    check_random(random_fallback);
    check_time();
    check_processors();
    check_wait();
    check_write();
    check_read_file();
    check_overwrite();
    CHECK_EQ(pma_os_is_privileged(), getauxval(AT_SECURE) != 0);
}

static void check_with_page(void *page) {
    REQUIRE(setenv("PMA_TEST_PAGE", page, 1) == 0);
    pma_os_init();
    CHECK_EQ(pma_page_size, atoi(page));
    check_all();
}

int main(void) {
    test_begin(120);
    pma_os_init();
    check_all();
    static char pages[3][8] = { "16384", "32768", "65536" };
    for (int i = 0; i < 3; i++) {
        struct child_end end = run_child(check_with_page, pages[i], 60);
        expect_exit(&end, 0, pages[i]);
    }
    return test_end();
}

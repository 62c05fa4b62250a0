// background.c - the thread gives back what lies unused, keeps out of signals and forks, and keeps
// no process alive.
#include <config.h>

#include "background.h"
#include "base.h"
#include "figures.h"
#include "harness.h"
#include "os.h"
#include "pageheap.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/resource.h>

extern void *pma_malloc(size_t size);
extern void pma_free(void *block);

enum { BLOCKS = 25000, SIZE = 400 };

static void *blocks[BLOCKS];

static void sleep_ms(long ms) {
    struct timespec time = { ms / 1000, ms % 1000 * 1000000 };
    while (nanosleep(&time, &time) != 0) {
    }
}

// About 11 MiB of small blocks, all freed: less than what may stay dirty without this thread, with
// any size of the page.
static void fill_and_empty(void) {
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = pma_malloc(SIZE);
        REQUIRE(blocks[i] != NULL);
        memset(blocks[i], 1, SIZE);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        pma_free(blocks[i]);
    }
}

static size_t dirty_now(void) {
    return __atomic_load_n(&pma_pageheap.dirty, __ATOMIC_RELAXED);
}

// Waits without a call into the library.
static bool becomes_clean(unsigned ms) {
    for (unsigned i = 0; i < ms / 10 * slow_factor() && dirty_now() > 0; i++) {
        sleep_ms(10);
    }
    return dirty_now() == 0;
}

static long threads_now(void) {
    return status_kib("Threads:");
}

// A sanitizer has threads of its own.
static bool is_sanitized;

static bool has_threads(long count) {
    for (unsigned i = 0; i < 200 * slow_factor() && threads_now() != count && !is_sanitized; i++) {
        sleep_ms(10);
    }
    return threads_now() == count || is_sanitized;
}

// ---- cases, each in a child that has no thread yet

static void gives_back(void *unused) {
    (void)unused;
    CHECK(!pma_background_is_running());
    fill_and_empty();
    CHECK(dirty_now() > 1 << 20);
    sleep_ms(1500);
    // The proof that something is measured: without the thread nothing happens.
    CHECK(dirty_now() > 1 << 20);
    pma_background_enable();
    CHECK(becomes_clean(4000));
    // From its sleep it is called by a free.
    for (int i = 0; i < 2; i++) {
        sleep_ms(1300);
        fill_and_empty();
        CHECK(becomes_clean(4000));
    }
    // A huge block is cached, and goes from there.
    void *block = pma_malloc(5 << 20);
    REQUIRE(block != NULL);
    memset(block, 1, 5 << 20);
    pma_free(block);
    CHECK(dirty_now() > 0);
    CHECK(becomes_clean(4000));
    pma_background_enable();
    CHECK(has_threads(2));
}

// The mask of every other thread: all that can be blocked is.
static void signals_stay_out(void *unused) {
    (void)unused;
    pma_background_enable();
    CHECK(has_threads(2));
    for (unsigned i = 0; i < 100 && !pma_background_is_running(); i++) {
        sleep_ms(10);
    }
    sigset_t mask;
    REQUIRE(pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0);
    CHECK(sigismember(&mask, SIGUSR1) == 0);
    DIR *folder = opendir("/proc/self/task");
    REQUIRE(folder != NULL);
    unsigned seen = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[64];
        char text[4096];
        long number = strtol(entry->d_name, NULL, 10);
        if (number == 0 || number == getpid()) {
            continue;
        }
        (void)snprintf(path, sizeof(path), "/proc/self/task/%ld/status", number);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        REQUIRE(file >= 0);
        ssize_t length = read(file, text, sizeof(text) - 1);
        (void)close(file);
        text[length > 0 ? length : 0] = 0;
        const char *blocked = strstr(text, "SigBlk:");
        REQUIRE(blocked != NULL);
        unsigned long long bits = strtoull(blocked + 7, NULL, 16);
        for (int number_of = 1; number_of < 32; number_of++) {
            bool must = number_of != SIGKILL && number_of != SIGSTOP;
            CHECK(((bits >> (number_of - 1) & 1) != 0) == must);
        }
        seen++;
    }
    (void)closedir(folder);
    CHECK(seen == 1 || (is_sanitized && seen > 1));
}

static void grandchild(void *unused) {
    (void)unused;
    CHECK_EQ(threads_now(), 1);
    CHECK(!pma_background_is_running());
    // Calls bring it back, about a second after the first.
    for (unsigned i = 0; i < 400 * slow_factor() && !pma_background_is_running(); i++) {
        fill_and_empty();
        sleep_ms(10);
    }
    CHECK(pma_background_is_running());
    CHECK(has_threads(2));
    fill_and_empty();
    CHECK(becomes_clean(4000));
}

static void forked_children(void *unused) {
    (void)unused;
    pma_background_enable();
    fill_and_empty();
    struct child_end end = run_child(grandchild, NULL, 20);
    expect_exit(&end, 0, "a forked child");
    // And the parent's is still there.
    fill_and_empty();
    CHECK(becomes_clean(4000));
    CHECK_EQ(threads_now(), 2);
}

static void child_in_a_hurry(void *unused) {
    (void)unused;
    fill_and_empty();
}

static void many_forks(void *unused) {
    (void)unused;
    pma_background_enable();
    for (int i = 0; i < 60; i++) {
        fill_and_empty();
        sleep_ms(i * 7 % 50);
        struct child_end end = run_child(child_in_a_hurry, NULL, 10);
        expect_exit(&end, 0, "a child of many");
    }
}

static void *work(void *unused) {
    for (int i = 0; i < 300; i++) {
        void *held[64];
        for (int k = 0; k < 64; k++) {
            held[k] = pma_malloc((size_t)(k + 1) * 5000);
            CHECK(held[k] != NULL);
        }
        for (int k = 0; k < 64; k++) {
            pma_free(held[k]);
        }
    }
    return unused;
}

static void many_threads(void *unused) {
    pthread_t threads[8];
    (void)unused;
    pma_background_enable();
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 8; i++) {
            REQUIRE(pthread_create(&threads[i], NULL, work, NULL) == 0);
        }
        for (int i = 0; i < 8; i++) {
            REQUIRE(pthread_join(threads[i], NULL) == 0);
        }
        sleep_ms(400);
    }
    CHECK(becomes_clean(5000));
}

static void *last_thread(void *unused) {
    sleep_ms(200);
    return unused;
}

// The process ends with its own last thread, whatever the first one did.
static void first_thread_leaves(void *with_other) {
    pthread_t thread;
    pma_background_enable();
    CHECK(has_threads(2));
    sleep_ms(50);
    if (with_other != NULL) {
        REQUIRE(pthread_create(&thread, NULL, last_thread, NULL) == 0);
    }
    pthread_exit(NULL);
}

static void no_thread_to_be_had(void *unused) {
    (void)unused;
    fill_and_empty();
    struct rlimit limit = { 1 << 20, 1 << 20 };
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
    pma_background_enable();
    CHECK(!pma_background_is_running());
    errno = 4711;
    pma_free(pma_malloc(100));
    CHECK_EQ(errno, 4711);
    CHECK_EQ(threads_now(), 1);
}

// ---- all of them at once, since most of their time is sleep

struct kase {
    const char *name;
    void (*body)(void *);
    void *argument;
    const char *says;
    bool
        not_sanitized; // the thread sanitizer refuses a thread in a child of a process with threads
};

static void supervise(const struct kase *kase) {
    struct child_end end = run_child(kase->body, kase->argument, 60);
    if (expect_exit(&end, 0, kase->name)) {
        CHECK_SAY(strcmp(end.text, kase->says) == 0, "%s: standard error: %s", kase->name,
                  end.text);
    }
    _exit(test_end());
}

int main(void) {
    static bool token;
    static const struct kase kases[] = {
        { "unused memory goes back", gives_back, NULL, "", false },
        { "signals are blocked", signals_stay_out, NULL, "", false },
        { "a child has a thread of its own", forked_children, NULL, "", true },
        { "many forks", many_forks, NULL, "", true },
        { "many threads", many_threads, NULL, "", false },
        { "the first thread leaves", first_thread_leaves, NULL, "", true },
        { "the first thread leaves before another", first_thread_leaves, &token, "", true },
        { "no thread to be had", no_thread_to_be_had, NULL,
          "pamalloc: no thread could be had for the option background\n", true },
    };
    enum { KASES = sizeof(kases) / sizeof(kases[0]) };
    pid_t supervisors[KASES];
    test_begin(90);
    const char *sanitizers = getenv("SANITIZERS");
    is_sanitized = sanitizers != NULL && strcmp(sanitizers, "no") != 0;
    for (size_t i = 0; i < KASES; i++) {
        supervisors[i] = is_sanitized && kases[i].not_sanitized ? 0 : fork();
        REQUIRE(supervisors[i] >= 0);
        if (supervisors[i] == 0 && !(is_sanitized && kases[i].not_sanitized)) {
            supervise(&kases[i]);
        }
    }
    for (size_t i = 0; i < KASES; i++) {
        int status = 0;
        if (supervisors[i] > 0) {
            CHECK(waitpid(supervisors[i], &status, 0) == supervisors[i]);
            CHECK_SAY(status == 0, "%s", kases[i].name);
        }
    }
    return test_end();
}

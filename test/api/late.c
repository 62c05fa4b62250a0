// Does the heap work at the last moments: in exit handlers, destructors of threads and libraries,
// and in threads that run on while the process ends?
#include "../work.h"
#include "../figures.h"

#include <pthread.h>

extern int __cxa_thread_atexit_impl(void (*destroy)(void *), void *object, void *library);
extern void *__dso_handle;

enum { KEYS = 20 };

static pthread_key_t keys[KEYS];
static int destroyed;

// Sets itself again, up to the limit of rounds, and works on the heap in each of them.
static void destroy_value(void *value) {
    void *block = hide(malloc(100));
    CHECK(block != NULL);
    memset(block, 1, 100);
    free(block);
    free(value);
    destroyed++;
    for (int i = 0; i < KEYS; i++) {
        if (pthread_getspecific(keys[i]) == NULL && destroyed % 3 == 0) {
            (void)pthread_setspecific(keys[i], malloc(48));
            return;
        }
    }
}

static void destroy_local(void *value) {
    free(value);
    void *block = hide(calloc(100, 100));
    CHECK(block != NULL);
    free(block);
}

static void *thread_with_destructors(void *unused) {
    for (int i = 0; i < KEYS; i++) {
        CHECK(pthread_setspecific(keys[i], malloc((size_t)i * 1000 + 1)) == 0);
    }
    for (int i = 0; i < 5; i++) {
        CHECK(__cxa_thread_atexit_impl(destroy_local, malloc(3000), __dso_handle) == 0);
    }
    CHECK(work_run((uint64_t)(uintptr_t)&unused, 50, 60000) == 0);
    return unused;
}

static void run_threads(size_t count) {
    pthread_t threads[8];
    for (size_t done = 0; done < count; done += 8) {
        for (size_t i = 0; i < 8; i++) {
            REQUIRE(pthread_create(&threads[i], NULL, thread_with_destructors, NULL) == 0);
        }
        for (size_t i = 0; i < 8; i++) {
            REQUIRE(pthread_join(threads[i], NULL) == 0);
        }
    }
}

// What late calls create comes back too: thousands of threads end with the memory of some dozens.
static void destructors_of_threads_leave_nothing(void) {
    for (int i = 0; i < KEYS; i++) {
        REQUIRE(pthread_key_create(&keys[i], destroy_value) == 0);
        if (i == KEYS / 2) {
            free(hide(malloc(1)));
        }
    }
    run_threads(160);
    long before = rss_kib();
    run_threads(4000);
    (void)malloc_trim(0);
    CHECK_AT_MOST(rss_kib() - before, 2048);
}

static void *work_for_ever(void *seed) {
    struct work work;
    work_begin(&work, (uint64_t)(uintptr_t)seed, 100000);
    for (;;) {
        work_step(&work);
    }
    return NULL;
}

static char *kept;

static void exit_handler(void) {
    free(hide(kept));
    kept = (char *)hide(malloc(5000));
    CHECK(kept != NULL);
    CHECK(work_run(6, 300, 1 << 20) == 0);
    if (failures != 0) {
        _exit(1);
    }
}

__attribute__((destructor)) static void last_destructor(void) {
    free(hide(kept));
    free(hide(malloc(100)));
}

static void start_threads(void) {
    for (uintptr_t i = 1; i <= 2; i++) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, work_for_ever, (void *)i) == 0);
        REQUIRE(pthread_detach(thread) == 0);
    }
    kept = (char *)hide(malloc(100));
    REQUIRE(atexit(exit_handler) == 0);
    REQUIRE(at_quick_exit(exit_handler) == 0);
}

static void end_by_exit(void *unused) {
    (void)unused;
    start_threads();
    exit(0);
}

static void end_by_quick_exit(void *unused) {
    (void)unused;
    start_threads();
    quick_exit(0);
}

static void *end_process(void *unused) {
    (void)unused;
    exit(0);
}

// The main thread is gone and another one ends the process.
static void end_without_main(void *unused) {
    pthread_t thread;
    kept = (char *)hide(malloc(100));
    REQUIRE(atexit(exit_handler) == 0);
    REQUIRE(pthread_create(&thread, NULL, end_process, unused) == 0);
    pthread_exit(NULL);
}

static void ends_are_clean(void (*body)(void *), const char *name, size_t runs) {
    for (size_t i = 0; i < runs; i++) {
        struct child_end end = run_child(body, NULL, 10);
        if (!expect_exit(&end, 0, name)) {
            return;
        }
        CHECK_SAY(end.length == 0, "%s: %s", name, end.text);
    }
}

int main(void) {
    api_begin(120);
    ends_are_clean(end_by_exit, "exit while threads run", 150);
    ends_are_clean(end_by_quick_exit, "quick_exit while threads run", 50);
    ends_are_clean(end_without_main, "exit after the main thread", 30);
    destructors_of_threads_leave_nothing();
    return test_end();
}

// The last calls of a process and of its threads.
#include "life.h"

#include <pthread.h>

extern int __cxa_thread_atexit_impl(void (*destroy)(void *), void *object, void *library);
extern void *__dso_handle;

enum { RUNS = 30 };

static void times(void (*body)(void *), const char *name) {
    for (int i = 0; i < RUNS && failures == 0; i++) {
        life_child(body, NULL, name);
    }
}

static void use_the_heap(void) {
    void *kept = hide(malloc(5000));
    if (kept == NULL || work_run(1, 300, 1 << 20) != 0 || failures != 0) {
        _exit(1);
    }
    free(hide(kept));
}

// ---- threads

static void destroy(void *value) {
    free(value);
    use_the_heap();
}

static void *leave_thread_locals(void *unused) {
    for (int i = 0; i < 5; i++) {
        CHECK(__cxa_thread_atexit_impl(destroy, hide(malloc(3000)), __dso_handle) == 0);
    }
    return unused;
}

static void in_destructors_of_thread_locals(void) {
    for (int i = 0; i < RUNS; i++) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, leave_thread_locals, NULL) == 0);
        REQUIRE(pthread_join(thread, NULL) == 0);
    }
}

static pthread_key_t keys[20];
static int rounds;

// Sets itself again, so that it is called in each of the rounds that there are.
static void destroy_again(void *value) {
    destroy(value);
    if (__atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED) % 4 != 0) {
        (void)pthread_setspecific(keys[19], hide(malloc(100)));
    }
}

static void *leave_values(void *unused) {
    for (size_t i = 0; i < 20; i++) {
        CHECK(pthread_setspecific(keys[i], hide(malloc(i * 1000 + 1))) == 0);
    }
    return unused;
}

static void in_destructors_of_keys(void) {
    for (int i = 0; i < 20; i++) {
        REQUIRE(pthread_key_create(&keys[i], destroy_again) == 0);
    }
    for (int i = 0; i < RUNS; i++) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, leave_values, NULL) == 0);
        REQUIRE(pthread_join(thread, NULL) == 0);
    }
}

// ---- the process

static void exit_with_handlers(void *unused) {
    (void)unused;
    for (int i = 0; i < 100; i++) {
        REQUIRE(atexit(use_the_heap) == 0);
    }
    exit(0);
}

static void in_exit_handlers(void) {
    times(exit_with_handlers, "exit handlers");
}

static void exit_quickly(void *unused) {
    (void)unused;
    REQUIRE(at_quick_exit(use_the_heap) == 0);
    quick_exit(0);
}

static void in_quick_exit_handlers(void) {
    times(exit_quickly, "quick_exit handlers");
}

static char *kept;
static bool uses_heap_last;

__attribute__((destructor)) static void last(void) {
    if (uses_heap_last) {
        free(hide(kept));
        use_the_heap();
    }
}

static void exit_with_destructor(void *unused) {
    (void)unused;
    kept = (char *)hide(malloc(100));
    uses_heap_last = true;
    exit(0);
}

static void after_main(void) {
    times(exit_with_destructor, "a destructor after main");
}

static void *work_for_ever(void *seed) {
    struct work work;
    work_begin(&work, (uint64_t)(uintptr_t)seed, 100000);
    for (;;) {
        work_step(&work);
    }
    return NULL;
}

static void exit_beside_threads(void *unused) {
    (void)unused;
    for (uintptr_t i = 1; i <= 2; i++) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, work_for_ever, (void *)i) == 0);
        REQUIRE(pthread_detach(thread) == 0);
    }
    REQUIRE(atexit(use_the_heap) == 0);
    uses_heap_last = true;
    exit(0);
}

static void in_a_detached_thread_during_exit(void) {
    times(exit_beside_threads, "detached threads during exit");
}

static void *end_process(void *unused) {
    (void)unused;
    exit(0);
}

static void leave_main(void *unused) {
    pthread_t thread;
    REQUIRE(atexit(use_the_heap) == 0);
    REQUIRE(pthread_create(&thread, NULL, end_process, unused) == 0);
    pthread_exit(NULL);
}

static void after_the_main_thread(void) {
    times(leave_main, "exit after the main thread");
}

static const struct life_case cases[] = {
    { "in_destructors_of_thread_locals", in_destructors_of_thread_locals },
    { "in_destructors_of_keys", in_destructors_of_keys },
    { "in_exit_handlers", in_exit_handlers },
    { "in_quick_exit_handlers", in_quick_exit_handlers },
    { "after_main", after_main },
    { "in_a_detached_thread_during_exit", in_a_detached_thread_during_exit },
    { "after_the_main_thread", after_the_main_thread },
};

LIFE_MAIN(cases)

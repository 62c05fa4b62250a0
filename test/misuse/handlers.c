// Can a program that handles SIGABRT tell its story, with everything that takes the heap, while
// other threads work on, and end by itself: is no lock held and the line written once?
#include "wrong.h"

#include "../figures.h"

#include <execinfo.h>
#include <pthread.h>

static void tell_story(int number) {
    void *frames[32];
    (void)number;
    for (size_t size = 1; size < (4 << 20); size *= 3) {
        void *block = hide(realloc(hide(malloc(size)), 2 * size));
        if (block == NULL) {
            _exit(4);
        }
        free(hide(block));
    }
    free(hide(told->size > 0 ? malloc(told->size) : NULL));
    int depth = backtrace(frames, 32);
    free(backtrace_symbols(frames, depth));
    printf("a story of %d frames\n", depth);
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        free(hide(malloc(100)));
        _exit(7);
    }
    int status = 0;
    (void)waitpid(child, &status, 0);
    _exit(WIFEXITED(status) && WEXITSTATUS(status) == 7 ? 3 : 5);
}

static void *allocate_for_ever(void *seed) {
    struct dice dice = { (uint64_t)(uintptr_t)seed };
    void *held[200] = { NULL };
    for (;;) {
        size_t i = dice_below(&dice, 200);
        free(hide(held[i]));
        held[i] = hide(malloc((size_t)1 << dice_below(&dice, 21)));
    }
    return NULL;
}

static void *free_it(void *block) {
    free(hide(block));
    return NULL;
}

static void free_in_thread(void *block) {
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, free_it, block) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
}

static void *block_of(size_t size) {
    return tell(hide(malloc(size)), size);
}

static void small_twice(void) {
    void *block = block_of(100);
    free(hide(block));
    free(hide(block));
}

static void large_twice(void) {
    void *block = block_of(100000);
    free(hide(block));
    free(hide(block));
}

static void huge_twice(void) {
    void *block = block_of(5 << 20);
    free(hide(block));
    free(hide(block));
}

static void interior(void) {
    free((char *)block_of(100) + 16);
}

static void foreign(void) {
    free(hide(&told));
}

static void impossible(void) {
    (void)hide(realloc(hide((void *)(uintptr_t)0xffff800000000000), any(10)));
}

static void by_a_stranger(void) {
    void *block = block_of(100);
    free(hide(block));
    free_in_thread(block);
}

// Found late, deep inside a refill or a drain: whatever is locked there must be let go first.
static void found_late(size_t size) {
    void *block = block_of(size);
    free_in_thread(block);
    free(hide(block));
    for (size_t i = 0; i < 20000; i++) {
        (void)hide(malloc(size));
    }
}

static void small_found_late(void) {
    found_late(100);
}

static void slot_found_late(void) {
    found_late(9000);
}

static void *take_into_inherited_arena(void *size) {
    for (size_t i = 0; i < 5000; i++) {
        (void)hide(malloc((size_t)(uintptr_t)size));
    }
    return NULL;
}

static void *allocate_one(void *size) {
    return block_of((size_t)(uintptr_t)size);
}

// Found by a visitor of an idle arena, or by the thread that inherits it.
static void found_in_an_idle_arena(void) {
    pthread_t thread;
    void *block = NULL;
    REQUIRE(pthread_create(&thread, NULL, allocate_one, (void *)100) == 0);
    REQUIRE(pthread_join(thread, &block) == 0);
    free(hide(block));
    free(hide(block));
    (void)malloc_trim(0);
    REQUIRE(pthread_create(&thread, NULL, take_into_inherited_arena, (void *)100) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
}

// Found by whoever trims, on his rounds through everybody's arenas.
static void found_by_trim(void) {
    void *block = block_of(100);
    free_in_thread(block);
    free(hide(block));
    (void)malloc_trim(0);
    for (size_t i = 0; i < 20000; i++) {
        (void)hide(malloc(100));
    }
}

static const struct {
    const char *name;
    void (*body)(void);
} wrongs[] = {
    { "small block twice", small_twice },
    { "large block twice", large_twice },
    { "huge block twice", huge_twice },
    { "interior pointer", interior },
    { "foreign pointer", foreign },
    { "impossible pointer", impossible },
    { "small block by a stranger", by_a_stranger },
    { "small block, found late", small_found_late },
    { "slot of pages, found late", slot_found_late },
    { "block of an ended thread", found_in_an_idle_arena },
    { "found while trimming", found_by_trim },
};

struct handled {
    void (*body)(void);
    bool others;
};

static void handle(void *argument) {
    const struct handled *handled = (const struct handled *)argument;
    void *frames[4];
    // Loads the unwinder's library before the trouble begins.
    (void)backtrace(frames, 4);
    (void)signal(SIGABRT, tell_story);
    for (uintptr_t i = 1; i <= 2 && handled->others; i++) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, allocate_for_ever, (void *)i) == 0);
    }
    (void)usleep(handled->others ? 5000 : 0);
    handled->body();
}

int main(void) {
    api_begin(100);
    told_begin();
    for (size_t i = 0; i < 2 * sizeof(wrongs) / sizeof(wrongs[0]); i++) {
        struct handled handled = { wrongs[i / 2].body, i % 2 == 1 };
        double start = seconds_now();
        struct child_end end = run_child(handle, &handled, 10);
        double passed = seconds_now() - start;
        expect_exit(&end, 3, wrongs[i / 2].name);
        const char *newline = strchr(end.text, '\n');
        CHECK_SAY(strncmp(end.text, "pamalloc: ", 10) == 0 && newline != NULL && newline[1] == 0,
                  "%s: not one line: %s", wrongs[i / 2].name, end.text);
        CHECK_SAY(passed < 5 * slow_factor(), "%s: %.1f s", wrongs[i / 2].name, passed);
    }
    return test_end();
}

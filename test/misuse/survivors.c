// After a wrong free that was refused, is the heap as it was? A handler jumps out of the abort, the
// program goes on, and no two live blocks ever share a byte.
#include "wrong.h"

#include <pthread.h>
#include <setjmp.h>

static sigjmp_buf refused;

static void jump(int number) {
    (void)number;
    siglongjmp(refused, 1);
}

// A refused call must not have done anything.
static bool is_refused(void (*call)(void *), void *pointer) {
    if (sigsetjmp(refused, 1) != 0) {
        return true;
    }
    call(pointer);
    return false;
}

enum { LIVE = 4000 };

static unsigned char *live[LIVE];
static size_t sizes[LIVE];

static int by_start(const void *a, const void *b) {
    size_t left = *(const size_t *)a;
    size_t right = *(const size_t *)b;
    return (live[left] > live[right]) - (live[left] < live[right]);
}

// All live blocks in order of address: each must end before the next one begins.
static void nothing_overlaps(size_t count) {
    static size_t order[LIVE];
    for (size_t i = 0; i < count; i++) {
        order[i] = i;
    }
    qsort(order, count, sizeof(order[0]), by_start);
    for (size_t i = 1; i < count; i++) {
        size_t before = order[i - 1];
        CHECK_SAY(live[before] + sizes[before] <= live[order[i]], "%p of %zu and %p overlap",
                  (void *)live[before], sizes[before], (void *)live[order[i]]);
    }
}

static void fill(size_t first, size_t count, size_t size) {
    for (size_t i = first; i < count; i++) {
        live[i] = (unsigned char *)hide(malloc(size));
        REQUIRE(live[i] != NULL);
        sizes[i] = malloc_usable_size(live[i]);
        memset(live[i], (int)(i % 251), size);
    }
}

static void contents_are_kept(size_t count, size_t size) {
    for (size_t i = 0; i < count; i++) {
        unsigned char mark = (unsigned char)(i % 251);
        CHECK(live[i][0] == mark && live[i][size - 1] == mark && live[i][size / 2] == mark);
    }
}

static void *free_it(void *block) {
    free(hide(block));
    return NULL;
}

// A few refusals a child: the library itself gives up on a program that makes very many.
static void go_on_after_refusals(void *argument) {
    size_t size = *(const size_t *)argument;
    size_t count = size > 100000 ? 40 : size > 4096 ? 400 : LIVE;
    (void)signal(SIGABRT, jump);
    fill(0, count, size);
    void *gone[4];
    for (size_t i = 0; i < 4; i++) {
        gone[i] = live[i * 9];
        free(gone[i]);
    }
    // One of them freed by a stranger first would be found late; these are found at once.
    for (size_t i = 0; i < 4; i++) {
        CHECK(is_refused(wrong_free, gone[i]));
        CHECK(is_refused(wrong_realloc, gone[i]));
    }
    CHECK(is_refused(wrong_free, live[1] + 16));
    CHECK(is_refused(wrong_free, live[2] + 1));
    CHECK(is_refused(wrong_free_sized, &count));
    for (size_t i = 0; i < 4; i++) {
        fill(i * 9, i * 9 + 1, size);
    }
    nothing_overlaps(count);
    contents_are_kept(count, size);
    // All of the heap works on, here and in other threads.
    for (size_t i = 0; i < count; i++) {
        if (i % 2 == 0) {
            free(live[i]);
        } else {
            pthread_t thread;
            if (i % 40 == 1) {
                REQUIRE(pthread_create(&thread, NULL, free_it, live[i]) == 0);
                REQUIRE(pthread_join(thread, NULL) == 0);
            } else {
                free(live[i]);
            }
        }
    }
    fill(0, count, size);
    nothing_overlaps(count);
    contents_are_kept(count, size);
    (void)malloc_trim(0);
}

int main(void) {
    static const size_t block_sizes[] = { 32, 48, 100, 1000, 4096, 9000, 40000, 200000, 2 << 20 };
    api_begin(60);
    told_begin();
    for (size_t i = 0; i < sizeof(block_sizes) / sizeof(block_sizes[0]); i++) {
        size_t size = block_sizes[i];
        struct child_end end = run_child(go_on_after_refusals, &size, 20);
        expect_exit(&end, 0, "a program that goes on");
    }
    return test_end();
}

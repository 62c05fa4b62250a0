// Is a block that is freed twice always found out, whatever happened between, at every size, by
// every call?
#include "wrong.h"

#include <pthread.h>

static const size_t sizes[] = { 0,
                                1,
                                16,
                                48,
                                100,
                                250,
                                300,
                                1000,
                                1024,
                                1500,
                                4096,
                                5000,
                                8192,
                                12288,
                                20000,
                                32768,
                                32769,
                                40000,
                                65536,
                                200000,
                                1 << 20,
                                2 << 20,
                                (2 << 20) + 100,
                                64 << 20 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))
#define SMALL_SIZES 16

// Of large blocks the memory may belong to something else by then.
#define GONE DOUBLE_FREE "\n" MIDDLE "\n" FOREIGN

static char *block_of(size_t size) {
    char *block = (char *)hide(malloc(size));
    REQUIRE(block != NULL);
    memset(block, 1, size < 100000 ? size : 100000);
    return block;
}

struct twice {
    size_t size;
    const struct wrong_call *call;
};

static void at_once(void *argument) {
    const struct twice *twice = (const struct twice *)argument;
    char *block = block_of(twice->size);
    free(hide(block));
    twice->call->make(tell(block, twice->size == 0 ? SOME_SIZE : twice->size));
}

static void after_realloc_to_nothing(void *argument) {
    const struct twice *twice = (const struct twice *)argument;
    char *block = block_of(twice->size);
    CHECK(hide(realloc(hide(block), any(0))) == NULL);
    twice->call->make(tell(block, twice->size == 0 ? SOME_SIZE : twice->size));
}

// The old block of a realloc that moved.
static void after_a_move(void *argument) {
    const struct twice *twice = (const struct twice *)argument;
    char *block = block_of(twice->size);
    char *moved = (char *)hide(realloc(hide(block), 3 * twice->size + 100000));
    REQUIRE(moved != NULL);
    if (moved == block) {
        free(hide(moved));
    }
    twice->call->make(tell(block, SOME_SIZE));
}

static void after_1000_other_frees(void *argument) {
    const struct twice *twice = (const struct twice *)argument;
    char *others[1000];
    for (size_t i = 0; i < 1000; i++) {
        others[i] = block_of(i % 2 == 0 && twice->size < 40000 ? twice->size : i * 3);
    }
    char *block = block_of(twice->size);
    free(hide(block));
    for (size_t i = 0; i < 1000; i++) {
        free(others[i]);
    }
    twice->call->make(tell(block, SOME_SIZE));
}

// New blocks take the place of what was freed, but not of this one: it would be a right free again.
static void after_others_were_allocated(void *argument) {
    const struct twice *twice = (const struct twice *)argument;
    char *block = block_of(twice->size);
    free(hide(block));
    for (size_t i = 0; i < 50; i++) {
        char *other = block_of(twice->size / 3 + i * 100);
        if (other == block) {
            free(other);
        }
    }
    twice->call->make(tell(block, SOME_SIZE));
}

// Its word has room again and has become the window; the slot itself was not drawn yet.
static void after_its_word_was_refilled(void *argument) {
    enum { COUNT = 400 };
    const struct twice *twice = (const struct twice *)argument;
    char *held[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        held[i] = block_of(twice->size);
    }
    for (size_t i = 0; i < COUNT; i += 2) {
        free(held[i]);
    }
    char *block = (char *)hide(held[COUNT / 2]);
    // A third of what was freed: each word is half empty, and the draws are random.
    for (size_t i = 0; i < COUNT / 6; i++) {
        char *again = block_of(twice->size);
        if (again == block) {
            _exit(EXIT_SKIP);
        }
    }
    twice->call->make(tell(block, SOME_SIZE));
}

// The class's last block is gone and with it its run; blocks of another class come in its place.
static void after_its_run_changed_class(void *argument) {
    enum { COUNT = 600 };
    const struct twice *twice = (const struct twice *)argument;
    char *held[COUNT];
    size_t count = twice->size > 20000 ? 20 : COUNT;
    for (size_t i = 0; i < count; i++) {
        held[i] = block_of(twice->size);
    }
    char *block = held[count / 2];
    for (size_t i = 0; i < count; i++) {
        free(held[i]);
    }
    (void)malloc_trim(0);
    for (size_t i = 0; i < 2000; i++) {
        char *other = block_of(twice->size + 400 + i % 7 * 16);
        if (other == block) {
            _exit(EXIT_SKIP);
        }
    }
    twice->call->make(tell(block, SOME_SIZE));
}

static void expect(void (*body)(void *), struct twice *twice, const char *what, const char *name) {
    char title[128];
    (void)snprintf(title, sizeof(title), "%s of %zu, %s", twice->call->symbol, twice->size, name);
    (void)dies_with(body, twice, line_name(twice->call), what, title);
}

static void through_every_call(void) {
    for (size_t i = 0; i < SIZES; i++) {
        for (size_t k = 0; k < WRONG_CALLS_COUNT; k++) {
            struct twice twice = { sizes[i], &wrong_calls[k] };
            expect(at_once, &twice, DOUBLE_FREE, "at once");
        }
    }
}

static void after_other_calls(void) {
    for (size_t i = 0; i < SIZES; i++) {
        const char *what = i < SMALL_SIZES ? DOUBLE_FREE : GONE;
        for (size_t k = 0; k < 3; k += 2) {
            struct twice twice = { sizes[i], &wrong_calls[k] };
            if (sizes[i] != 0) {
                expect(after_realloc_to_nothing, &twice, DOUBLE_FREE, "after realloc to nothing");
            }
            expect(after_a_move, &twice, what, "after a move");
            expect(after_1000_other_frees, &twice, what, "after 1000 other frees");
            expect(after_others_were_allocated, &twice, what, "after others were allocated");
            if (i < SMALL_SIZES) {
                expect(after_its_word_was_refilled, &twice, DOUBLE_FREE, "its word refilled");
            }
            expect(after_its_run_changed_class, &twice, GONE, "its run in another class");
        }
    }
}

int main(void) {
    api_begin(150);
    told_begin();
    through_every_call();
    after_other_calls();
    return test_end();
}

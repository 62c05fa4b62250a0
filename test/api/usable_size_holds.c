// Is the usable size the same in every thread for the whole life of a block, can all of it be
// written without touching a neighbour, and is it exact where pages are?
#include "entry.h"

#include <pthread.h>

enum { BLOCKS = 512 };

static unsigned char *blocks[BLOCKS];
static size_t usable[BLOCKS];

static void *ask_again(void *unused) {
    (void)unused;
    for (size_t i = 0; i < BLOCKS; i++) {
        CHECK_EQ(call.malloc_usable_size(blocks[i]), usable[i]);
    }
    return NULL;
}

static void ask_in_other_threads(void) {
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, ask_again, NULL) == 0);
    }
    (void)ask_again(NULL);
    for (size_t i = 0; i < 3; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
}

// A round holds blocks of neighbouring sizes at once, so that a size too large meets a neighbour.
static void write_it_all(size_t first, size_t step) {
    for (size_t i = 0; i < BLOCKS; i++) {
        size_t size = first + i * step;
        blocks[i] = (unsigned char *)call.malloc(size);
        REQUIRE(blocks[i] != NULL);
        usable[i] = call.malloc_usable_size(blocks[i]);
        CHECK(usable[i] >= size);
        memset(blocks[i], (int)(i % 251), usable[i]);
    }
    ask_in_other_threads();
    for (size_t i = 0; i < BLOCKS; i++) {
        CHECK_SAY(all_bytes(blocks[i], (int)(i % 251), usable[i]), "block of %zu is overwritten",
                  first + i * step);
        call.free(blocks[i]);
    }
}

// Using the slack trips compilers that know the requested size: the less is advertised, the fewer
// victims. Above the classes a run is whole pages and no more.
static void pages_are_exact(void) {
    for (size_t pages = 1; pages <= 600; pages += pages < 40 ? 1 : 37) {
        void *block = call.malloc(pages * page);
        CHECK_EQ(call.malloc_usable_size(block), pages * page);
        call.free(block);
        if (pages * page > 32768) {
            block = call.malloc(pages * page - 100);
            CHECK_AT_MOST(call.malloc_usable_size(block), pages * page);
            call.free(block);
        }
    }
    // At least 4 classes per doubling: at most a quarter and the step of 16 is slack.
    for (size_t size = 1; size <= 32768; size += 5) {
        void *block = call.malloc(size);
        CHECK_AT_MOST(call.malloc_usable_size(block) - size, 16 + size / 4);
        call.free(block);
    }
}

// A program that has much of a size has 16 classes per doubling there.
static void little_slack_where_there_is_much(size_t size) {
    enum { MUCH = 4 << 20 };
    static void *much[MUCH / 128];
    size_t count = MUCH / size;
    for (size_t i = 0; i < count; i++) {
        much[i] = call.malloc(size);
        REQUIRE(much[i] != NULL);
    }
    CHECK_AT_MOST(call.malloc_usable_size(much[count - 1]) - size, 16 + size / 16);
    for (size_t i = 0; i < count; i++) {
        call.free(much[i]);
    }
}

int main(void) {
    entry_begin(30);
    for (size_t first = 1; first < 20000; first += 997) {
        write_it_all(first, 1);
    }
    write_it_all(1, 16);
    write_it_all(16, 64);
    write_it_all(4096, 512);
    pages_are_exact();
    for (size_t size = 130; size < 32000; size = size * 3 / 2) {
        little_slack_where_there_is_much(size);
    }
    return test_end();
}

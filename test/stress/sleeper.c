// Does memory come back whose owner sleeps for ever: a thread fills a GiB with small objects,
// others free them all, and nobody wakes it?
#include "../figures.h"

#include <malloc.h>
#include <pthread.h>

enum { FREEING = 3, AT_MOST_KIB = 32 * 1024 };

static const size_t sizes[] = { 48, 100, 500, 1000, 3000, 9000 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

// The blocks are the list: no table of the test's own.
struct object {
    struct object *next;
};

static struct object *lists[FREEING];
static pthread_barrier_t filled;

static void *fill_and_sleep(void *argument) {
    size_t wanted = *(const size_t *)argument;
    size_t i = 0;
    for (size_t total = 0; total < wanted; i++) {
        size_t size = sizes[i % SIZES];
        struct object *object = (struct object *)hide(malloc(size));
        REQUIRE(object != NULL);
        memset(object, 1, size);
        object->next = lists[i % FREEING];
        lists[i % FREEING] = object;
        total += size;
    }
    (void)pthread_barrier_wait(&filled);
    for (;;) {
        (void)pause();
    }
    return NULL;
}

static void *free_list(void *argument) {
    for (struct object *object = *(struct object **)argument; object != NULL;) {
        struct object *next = object->next;
        free(hide(object));
        object = next;
    }
    return NULL;
}

int main(int count, char **arguments) {
    size_t wanted = (size_t)(count > 1 ? atol(arguments[1]) : 1024) << 20;
    pthread_t sleeper;
    pthread_t threads[FREEING];
    api_begin(100);
    REQUIRE(pthread_barrier_init(&filled, NULL, 2) == 0);
    long before = rss_kib();
    REQUIRE(pthread_create(&sleeper, NULL, fill_and_sleep, &wanted) == 0);
    (void)pthread_barrier_wait(&filled);
    CHECK((size_t)rss_kib() * 1024 >= wanted);
    for (size_t i = 0; i < FREEING; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, free_list, &lists[i]) == 0);
    }
    for (size_t i = 0; i < FREEING; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    say("resident: %ld KiB above the start\n", rss_kib() - before);
    CHECK_AT_MOST(rss_kib() - before, AT_MOST_KIB);
    return test_end();
}

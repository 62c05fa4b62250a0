// Is a block that two threads free found out in every order of allocator, owner and strangers, with
// the owner alive, asleep or gone, and is its address never handed out to two?
//
// Where the owner's own free comes last it is fast and looks at nothing of others: the second free
// is found when the owner next takes stock, before the slot is used again.
#include "wrong.h"

#include <pthread.h>

static const size_t sizes[] = { 16, 48, 100, 1000, 4096, 20000, 40000, 200000, 2 << 20, 64 << 20 };
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

// Threads that are there before the block is: starting one would take and give blocks by itself.
struct servant {
    pthread_t thread;
    pthread_barrier_t turn;
    void *(*body)(void *);
    void *argument;
};

static struct servant servants[2];

static void *serve(void *argument) {
    struct servant *servant = (struct servant *)argument;
    for (;;) {
        (void)pthread_barrier_wait(&servant->turn);
        (void)servant->body(servant->argument);
        (void)pthread_barrier_wait(&servant->turn);
    }
    return NULL;
}

static void let(struct servant *servant, void *(*body)(void *), void *argument) {
    servant->body = body;
    servant->argument = argument;
    (void)pthread_barrier_wait(&servant->turn);
    (void)pthread_barrier_wait(&servant->turn);
}

static void in_thread(void *(*body)(void *), void *argument) {
    let(&servants[0], body, argument);
}

static void *take_and_give(void *unused) {
    free(hide(malloc(1)));
    return unused;
}

static void start_servants(void) {
    for (int i = 0; i < 2; i++) {
        REQUIRE(pthread_barrier_init(&servants[i].turn, NULL, 2) == 0);
        REQUIRE(pthread_create(&servants[i].thread, NULL, serve, &servants[i]) == 0);
        let(&servants[i], take_and_give, NULL);
    }
}

static void *free_it(void *block) {
    free(hide(block));
    return NULL;
}

static void *free_it_twice(void *block) {
    free(hide(block));
    free(hide(block));
    return NULL;
}

static void *get_it(void *size) {
    void *block = hide(malloc(*(const size_t *)size));
    REQUIRE(block != NULL);
    memset(block, 1, 16);
    return tell(block, *(const size_t *)size);
}

static void *get_in_thread(size_t size) {
    pthread_t thread;
    void *block = NULL;
    REQUIRE(pthread_create(&thread, NULL, get_it, &size) == 0);
    REQUIRE(pthread_join(thread, &block) == 0);
    return block;
}

// What the heap does after the second free until it notices. Until then the address must not be
// handed out even once: it would have two owners as soon as the late free is carried out.
static void *go_on(void *argument) {
    size_t size = *(const size_t *)argument;
    enum { COUNT = 3000 };
    void *held[COUNT];
    size_t count = size > 100000 ? 10 : COUNT;
    for (size_t round = 0; round < 20; round++) {
        for (size_t i = 0; i < count; i++) {
            held[i] = hide(malloc(size));
            if (held[i] == told->pointer) {
                say("the address is handed out\n");
                _exit(5);
            }
        }
        for (size_t i = 0; i < count; i++) {
            free(held[i]);
        }
    }
    (void)malloc_trim(0);
    return NULL;
}

static void stranger_twice(void *size) {
    in_thread(free_it_twice, get_it(size));
}

static void owner_then_stranger(void *size) {
    void *block = get_it(size);
    free(hide(block));
    in_thread(free_it, block);
}

static void stranger_then_owner(void *size) {
    void *block = get_it(size);
    in_thread(free_it, block);
    free(hide(block));
    (void)go_on(size);
}

static void two_strangers(void *size) {
    void *block = get_it(size);
    let(&servants[0], free_it, block);
    let(&servants[1], free_it, block);
}

// The thread that allocated is gone: its arena belongs to nobody.
static void owner_gone(void *size) {
    void *block = get_in_thread(*(const size_t *)size);
    free(hide(block));
    in_thread(free_it, block);
    (void)go_on(size);
}

// ... or to a thread that came after it.
static void *inherit_and_free(void *block) {
    size_t size = told->size;
    // Another class may have its pages by the second free.
    free(hide(malloc(5000)));
    told->size = SOME_SIZE;
    free(hide(block));
    (void)go_on(&size);
    return NULL;
}

static void owner_inherited(void *size) {
    pthread_t thread;
    void *block = get_in_thread(*(const size_t *)size);
    in_thread(free_it, block);
    REQUIRE(pthread_create(&thread, NULL, inherit_and_free, block) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
}

static pthread_barrier_t barrier;

static void *meet_and_free(void *block) {
    (void)pthread_barrier_wait(&barrier);
    free(hide(block));
    return NULL;
}

// Both at the same time: any order, found at once or when stock is taken.
static void owner_and_stranger_at_once(void *size) {
    void *block = get_it(size);
    REQUIRE(pthread_barrier_init(&barrier, NULL, 2) == 0);
    servants[0].body = meet_and_free;
    servants[0].argument = block;
    (void)pthread_barrier_wait(&servants[0].turn);
    (void)meet_and_free(block);
    (void)pthread_barrier_wait(&servants[0].turn);
    (void)go_on(size);
}

static void strangers_at_once(void *size) {
    void *block = get_it(size);
    REQUIRE(pthread_barrier_init(&barrier, NULL, 2) == 0);
    for (int i = 0; i < 2; i++) {
        servants[i].body = meet_and_free;
        servants[i].argument = block;
        (void)pthread_barrier_wait(&servants[i].turn);
    }
    for (int i = 0; i < 2; i++) {
        (void)pthread_barrier_wait(&servants[i].turn);
    }
    (void)go_on(size);
}

static void *allocate_for_ever(void *unused) {
    for (size_t i = 0;; i++) {
        free(hide(malloc(i % 50000)));
    }
    return unused;
}

static void while_others_work(void *size) {
    pthread_t thread;
    for (int i = 0; i < 2; i++) {
        REQUIRE(pthread_create(&thread, NULL, allocate_for_ever, NULL) == 0);
    }
    owner_then_stranger(size);
}

// Of a slab whose owner is gone the last slot may have been freed, and its pages with it.
#define GONE DOUBLE_FREE "\n" MIDDLE "\n" FOREIGN

static const struct order {
    const char *name;
    void (*body)(void *size);
    const char *what;
    int times;
    size_t sizes; // of the table: where other threads may get what was freed, only slots
} orders[] = {
    { "a stranger twice", stranger_twice, DOUBLE_FREE, 1, SIZES },
    { "the owner, then a stranger", owner_then_stranger, DOUBLE_FREE, 1, SIZES },
    { "a stranger, then the owner", stranger_then_owner, DOUBLE_FREE, 3, SIZES },
    { "two strangers", two_strangers, DOUBLE_FREE, 1, SIZES },
    { "two after the owner's end", owner_gone, GONE, 1, SIZES },
    { "a stranger and the owner's heir", owner_inherited, GONE, 2, 6 },
    { "owner and stranger at the same time", owner_and_stranger_at_once, DOUBLE_FREE, 10, SIZES },
    { "two strangers at the same time", strangers_at_once, DOUBLE_FREE, 10, SIZES },
    { "two while others work", while_others_work, DOUBLE_FREE, 2, 6 },
};

struct freed {
    const struct order *order;
    size_t size;
};

static void start(void *argument) {
    struct freed *freed = (struct freed *)argument;
    start_servants();
    freed->order->body(&freed->size);
}

int main(void) {
    api_begin(150);
    told_begin();
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        for (size_t k = 0; k < orders[i].sizes * (size_t)orders[i].times; k++) {
            struct freed freed = { &orders[i], sizes[k % orders[i].sizes] };
            char title[128];
            (void)snprintf(title, sizeof(title), "block of %zu freed by %s", freed.size,
                           orders[i].name);
            (void)dies_with(start, &freed, "free", orders[i].what, title);
        }
    }
    return test_end();
}

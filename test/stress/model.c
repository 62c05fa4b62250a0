// Random operations of every entry point in up to 8 threads that pass blocks to each other, judged
// by a shadow of live memory: overlap, alignment, contents, usable size, zeroes, errno.
//
// Usage: model [-s seconds] [-t threads] [-p profile] [-o operations]; without -t, plans in turn.
// PMA_MODEL_SECONDS stands for -s. With -t 1 and -o the same PMA_TEST_SEED makes the same calls.
// Compiled with -DMODEL_PRIVATE it drives the internal names, for sanitizers and verification.
#include "shadow.h"

#include <malloc.h>
#include <pthread.h>

#define CALLS(X) \
    X(void *, malloc, (size_t)) \
    X(void *, calloc, (size_t, size_t)) \
    X(void *, realloc, (void *, size_t)) \
    X(void *, reallocarray, (void *, size_t, size_t)) \
    X(void *, recallocarray, (void *, size_t, size_t, size_t)) \
    X(int, posix_memalign, (void **, size_t, size_t)) \
    X(void *, aligned_alloc, (size_t, size_t)) \
    X(void *, memalign, (size_t, size_t)) \
    X(void *, valloc, (size_t)) \
    X(void *, pvalloc, (size_t)) \
    X(void *, _Znwm, (size_t)) \
    X(void *, _ZnwmSt11align_val_t, (size_t, size_t)) \
    X(void, free, (void *)) \
    X(void, cfree, (void *)) \
    X(void, free_sized, (void *, size_t)) \
    X(void, free_aligned_sized, (void *, size_t, size_t)) \
    X(void, freezero, (void *, size_t)) \
    X(void, _ZdlPv, (void *)) \
    X(void, _ZdlPvm, (void *, size_t)) \
    X(void, _ZdlPvmSt11align_val_t, (void *, size_t, size_t)) \
    X(size_t, malloc_usable_size, (void *)) \
    X(int, malloc_trim, (size_t))

#ifdef MODEL_PRIVATE
#define X(result, name, arguments) extern result pma_##name arguments;
CALLS(X)
#undef X
extern void pma_verify(void);
#define FIND(name) pma_##name
#define BEGIN test_begin
#else
#define FIND(name) find_call(#name)
#define BEGIN api_begin

static uintptr_t find_call(const char *name) {
    uintptr_t address = (uintptr_t)dlsym(RTLD_DEFAULT, name);
    if (address == 0) {
        say("no such call: %s\n", name);
        _exit(1);
    }
    return address;
}
#endif

static struct {
#define X(result, name, arguments) result(*name) arguments;
    CALLS(X)
#undef X
} call;

static void find_calls(void) {
#define X(result, name, arguments) call.name = (result(*) arguments)FIND(name);
    CALLS(X)
#undef X
}

// ---- threads, blocks and the places where they are left for others

enum { HELD = 2000, LIFE = 5000, MAILBOXES = 256, THREADS_MAX = 8, LIVE_MAX = 48 << 20 };

struct block {
    unsigned char *start;
    size_t asked;
    size_t usable;
    size_t alignment;
    uint64_t tag;
};

struct worker {
    pthread_t thread;
    struct dice dice;
    size_t profile;
    size_t operations; // to do in this life
    size_t done;
    size_t live;
    struct block held[HELD];
};

static struct worker workers[THREADS_MAX];
static struct block *mailboxes[MAILBOXES];
static bool stop;
static size_t page;

static const char *const profiles[] = { "small", "mixed", "pages", "large" };
enum { PROFILES = 4 };

static size_t draw_size(struct worker *worker) {
    struct dice *dice = &worker->dice;
    size_t lot = dice_below(dice, 1000);
    switch (worker->profile) {
    case 0:
        return dice_below(dice, lot < 900 ? 200 : 1100);
    case 1:
        return dice_below(dice, (size_t)64 << dice_below(dice, lot < 5 ? 17 : lot < 100 ? 12 : 7));
    case 2:
        return lot < 700 ? page * (1 + dice_below(dice, 12)) : dice_below(dice, 20 * page);
    default:
        return dice_below(dice, lot < 900 ? 300000 : 6 << 20);
    }
}

static void accept_block(struct worker *worker, struct block *block, bool zeroed) {
    block->usable = call.malloc_usable_size(block->start);
    CHECK_SAY((uintptr_t)block->start % block->alignment == 0, "%p of %zu: not aligned to %zu",
              (void *)block->start, block->asked, block->alignment);
    CHECK_SAY(block->usable >= block->asked, "%p of %zu: usable %zu", (void *)block->start,
              block->asked, block->usable);
    CHECK_SAY(shadow_mark(block->start, block->usable, true), "%p of %zu overlaps a live block",
              (void *)block->start, block->usable);
    if (zeroed) {
        size_t size = block->asked < 1 << 18 ? block->asked : 1 << 18;
        CHECK_SAY(size == 0 || (block->start[0] == 0 &&
                                memcmp(block->start, block->start + 1, size - 1) == 0),
                  "%p of %zu is not zero", (void *)block->start, block->asked);
    }
    block->tag = dice_draw(&worker->dice);
    shadow_fill(block->start, block->tag, block->usable);
    worker->live += block->usable;
}

static void get(struct worker *worker, struct block *block) {
    struct dice *dice = &worker->dice;
    size_t size = draw_size(worker);
    size_t way = dice_below(dice, 24);
    void *start = NULL;
    size_t alignment = (size_t)8 << dice_below(dice, dice_below(dice, 50) == 0 ? 20 : 10);
    bool zeroed = way == 1 || way == 2 || way == 3;
    block->alignment = way > 3 && way < 9 ? alignment : 16;
    errno = 4711;
    switch (way) {
    case 1:
        start = call.calloc(1, size);
        break;
    case 2:
        start = call.calloc(size / 8 + 1, 8);
        break;
    case 3:
        start = call.recallocarray(NULL, 0, size, 1);
        break;
    case 4:
        CHECK_EQ(call.posix_memalign(&start, alignment, size), 0);
        break;
    case 5:
        start = call.aligned_alloc(alignment, size);
        break;
    case 6:
    case 7:
        start = call.memalign(alignment, size);
        break;
    case 8:
        start = call._ZnwmSt11align_val_t(size, alignment);
        break;
    case 9:
        start = call.realloc(NULL, size);
        break;
    case 10:
        start = call.reallocarray(NULL, 1, size);
        break;
    case 11:
        start = size % 2 == 0 ? call.valloc(size) : call.pvalloc(size);
        block->alignment = page;
        break;
    case 12:
    case 13:
        start = call._Znwm(size);
        break;
    default:
        start = call.malloc(size);
        break;
    }
    CHECK_EQ(errno, 4711);
    block->start = (unsigned char *)start;
    block->asked = size;
    REQUIRE(start != NULL);
    accept_block(worker, block, zeroed);
}

// The contents are as they were written, the usable size is as it was told.
static void check_block(struct block *block) {
    CHECK_SAY(shadow_holds(block->start, block->tag, block->usable, block->usable),
              "%p of %zu: contents are lost", (void *)block->start, block->usable);
    CHECK_EQ(call.malloc_usable_size(block->start), block->usable);
}

static void give(struct worker *worker, struct block *block) {
    check_block(block);
    worker->live -= block->usable;
    CHECK(shadow_mark(block->start, block->usable, false));
    unsigned char *start = block->start;
    block->start = NULL;
    errno = 4711;
    switch (dice_below(&worker->dice, 16)) {
    case 0:
        call.free_sized(start, block->asked);
        break;
    case 1:
        call.free_aligned_sized(start, block->alignment, block->asked);
        break;
    case 2:
        call.cfree(start);
        break;
    case 3:
        call.freezero(start, block->asked);
        break;
    case 4:
        call._ZdlPv(start);
        break;
    case 5:
        call._ZdlPvm(start, block->asked);
        break;
    case 6:
        call._ZdlPvmSt11align_val_t(start, block->asked, block->alignment);
        break;
    case 7:
        CHECK(call.realloc(start, any(0)) == NULL);
        break;
    default:
        call.free(start);
        break;
    }
    CHECK_EQ(errno, 4711);
}

// The shadow lets go of the old place first: another thread may have it once realloc has moved.
static void resize(struct worker *worker, struct block *block) {
    size_t size = draw_size(worker) + 1;
    size_t old = block->usable;
    uint64_t tag = block->tag;
    bool cleared = dice_below(&worker->dice, 6) == 0;
    check_block(block);
    worker->live -= old;
    CHECK(shadow_mark(block->start, old, false));
    size_t kept = cleared ? block->asked : old;
    if (cleared) {
        block->start = (unsigned char *)call.recallocarray(block->start, block->asked, size, 1);
    } else if (size % 3 == 0) {
        block->start = (unsigned char *)call.reallocarray(block->start, size / 3, 3);
    } else {
        block->start = (unsigned char *)call.realloc(block->start, size);
    }
    REQUIRE(block->start != NULL);
    size_t common = kept < size ? kept : size;
    CHECK_SAY(shadow_holds(block->start, tag, old, common), "realloc from %zu to %zu loses bytes",
              block->asked, size);
    for (size_t i = common; cleared && i < size && i < common + 5000; i++) {
        CHECK_SAY(block->start[i] == 0, "recallocarray from %zu to %zu: not zero", block->asked,
                  size);
    }
    block->asked = size;
    block->alignment = 16;
    accept_block(worker, block, false);
}

// A block goes into a mailbox, the one that was there comes to this thread: most blocks are freed
// by another thread than the one that got them.
static void exchange(struct worker *worker, struct block *block) {
    static struct block letters[MAILBOXES * 4];
    static bool taken[MAILBOXES * 4];
    size_t box = dice_below(&worker->dice, MAILBOXES);
    struct block *received = __atomic_exchange_n(&mailboxes[box], NULL, __ATOMIC_ACQ_REL);
    if (received != NULL) {
        struct block mine = *block;
        worker->live += received->usable - mine.usable;
        *block = *received;
        *received = mine;
    } else {
        size_t letter = dice_below(&worker->dice, MAILBOXES * 4);
        if (__atomic_exchange_n(&taken[letter], true, __ATOMIC_ACQ_REL)) {
            return;
        }
        received = &letters[letter];
        *received = *block;
        worker->live -= block->usable;
        block->start = NULL;
    }
    struct block *empty = NULL;
    while (!__atomic_compare_exchange_n(&mailboxes[box], &empty, received, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
        empty = NULL;
        box = (box + 1) % MAILBOXES;
    }
}

static void step(struct worker *worker) {
    struct block *block = &worker->held[dice_below(&worker->dice, HELD)];
    size_t lot = dice_below(&worker->dice, 100000);
    if (lot == 0) {
        (void)call.malloc_trim(0);
    } else if (block->start == NULL) {
        if (worker->live < LIVE_MAX) {
            get(worker, block);
        }
    } else if (lot < 15000) {
        resize(worker, block);
    } else if (lot < 35000) {
        exchange(worker, block);
    } else {
        give(worker, block);
    }
}

// One life of a thread. Its blocks stay: the next thread with this worker's number finds them.
static void *live(void *argument) {
    struct worker *worker = (struct worker *)argument;
    size_t end = worker->done + worker->operations;
    while (worker->done < end && !__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        step(worker);
        worker->done++;
    }
    return NULL;
}

static void free_the_rest(void) {
    for (size_t i = 0; i < MAILBOXES; i++) {
        if (mailboxes[i] != NULL) {
            workers[0].live += mailboxes[i]->usable;
            give(&workers[0], mailboxes[i]);
            mailboxes[i] = NULL;
        }
    }
    for (size_t t = 0; t < THREADS_MAX; t++) {
        for (size_t i = 0; i < HELD; i++) {
            if (workers[t].held[i].start != NULL) {
                give(&workers[t], &workers[t].held[i]);
            }
        }
        CHECK_EQ(workers[t].live, 0);
    }
#ifdef MODEL_PRIVATE
    pma_verify();
#endif
}

struct plan {
    double seconds;
    size_t threads;
    const char *profile; // NULL: each thread has another
    size_t operations;   // 0: until the time is over
    uint64_t seed;
};

static double now(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

// Lives are short: threads end and are born all the time, with blocks left behind.
static void run(const struct plan *plan) {
    double end = now() + plan->seconds;
    size_t done = 0;
    for (size_t t = 0; t < plan->threads; t++) {
        struct worker *worker = &workers[t];
        worker->dice.state = plan->seed + t * 1000003;
        worker->done = 0;
        worker->operations = LIFE;
        worker->profile = t % PROFILES;
        for (size_t i = 0; i < PROFILES; i++) {
            if (plan->profile != NULL && strcmp(profiles[i], plan->profile) == 0) {
                worker->profile = i;
            }
        }
    }
    do {
        for (size_t t = 0; t < plan->threads; t++) {
            REQUIRE(pthread_create(&workers[t].thread, NULL, live, &workers[t]) == 0);
        }
        for (size_t t = 0; t < plan->threads; t++) {
            REQUIRE(pthread_join(workers[t].thread, NULL) == 0);
        }
        done += LIFE;
    } while (plan->operations > 0 ? done < plan->operations : now() < end);
    size_t operations = 0;
    for (size_t t = 0; t < plan->threads; t++) {
        operations += workers[t].done;
    }
    free_the_rest();
    say("%zu threads, %s sizes: %zu operations\n", plan->threads,
        plan->profile != NULL ? plan->profile : "all", operations);
}

int main(int count, char **arguments) {
    const char *text = getenv("PMA_MODEL_SECONDS");
    struct plan plan = { text != NULL ? atof(text) : 4, 0, NULL, 0, 0 };
    for (int option; (option = getopt(count, arguments, "s:t:p:o:")) != -1;) {
        if (option == 's') {
            plan.seconds = atof(optarg);
        } else if (option == 't') {
            plan.threads = (size_t)atoi(optarg);
        } else if (option == 'p') {
            plan.profile = optarg;
        } else if (option == 'o') {
            plan.operations = strtoul(optarg, NULL, 10);
        } else {
            return EXIT_HARD;
        }
    }
    REQUIRE(plan.threads <= THREADS_MAX);
    BEGIN((unsigned)plan.seconds * 3 + 60);
    text = getenv("PMA_TEST_PAGE");
    page = text != NULL ? (size_t)atol(text) : (size_t)sysconf(_SC_PAGESIZE);
    plan.seed = test_seed();
    find_calls();
    if (plan.threads > 0) {
        run(&plan);
        return test_end();
    }
    static const struct plan all[] = { { 0, 1, "mixed", 0, 0 }, { 0, 1, "small", 0, 0 },
                                       { 0, 2, "large", 0, 0 }, { 0, 2, "pages", 0, 0 },
                                       { 0, 2, "small", 0, 0 }, { 0, 8, NULL, 0, 0 } };
    enum { ALL = sizeof(all) / sizeof(all[0]) };
    for (size_t i = 0; i < ALL && failures == 0; i++) {
        struct plan one = all[i];
        one.seconds = plan.seconds / ALL;
        one.operations = plan.operations;
        one.seed = plan.seed + i;
        run(&one);
    }
    return test_end();
}

// cxx.c - all twenty operators, and what happens when there is no memory: the new-handler is called
// until it gives up, then bad_alloc is thrown, or nothing comes back.
//
// The C++ library's part is played by this program; cxx_alone.c is one that has none.
#include <config.h>

#include "base.h"
#include "cxx.h"
#include "harness.h"
#include "malloc.h"
#include "os.h"
#include "pagemap.h"
#include "slab.h"

#include <setjmp.h>

// ---- the C++ library's part

typedef void (*new_handler)(void);
new_handler get_new_handler(void) __asm__("_ZSt15get_new_handlerv");
_Noreturn void throw_bad_alloc(void) __asm__("_ZSt17__throw_bad_allocv");

static new_handler handler;
static int handler_calls;
static int thrown;
static jmp_buf catcher;

new_handler get_new_handler(void) {
    return handler;
}

_Noreturn void throw_bad_alloc(void) {
    thrown++;
    longjmp(catcher, 1);
}

// ---- the operators

// Each way to get a block, with an alignment or without.
static void *get(int way, size_t size, size_t alignment) {
    switch (way) {
    case 0:
        return pma__Znwm(size);
    case 1:
        return pma__Znam(size);
    case 2:
        return pma__ZnwmRKSt9nothrow_t(size, NULL);
    case 3:
        return pma__ZnamRKSt9nothrow_t(size, NULL);
    case 4:
        return pma__ZnwmSt11align_val_t(size, alignment);
    case 5:
        return pma__ZnamSt11align_val_t(size, alignment);
    case 6:
        return pma__ZnwmSt11align_val_tRKSt9nothrow_t(size, alignment, NULL);
    default:
        return pma__ZnamSt11align_val_tRKSt9nothrow_t(size, alignment, NULL);
    }
}

#define GETS 8

static bool is_nothrow(int way) {
    return way % 4 >= 2;
}

static bool is_aligned(int way) {
    return way >= 4;
}

// Each way to give one back.
static void give(int way, void *block, size_t size, size_t alignment) {
    switch (way) {
    case 0:
        pma__ZdlPv(block);
        return;
    case 1:
        pma__ZdaPv(block);
        return;
    case 2:
        pma__ZdlPvm(block, size);
        return;
    case 3:
        pma__ZdaPvm(block, size);
        return;
    case 4:
        pma__ZdlPvRKSt9nothrow_t(block, NULL);
        return;
    case 5:
        pma__ZdaPvRKSt9nothrow_t(block, NULL);
        return;
    case 6:
        pma__ZdlPvSt11align_val_t(block, alignment);
        return;
    case 7:
        pma__ZdaPvSt11align_val_t(block, alignment);
        return;
    case 8:
        pma__ZdlPvSt11align_val_tRKSt9nothrow_t(block, alignment, NULL);
        return;
    case 9:
        pma__ZdaPvSt11align_val_tRKSt9nothrow_t(block, alignment, NULL);
        return;
    case 10:
        pma__ZdlPvmSt11align_val_t(block, size, alignment);
        return;
    default:
        pma__ZdaPvmSt11align_val_t(block, size, alignment);
        return;
    }
}

#define GIVES 12

// Whatever is got in any way can be given back in any way, and then it is free.
static void check_ways(int get_way, int give_way, size_t size, size_t alignment) {
    unsigned char *block = get(get_way, size, alignment);
    REQUIRE(block != NULL);
    CHECK_EQ((uintptr_t)block % (is_aligned(get_way) ? alignment : 16), 0);
    CHECK(pma_malloc_usable_size(block) >= size);
    memset(block, 1, size);
    give(give_way, block, size, alignment);
    struct run *run = pagemap_find((uintptr_t)block);
    if (run != NULL && run_kind(run) == RUN_SLAB) {
        struct position position = slab_position(run, (uintptr_t)block);
        uint64_t live = slab_live(slab_of(run), position.index / 64);
        CHECK((live >> position.index % 64 & 1) == 0);
    } else {
        CHECK(run == NULL || (run_kind(run) != RUN_LARGE && run_kind(run) != RUN_HUGE));
    }
}

static void check_all(void) {
    static const size_t sizes[] = { 0, 1, 24, 1000, 5000, 40000, 3000000 };
    for (int get_way = 0; get_way < GETS; get_way++) {
        for (int give_way = 0; give_way < GIVES; give_way++) {
            for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                check_ways(get_way, give_way, sizes[i], (size_t)16 << (i * 2));
            }
        }
    }
    for (int give_way = 0; give_way < GIVES; give_way++) {
        give(give_way, NULL, 10, 32);
    }
    CHECK_EQ(thrown, 0);
}

// Objects of no bytes have addresses of their own.
static void check_distinct(void) {
    for (int way = 0; way < GETS; way++) {
        void *first = get(way, 0, 32);
        void *second = get(way, 0, 32);
        CHECK(first != NULL && second != NULL && first != second);
        give(0, first, 0, 32);
        give(0, second, 0, 32);
    }
}

// ---- no memory

static void handler_gives_up(void) {
    if (++handler_calls == 3) {
        handler = NULL;
    }
}

// The third call makes room.
static void handler_makes_room(void) {
    if (++handler_calls == 3) {
        pma_os_fail_at(0, false);
    }
}

// Throws something of its own, out of the operator.
static void handler_throws(void) {
    handler_calls++;
    longjmp(catcher, 2);
}

// What comes of a request that cannot be met: a block, NULL, or an exception (1: bad_alloc, 2: the
// handler's).
static int try_get(int way, size_t size, void **block) {
    int exception = setjmp(catcher);
    if (exception == 0) {
        *block = get(way, size, 64);
    }
    return exception;
}

static void check_failure(int way, new_handler with, int calls, bool gives_block, int exception) {
    void *volatile block = NULL;
    void *got = NULL;
    handler = with;
    handler_calls = thrown = 0;
    pma_os_fail_at(1, true);
    int caught = try_get(way, (size_t)64 << 20, &got);
    pma_os_fail_at(0, false);
    block = got;
    CHECK_EQ(caught, exception);
    CHECK_EQ(handler_calls, calls);
    CHECK_EQ(thrown, exception == 1);
    CHECK_EQ(block != NULL, gives_block);
    if (block != NULL) {
        give(0, block, 0, 0);
    }
}

static void check_failures(void) {
    for (int way = 0; way < GETS; way++) {
        int bad_alloc = is_nothrow(way) ? 0 : 1;
        check_failure(way, NULL, 0, false, bad_alloc);
        check_failure(way, handler_gives_up, 3, false, bad_alloc);
        check_failure(way, handler_makes_room, 3, true, 0);
        check_failure(way, handler_throws, 1, false, 2);
    }
    handler = NULL;
    // No address space has room for these.
    for (int way = 0; way < GETS; way++) {
        void *block = NULL;
        CHECK_EQ(try_get(way, SIZE_MAX, &block), is_nothrow(way) ? 0 : 1);
        CHECK(block == NULL);
        CHECK_EQ(try_get(way, (size_t)PTRDIFF_MAX + 1, &block), is_nothrow(way) ? 0 : 1);
        CHECK(block == NULL);
    }
}

// The unwinder's questions: 1 searches, 2 cleans up, 4 names the frame that was found, 8 ends the
// thread. Answers: 6 for a handler here, 8 to go on.
static void check_personality(void) {
    CHECK_EQ(pma_cxx_personality(1, 1, 0, NULL, NULL), 6);
    CHECK_EQ(pma_cxx_personality(1, 2, 0, NULL, NULL), 8);
    CHECK_EQ(pma_cxx_personality(1, 2 | 8, 0, NULL, NULL), 8);
    CHECK_EQ(pma_cxx_personality(1, 2 | 4 | 8, 0, NULL, NULL), 8);
    CHECK_EQ(pma_cxx_personality(2, 1, 0, NULL, NULL), 8);
}

// What is no power of two gets no block, and no handler is asked.
static void check_odd(int way, size_t alignment) {
    void *volatile block = NULL;
    int exception = setjmp(catcher);
    if (exception == 0) {
        block = get(way, 100, alignment);
    }
    CHECK(exception != 0 || block == NULL);
    CHECK_EQ(exception, is_nothrow(way) ? 0 : 1);
}

static void check_odd_alignments(void) {
    static const size_t odd[] = { 0, 3, 24, 4097 };
    handler = handler_gives_up;
    handler_calls = 0;
    for (int way = 4; way < GETS; way++) {
        for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
            check_odd(way, odd[i]);
        }
    }
    CHECK_EQ(handler_calls, 0);
    handler = NULL;
}

int main(void) {
    test_begin(60);
    check_all();
    check_distinct();
    check_failures();
    check_odd_alignments();
    check_personality();
    return test_end();
}

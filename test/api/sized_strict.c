// With sized=strict, does every right size pass, however the block came to its size, and does every
// wrong one end the program with the right line? The option comes from the program's own string.
#include "entry.h"

#include <pamalloc.h>

const char *pamalloc_options = "sized=strict";

#define SIZES 24
static const size_t sizes[SIZES] = { 0,    1,    15,    16,    17,    100,   112,     113,
                                     256,  257,  1000,  1024,  1025,  4000,  4096,    4097,
                                     8192, 9000, 32768, 32769, 65536, 70000, 1048576, 3000000 };

static void give(void *block, size_t alignment, size_t size) {
    REQUIRE(block != NULL);
    if (alignment == 0) {
        call.free_sized(block, size);
    } else {
        call.free_aligned_sized(block, alignment, size);
    }
}

// ---- right sizes

static void check_plain(void) {
    for (size_t size = 0; size < 70000; size += size < 5000 ? 1 : 97) {
        give(call.malloc(size), 0, size);
        give(call.calloc(1, size), 0, size);
    }
    for (size_t i = 0; i < SIZES; i++) {
        give(call.malloc(sizes[i]), 0, sizes[i]);
        give(call.calloc(sizes[i], 1), 0, sizes[i]);
        give(call.realloc(NULL, sizes[i]), 0, sizes[i]);
        give(call.__libc_malloc(sizes[i]), 0, sizes[i]);
    }
    call.free_sized(NULL, 100);
    call.free_aligned_sized(NULL, 3, 100);
}

static void check_aligned(void) {
    for (size_t alignment = 1; alignment <= (size_t)4 << 20; alignment *= 2) {
        for (size_t i = 0; i < SIZES; i++) {
            give(call.aligned_alloc(alignment, sizes[i]), alignment, sizes[i]);
            give(call.memalign(alignment, sizes[i]), alignment, sizes[i]);
            give(call.memalign(alignment + 1, sizes[i]), alignment + 1, sizes[i]);
        }
    }
    for (size_t i = 0; i < SIZES; i++) {
        give(call.valloc(sizes[i]), page, sizes[i]);
        give(call.pvalloc(sizes[i]), page, sizes[i]);
    }
}

// realloc leaves a block in its place where it can: the size to tell is the latest one.
static void check_resized(void) {
    struct dice dice = { test_seed() };
    for (size_t round = 0; round < 300; round++) {
        size_t size = 0;
        void *block = round % 2 == 0 ? call.malloc(1) : call.aligned_alloc(64, 100);
        for (size_t i = 0; i < 10; i++) {
            size_t old_size = size;
            size = 1 + dice_below(&dice, (size_t)1 << dice_below(&dice, 22));
            block = call.realloc(block, size);
            REQUIRE(block != NULL && all_bytes(block, 5, size < old_size ? size : old_size));
            memset(block, 5, size);
        }
        give(block, 0, size);
    }
    // Down by small steps, as a block that stays where it is.
    for (size_t size = 100000; size > 1; size -= 1 + size / 50) {
        void *block = call.malloc(size + size / 50 + 1);
        block = call.realloc(block, size);
        give(block, 0, size);
    }
}

// A block of 4000 bytes becomes smaller; if it moves, its old place is free. (A block that would
// have fitted where it was is moved for the sake of its size.)
static void free_moved(void *argument) {
    unsigned char *block = call.malloc(4000);
    size_t size = *(size_t *)argument;
    memset(block, 7, 4000);
    unsigned char *moved = call.realloc(block, size);
    REQUIRE(moved != NULL && all_bytes(moved, 7, size));
    if (moved == block) {
        give(block, 0, size);
        _exit(3);
    }
    call.free(hide(block));
}

static void check_moved(void) {
    size_t stayed = 0;
    for (size_t size = 3990; size > 1900; size -= 70) {
        struct child_end end = run_child(free_moved, &size, 20);
        if (WIFEXITED(end.status) && WEXITSTATUS(end.status) == 3) {
            stayed++;
        } else {
            check_end(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT &&
                          strstr(end.text, "pamalloc: free(): double free: 0x") != NULL,
                      &end, "the old place of a block that moved");
        }
    }
    CHECK(stayed < 20);
}

// ---- wrong ones

struct wrong {
    size_t asked;
    size_t told;
    size_t alignment; // 0: without
};

static void give_wrong(void *argument) {
    const struct wrong *wrong = argument;
    void *block = wrong->alignment == 0 ? call.malloc(wrong->asked)
                                        : call.aligned_alloc(wrong->alignment, wrong->asked);
    give(block, wrong->alignment, wrong->told);
}

static void check_wrong(void) {
    struct wrong wrongs[] = {
        { 100, 113, 0 },         { 100, 96, 0 },   { 100, 0, 0 },       { 100, SIZE_MAX, 0 },
        { 100, PTRDIFF_MAX, 0 }, { 0, 1, 0 },      { 1, 0, 0 },         { 16, 17, 0 },
        { 1000, 1025, 0 },       { 1000, 700, 0 }, { 1000, 100000, 0 }, { 32768, 32769, 0 },
        { 100000, 100, 0 },      { 100, 200, 64 }, { 100, 64, 64 },     { 100, SIZE_MAX, 64 },
        { 4096, 0, 0 },
    };
    for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
        expect_abort(give_wrong, &wrongs[i],
                     wrongs[i].alignment == 0 ? "pamalloc: free_sized(): wrong size: 0x"
                                              : "pamalloc: free_aligned_sized(): wrong size: 0x");
    }
    struct wrong pages[] = {
        { 10 * page, 10 * page + 1, 0 },
        { 10 * page, 9 * page, 0 },
        { 1000 * page, 1001 * page, 0 },
        { 1000 * page, 999 * page, 0 },
    };
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        expect_abort(give_wrong, &pages[i], "pamalloc: free_sized(): wrong size: 0x");
    }
}

static void give_misaligned(void *argument) {
    give(call.malloc(100), *(size_t *)argument, 100);
}

// The alignment is a part of what was asked for: 100 bytes at 64 take 128.
static void check_wrong_alignment(void) {
    size_t alignments[] = { 64, 4096, SIZE_MAX };
    for (size_t i = 0; i < 3; i++) {
        expect_abort(give_misaligned, &alignments[i],
                     "pamalloc: free_aligned_sized(): wrong size: 0x");
    }
}

// Rounded up it would be nothing at all.
static void give_endless(void *argument) {
    (void)argument;
    give(call.malloc(0), 64, SIZE_MAX - 3);
}

static void give_twice(void *argument) {
    (void)argument;
    void *block = call.malloc(100);
    call.free_sized(block, 100);
    call.free_sized(hide(block), 100);
}

// ---- operators, by their names

static void delete_wrong(void *argument) {
    const char *name = argument;
    void *(*make)(size_t) = (void *(*)(size_t))(uintptr_t)find_call("_Znwm");
    void *(*make_aligned)(size_t, size_t) =
        (void *(*)(size_t, size_t))(uintptr_t)find_call("_ZnwmSt11align_val_t");
    void (*delete)(void *, size_t) = (void (*)(void *, size_t))(uintptr_t)find_call(name);
    void (*delete_aligned)(void *, size_t, size_t) =
        (void (*)(void *, size_t, size_t))(uintptr_t)find_call(name);
    if (strstr(name, "align_val") != NULL) {
        delete_aligned(make_aligned(100, 64), 100, 64);
        delete_aligned(make_aligned(100, 64), 200, 64);
    } else {
        delete (make(100), 100);
        delete (make(100), 113);
    }
    say("it passed\n");
}

static void check_operators(void) {
    static char names[4][32] = { "_ZdlPvm", "_ZdaPvm", "_ZdlPvmSt11align_val_t",
                                 "_ZdaPvmSt11align_val_t" };
    for (size_t i = 0; i < 4; i++) {
        expect_abort(delete_wrong, names[i],
                     i % 2 == 0 ? "pamalloc: operator delete(): wrong size: 0x"
                                : "pamalloc: operator delete[](): wrong size: 0x");
    }
}

// ---- no memory

static void *shrink_without_memory(void) {
    struct rlimit limit = { 64 << 20, 64 << 20 };
    char *block = call.malloc(1500000);
    REQUIRE(block != NULL);
    block[99] = 'x';
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
    while (call.malloc(100) != NULL) {
    }
    errno = 0;
    block = call.realloc(block, 100);
    REQUIRE(block != NULL && block[99] == 'x' && errno == 0);
    REQUIRE(call.malloc_usable_size(block) > 1000000);
    return block;
}

// A block that could not be made smaller is freed by a correct program with the smaller size.
static void free_what_stayed(void *argument) {
    (void)argument;
    call.free_sized(shrink_without_memory(), 100);
}

static void free_more_than_stayed(void *argument) {
    (void)argument;
    call.free_sized(shrink_without_memory(), 3000000);
}

int main(void) {
    entry_begin(60);
    check_plain();
    check_aligned();
    check_resized();
    check_moved();
    check_wrong();
    check_wrong_alignment();
    expect_abort(give_endless, NULL, "pamalloc: free_aligned_sized(): wrong size: 0x");
    expect_abort(give_twice, NULL, "pamalloc: free_sized(): double free: 0x");
    check_operators();
    struct child_end end = run_child(free_what_stayed, NULL, 20);
    expect_exit(&end, 0, "a block that could not shrink");
    expect_abort(free_more_than_stayed, NULL, "pamalloc: free_sized(): wrong size: 0x");
    return test_end();
}

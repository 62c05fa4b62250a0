// With realloc_zero=keep, does realloc(p, 0) give a block of no bytes, by every name, and lose
// nothing? The option comes from the program's own string.
#include "../figures.h"
#include "entry.h"

#include <pamalloc.h>

const char *pamalloc_options = "realloc_zero=keep";

static void check_kept(void *block) {
    REQUIRE(block != NULL);
    CHECK_EQ((uintptr_t)block % 16, 0);
    CHECK_EQ(call.malloc_usable_size(block), 0);
    block = call.realloc(block, 0);
    REQUIRE(block != NULL);
    CHECK_EQ(call.malloc_usable_size(block), 0);
    block = call.realloc(block, 10);
    REQUIRE(block != NULL);
    memset(block, 1, 10);
    call.free(block);
}

static void free_old(void *argument) {
    void *block = call.malloc(*(size_t *)argument);
    void *kept = call.realloc(block, 0);
    if (kept != block) {
        call.free(hide(block));
    }
}

int main(void) {
    entry_begin(20);
    static const size_t sizes[] = { 0, 1, 100, 4096, 50000, 3000000 };
    errno = 4711;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        check_kept(call.realloc(call.malloc(sizes[i]), 0));
        check_kept(call.__libc_realloc(call.malloc(sizes[i]), 0));
        check_kept(call.reallocarray(call.malloc(sizes[i]), 0, 8));
        check_kept(call.reallocarray(call.malloc(sizes[i]), 8, 0));
    }
    check_kept(call.realloc(NULL, 0));
    CHECK_EQ(errno, 4711);
    // The old block is gone: a second free of it is one too many.
    for (size_t i = 2; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t size = sizes[i];
        expect_abort(free_old, &size, "free(): ");
    }
    // A hundred thousand of them take no room.
    void *block = call.malloc(1000000);
    for (size_t i = 0; i < 100000; i++) {
        block = call.realloc(call.realloc(block, 0), 30000);
    }
    call.free(block);
    CHECK_AT_MOST(status_kib("VmRSS:"), 20000);
    return test_end();
}

// What does each entry point of C answer to each size and alignment, with memory and without?
#include "conformance.h"

// ---- blocks that change their size: the same rules, and the old block is intact when there is
// none

enum { OLD = 100 };

static void *old_block(void) {
    void *block = call.malloc(OLD);
    if (block != NULL) {
        memset(block, 0x77, OLD);
    }
    return block;
}

// What realloc and its kin made of the old block. No bytes mean that it is freed, errno untouched.
static void *judge_resized(void *old, void *block, size_t size, bool frees) {
    int error = errno;
    if (frees && size == 0) {
        CHECK(block == NULL && errno == ERRNO_BEFORE);
        return call.malloc(0);
    }
    size_t kept = size < OLD ? size : OLD;
    CHECK(all_bytes(block != NULL ? block : old, 0x77, kept));
    if (block == NULL) {
        call.free(old);
    }
    errno = error;
    return block;
}

#define RESIZING(name, frees, expression) \
    static void *get_##name(size_t alignment, size_t size, int *code) { \
        (void)alignment; \
        *code = 0; \
        void *old = old_block(); \
        return old == NULL ? NULL : judge_resized(old, expression, size, frees); \
    }

RESIZING(resized, true, call.realloc(old, size))
RESIZING(resized_array, true, call.reallocarray(old, 1, size))
RESIZING(resized_array_turned, true, call.reallocarray(old, size, 1))
RESIZING(resized_cleared, false, call.recallocarray(old, OLD, size, 1))
RESIZING(libc_resized, true, call.__libc_realloc(old, size))

static const struct entry_point resizing[] = {
    { "realloc(p, n)", RULE_NONE, false, get_resized },
    { "reallocarray(p, 1, n)", RULE_NONE, false, get_resized_array },
    { "reallocarray(p, n, 1)", RULE_NONE, false, get_resized_array_turned },
    { "recallocarray(p, 100, n, 1)", RULE_NONE, false, get_resized_cleared },
    { "__libc_realloc(p, n)", RULE_NONE, false, get_libc_resized },
};

// ---- products that do not fit are no memory, whatever they wrap round to

static void overflowing_products(void) {
    static const size_t factors[][2] = { { SIZE_MAX, 2 },
                                         { 2, SIZE_MAX },
                                         { SIZE_MAX / 2 + 1, 2 },
                                         { (size_t)1 << 32, (size_t)1 << 32 },
                                         { SIZE_MAX / 16 + 2, 16 } };
    for (size_t i = 0; i < sizeof(factors) / sizeof(factors[0]); i++) {
        size_t count = factors[i][0];
        size_t size = factors[i][1];
        void *old = old_block();
        errno = ERRNO_BEFORE;
        CHECK(call.calloc(count, size) == NULL && errno == ENOMEM);
        errno = ERRNO_BEFORE;
        CHECK(call.__libc_calloc(count, size) == NULL && errno == ENOMEM);
        errno = ERRNO_BEFORE;
        CHECK(call.reallocarray(NULL, count, size) == NULL && errno == ENOMEM);
        errno = ERRNO_BEFORE;
        CHECK(call.reallocarray(old, count, size) == NULL && errno == ENOMEM);
        errno = ERRNO_BEFORE;
        CHECK(call.recallocarray(old, 1, count, size) == NULL && errno == ENOMEM);
        errno = ERRNO_BEFORE;
        CHECK(call.recallocarray(old, count, 1, size) == NULL && errno == EINVAL);
        CHECK(all_bytes(old, 0x77, OLD));
        call.free(old);
    }
}

// ---- calls that free

#define GIVER(name, expression) \
    static void give_##name(void *block, size_t size, size_t alignment) { \
        (void)size; \
        (void)alignment; \
        expression; \
    }

GIVER(free, call.free(block))
GIVER(cfree, call.cfree(block))
GIVER(free_sized, call.free_sized(block, size))
GIVER(free_aligned_sized, call.free_aligned_sized(block, alignment, size))
GIVER(freezero, call.freezero(block, size))
GIVER(libc_free, call.__libc_free(block))
GIVER(libc_cfree, call.__libc_cfree(block))
GIVER(realloc, CHECK(block == NULL || call.realloc(block, 0) == NULL))

static const struct giver givers[] = {
    { "free", give_free },
    { "cfree", give_cfree },
    { "free_sized", give_free_sized },
    { "free_aligned_sized", give_free_aligned_sized },
    { "freezero", give_freezero },
    { "__libc_free", give_libc_free },
    { "__libc_cfree", give_libc_cfree },
    { "realloc(p, 0)", give_realloc },
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

int main(void) {
    static const struct family allocating = { entries, ENTRIES, givers, COUNT(givers) };
    static const struct family changing = { resizing, COUNT(resizing), givers, COUNT(givers) };
    entry_begin(120);
    errno = ERRNO_BEFORE;
    CHECK_EQ(call.malloc_usable_size(NULL), 0);
    CHECK_EQ(errno, ERRNO_BEFORE);
    judge_family(&allocating);
    judge_family(&changing);
    overflowing_products();
    return test_end();
}

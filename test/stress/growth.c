// Is growing a block near linear, by small steps and by large ones, without a second copy of it in
// memory, and does it succeed where there is room for the block but not for two?
#include "../figures.h"

#include <malloc.h>

static char *grow(char *block, size_t size) {
    char *grown = (char *)hide(realloc(block, size));
    REQUIRE(grown != NULL);
    grown[size - 1] = 1;
    return grown;
}

static double grow_to(size_t end, size_t step) {
    double start = seconds_now();
    char *block = NULL;
    for (size_t size = step; size <= end; size += step) {
        block = grow(block, size);
    }
    free(block);
    return seconds_now() - start;
}

static double grow_two_in_turn(size_t end, size_t step) {
    double start = seconds_now();
    char *blocks[2] = { NULL, NULL };
    for (size_t size = step; size <= end; size += step) {
        blocks[0] = grow(blocks[0], size);
        blocks[1] = grow(blocks[1], size);
    }
    free(blocks[0]);
    free(blocks[1]);
    return seconds_now() - start;
}

// Twice the length takes about twice the time. A machine under load disturbs: the best of five.
static void is_linear(double (*measure)(size_t, size_t), size_t end, size_t step,
                      const char *what) {
    double ratio = 1000;
    for (int i = 0; i < 5 && ratio > 3; i++) {
        double once = measure(end, step);
        double twice = measure(2 * end, step);
        ratio = twice / once < ratio ? twice / once : ratio;
        say("%s: %.3f s, twice as far %.3f s\n", what, once, twice);
    }
    CHECK_SAY(ratio <= 3, "%s: twice as far takes %.1f times as long", what, ratio);
}

enum { MIB = 1 << 20 };

static void fill_new(char *block, size_t from, size_t to) {
    for (size_t at = from; at < to; at += 4096) {
        block[at] = (char)(at >> 12);
    }
}

static void is_filled(const char *block, size_t size) {
    for (size_t at = 0; at < size; at += 4096) {
        CHECK(block[at] == (char)(at >> 12));
    }
}

static void double_to_512_mib(void *unused) {
    size_t size = MIB;
    char *block = (char *)hide(malloc(size));
    (void)unused;
    REQUIRE(block != NULL);
    fill_new(block, 0, size);
    for (; size < 512 * (size_t)MIB; size *= 2) {
        block = (char *)hide(realloc(block, 2 * size));
        REQUIRE(block != NULL);
        fill_new(block, size, 2 * size);
    }
    is_filled(block, size);
    CHECK_AT_MOST(status_kib("VmHWM:"), 512 * 1024 * 11 / 10);
    free(block);
}

static void grow_256_mib_by_steps(void *unused) {
    size_t size = 256 * (size_t)MIB;
    char *block = (char *)hide(malloc(size));
    (void)unused;
    REQUIRE(block != NULL);
    fill_new(block, 0, size);
    for (int i = 0; i < 64; i++) {
        block = (char *)hide(realloc(block, size + MIB));
        REQUIRE(block != NULL);
        fill_new(block, size, size + MIB);
        size += MIB;
    }
    is_filled(block, size);
    CHECK_AT_MOST(status_kib("VmHWM:"), (256 + 64) * 1024 * 11 / 10);
    free(block);
}

// Room for the block and a little more, not for two of them.
static void under_a_limit(void *body) {
    struct rlimit limit = { 700 * (size_t)MIB, 700 * (size_t)MIB };
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
    (*(void (**)(void *))body)(NULL);
}

int main(void) {
    static void (*bodies[])(void *) = { double_to_512_mib, grow_256_mib_by_steps };
    api_begin(120);
    is_linear(grow_to, 16 * MIB, 8, "8 bytes a step");
    is_linear(grow_to, 32 * MIB, 100, "100 bytes a step");
    is_linear(grow_two_in_turn, 16 * MIB, 100, "two buffers in turn");
    is_linear(grow_to, 128 * MIB, 4096, "a page a step");
    for (size_t i = 0; i < 2; i++) {
        struct child_end end = run_child(bodies[i], NULL, 30);
        expect_exit(&end, 0, "growth of a large block");
        end = run_child(under_a_limit, &bodies[i], 30);
        expect_exit(&end, 0, "growth of a large block under a limit");
    }
    return test_end();
}

// random.c - the stream is ChaCha8, nothing of it is lost, draws are even, and a child draws anew.
#include <config.h>

#include "base.h"
#include "harness.h"
#include "os.h"
#include "probe.h"
#include "random.h"

#include <sys/mman.h>

#define NIBBLES_OF_KEY 64

// ---- ChaCha, as slowly as RFC 8439 tells it

static uint32_t left_by(uint32_t word, int by) {
    return word << by | word >> (32 - by);
}

static void quarter_round(uint32_t s[16], int a, int b, int c, int d) {
    s[a] += s[b];
    s[d] = left_by(s[d] ^ s[a], 16);
    s[c] += s[d];
    s[b] = left_by(s[b] ^ s[c], 12);
    s[a] += s[b];
    s[d] = left_by(s[d] ^ s[a], 8);
    s[c] += s[d];
    s[b] = left_by(s[b] ^ s[c], 7);
}

static void slow_block(const uint32_t key[8], const uint32_t last[4], int rounds,
                       uint32_t out[16]) {
    uint32_t start[16] = { 0x61707865, 0x3320646e, 0x79622d32, 0x6b206574 };
    memcpy(start + 4, key, 32);
    memcpy(start + 12, last, 16);
    memcpy(out, start, sizeof(start));
    for (int i = 0; i < rounds; i += 2) {
        for (int column = 0; column < 4; column++) {
            quarter_round(out, column, 4 + column, 8 + column, 12 + column);
        }
        for (int column = 0; column < 4; column++) {
            quarter_round(out, column, 4 + (column + 1) % 4, 8 + (column + 2) % 4,
                          12 + (column + 3) % 4);
        }
    }
    for (int i = 0; i < 16; i++) {
        out[i] += start[i];
    }
}

static void slow_chacha8(const uint32_t key[8], uint64_t counter, uint32_t out[16]) {
    const uint32_t last[4] = { (uint32_t)counter, (uint32_t)(counter >> 32), 0, 0 };
    slow_block(key, last, 8, out);
}

// RFC 8439, section 2.3.2: the block of the example, 20 rounds.
static void check_the_slow_one(void) {
    uint32_t key[8];
    uint32_t out[16];
    for (uint32_t i = 0; i < 8; i++) {
        key[i] = 0x03020100 + i * 0x04040404;
    }
    static const uint32_t last[4] = { 1, 0x09000000, 0x4a000000, 0 };
    static const uint32_t expected[16] = { 0xe4e7f110, 0x15593bd1, 0x1fdd0f50, 0xc47120a3,
                                           0xc7f4d1c7, 0x0368c033, 0x9aaa2204, 0x4e6cd4c3,
                                           0x466482d2, 0x09aa9f07, 0x05d7c214, 0xa2028bd9,
                                           0xd19c12b5, 0xb94e16de, 0xe883d0cb, 0x4e3c50a2 };
    slow_block(key, last, 20, out);
    CHECK(memcmp(out, expected, sizeof(out)) == 0);
}

// ---- the stream against the slow one

static struct stream stream_of_key(const uint32_t key[8], uint64_t counter) {
    struct stream stream;
    memset(&stream, 0, sizeof(stream));
    memcpy(stream.key, key, 32);
    stream.counter = counter;
    stream.keyed = 1;
    return stream;
}

// Puts the bytes of the stream together again: 16 low halves, then the 16 high ones.
static void bytes_of_draws(const uint8_t draws[PMA_STREAM_DRAWS], uint8_t bytes[512]) {
    for (int i = 0; i < 512; i++) {
        const uint8_t *group = draws + i / 16 * 32 + i % 16;
        bytes[i] = (uint8_t)(group[0] >> 2 | group[16] >> 2 << 4);
    }
}

// The first block for a key of zeroes: draft-strombergson-chacha-test-vectors-00, TC1, 256-bit key,
// 8 rounds, as words of little endian.
static void check_published_vector(void) {
    static const uint32_t zero[8];
    static const uint32_t expected[16] = { 0x2fef003e, 0xd6405f89, 0xe8b85b7f, 0xa1a5091f,
                                           0xc30e842c, 0x3b7f9ace, 0x88e11b18, 0x1e1a71ef,
                                           0x72e14c98, 0x416f21b9, 0x6753449f, 0x19566d45,
                                           0xa3424a31, 0x01b086da, 0xb8fd7b38, 0x42fe0c0e };
    uint32_t slow[16];
    uint8_t bytes[512];
    slow_chacha8(zero, 0, slow);
    CHECK(memcmp(slow, expected, sizeof(slow)) == 0);
    struct stream stream = stream_of_key(zero, 0);
    pma_stream_refill(&stream);
    bytes_of_draws(stream.draws, bytes);
    CHECK(memcmp(bytes, expected, sizeof(expected)) == 0);
}

static void check_refill(struct stream *stream, const uint32_t key[8], uint64_t counter) {
    uint32_t slow[8][16];
    uint8_t bytes[512];
    for (uint64_t i = 0; i < 8; i++) {
        slow_chacha8(key, counter + i, slow[i]);
    }
    pma_stream_refill(stream);
    for (int i = 0; i < PMA_STREAM_DRAWS; i++) {
        CHECK(stream->draws[i] <= 60 && stream->draws[i] % 4 == 0);
    }
    bytes_of_draws(stream->draws, bytes);
    CHECK(memcmp(bytes, slow, stream->left / 2) == 0);
    if (counter == 0) {
        CHECK_EQ(stream->left, PMA_STREAM_DRAWS);
        CHECK_EQ(stream->counter, 8);
        CHECK(memcmp(stream->key, key, 32) == 0);
        return;
    }
    // The last 32 bytes became the key, and are nowhere else.
    CHECK_EQ(stream->left, PMA_STREAM_DRAWS - NIBBLES_OF_KEY);
    CHECK_EQ(stream->counter, 0);
    CHECK(memcmp(stream->key, &slow[7][8], 32) == 0);
    for (int i = PMA_STREAM_DRAWS - NIBBLES_OF_KEY; i < PMA_STREAM_DRAWS; i++) {
        CHECK_EQ(stream->draws[i], 0);
    }
}

static void check_stream(struct dice *dice) {
    uint32_t key[8];
    for (int i = 0; i < 8; i++) {
        key[i] = (uint32_t)dice_draw(dice);
    }
    struct stream stream = stream_of_key(key, 0);
    for (int refill = 0; refill < 20; refill++) {
        memcpy(key, stream.key, 32);
        check_refill(&stream, key, stream.counter);
    }
    // The counter has 64 bits.
    stream.counter = 0xfffffffc;
    memcpy(key, stream.key, 32);
    check_refill(&stream, key, 0xfffffffc);
}

// Draws come from the end, each once, and the next refill comes when there is none left.
static void check_draws_in_order(void) {
    struct stream stream;
    memset(&stream, 0, sizeof(stream));
    unsigned first = stream_rotation(&stream);
    CHECK_EQ(stream.keyed, 1);
    CHECK_EQ(stream.left, PMA_STREAM_DRAWS - 1);
    CHECK_EQ(first, stream.draws[PMA_STREAM_DRAWS - 1]);
    for (unsigned left = PMA_STREAM_DRAWS - 1; left > 0; left--) {
        unsigned expected = stream.draws[left - 1];
        CHECK_EQ(left % 2 == 0 ? stream_rotation(&stream) : 4 * stream_nibble(&stream), expected);
    }
    CHECK_EQ(stream.left, 0);
    (void)stream_nibble(&stream);
    CHECK_EQ(stream.left, PMA_STREAM_DRAWS - NIBBLES_OF_KEY - 1);
}

// ---- keys

static bool same_draws(const struct stream *a, const struct stream *b) {
    return memcmp(a->draws, b->draws, sizeof(a->draws)) == 0;
}

static void check_keys_differ(void) {
    static const uint32_t zero[8];
    struct stream a, b;
    memset(&a, 0, sizeof(a));
    memset(&b, 0, sizeof(b));
    pma_stream_refill(&a);
    pma_stream_refill(&b);
    CHECK(!same_draws(&a, &b));
    CHECK(memcmp(a.key, zero, 32) != 0);
    pma_stream_forget(&a);
    CHECK_EQ(a.left, 0);
    b = a;
    pma_stream_refill(&a);
    pma_stream_refill(&b);
    CHECK(!same_draws(&a, &b));
}

// The kernel gives nothing: streams differ all the same, change with every refill, and are keyed
// as soon as it does.
static void check_fallback(void) {
    struct stream a, b;
    memset(&a, 0, sizeof(a));
    memset(&b, 0, sizeof(b));
    pma_os_fail_at(1, true);
    pma_stream_refill(&a);
    pma_stream_refill(&b);
    CHECK_EQ(a.keyed, 0);
    CHECK_EQ(a.left, PMA_STREAM_DRAWS);
    CHECK(!same_draws(&a, &b));
    for (int i = 0; i < 10; i++) {
        b = a;
        pma_stream_refill(&a);
        CHECK_EQ(a.keyed, 0);
        CHECK(!same_draws(&a, &b));
        CHECK(memcmp(a.key, b.key, 32) != 0);
    }
    pma_os_fail_at(0, false);
    uint64_t calls = pma_os_calls();
    pma_stream_refill(&a);
    CHECK_EQ(a.keyed, 1);
    CHECK_EQ(a.left, PMA_STREAM_DRAWS);
    CHECK_EQ(pma_os_calls(), calls + 1);
    pma_stream_refill(&a);
    CHECK_EQ(pma_os_calls(), calls + 1);
}

// ---- fork

struct report {
    uint32_t left, keyed, refilled;
    uint8_t draws[PMA_STREAM_DRAWS];
};

static void check_child_draws_anew(void) {
    size_t size = align_up(sizeof(struct stream), pma_page_size);
    struct stream *stream = pma_os_map(NULL, size);
    struct report *report =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(stream != NULL && report != MAP_FAILED);
    const bool wiped = advice_is_heard(stream, size);
    CHECK_EQ(pma_os_wipe_on_fork(stream, size), wiped);
    (void)stream_nibble(stream);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        if (!wiped) {
            pma_stream_forget(stream);
        }
        report->left = stream->left;
        report->keyed = stream->keyed;
        (void)stream_nibble(stream);
        report->refilled = stream->keyed;
        memcpy(report->draws, stream->draws, sizeof(report->draws));
        _exit(0);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    CHECK_EQ(stream->left, PMA_STREAM_DRAWS - 1);
    CHECK_EQ(stream->keyed, 1);
    CHECK_EQ(report->left, 0);
    CHECK_EQ(report->keyed, 0);
    CHECK_EQ(report->refilled, 1);
    CHECK(memcmp(report->draws, stream->draws, sizeof(report->draws)) != 0);
    // Neither is the child's what the parent draws next.
    pma_stream_refill(stream);
    CHECK(memcmp(report->draws, stream->draws, sizeof(report->draws)) != 0);
    CHECK(pma_os_unmap(stream, size) && munmap(report, size) == 0);
}

// ---- evenness

static double chi_square(const uint64_t *counts, size_t kinds, uint64_t draws) {
    double expected = (double)draws / (double)kinds;
    double sum = 0;
    for (size_t i = 0; i < kinds; i++) {
        double off = (double)counts[i] - expected;
        sum += off * off / expected;
    }
    return sum;
}

// Six standard deviations above the mean of the distribution, and 20 for the skew of small ones;
// nor too near the mean, as a counter would be. Less than one good run in ten million fails.
static void check_counts(const uint64_t *counts, size_t kinds, uint64_t draws, const char *what) {
    double sum = chi_square(counts, kinds, draws);
    double degrees = (double)kinds - 1;
    double above = sum - degrees - 20;
    CHECK_SAY(above < 0 || above * above < 36 * 2 * degrees, "%s: chi-square %.1f of %zu kinds",
              what, sum, kinds);
    CHECK_SAY(sum > degrees / 64, "%s: chi-square only %.1f", what, sum);
}

static void check_nibbles_even(struct stream *stream, const char *what) {
    static uint64_t single[16], pair[256], apart[256];
    const uint64_t draws = 1000000 / slow_factor();
    unsigned ring[16] = { 0 };
    memset(single, 0, sizeof(single));
    memset(pair, 0, sizeof(pair));
    memset(apart, 0, sizeof(apart));
    for (uint64_t i = 0; i < draws; i++) {
        unsigned nibble = stream_nibble(stream);
        single[nibble]++;
        pair[nibble * 16 + ring[(i - 1) % 16]]++;
        apart[nibble * 16 + ring[i % 16]]++;
        ring[i % 16] = nibble;
    }
    check_counts(single, 16, draws, what);
    check_counts(pair, 256, draws, what);
    check_counts(apart, 256, draws, what);
}

static void check_even(struct dice *dice) {
    uint32_t key[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    struct stream stream = stream_of_key(key, 0);
    check_nibbles_even(&stream, "fixed key");
    memset(&stream, 0, sizeof(stream));
    check_nibbles_even(&stream, "the kernel's key");
    for (int i = 0; i < 8; i++) {
        key[i] = (uint32_t)dice_draw(dice);
    }
    stream = stream_of_key(key, 0);
    check_nibbles_even(&stream, "key of this run");
}

// Puts a number before the other draws, the first nibble to be drawn first, and zeroes after it.
static void stream_put(struct stream *stream, uint64_t number, unsigned nibbles) {
    memset(stream->draws, 0, 32);
    stream->left = 32;
    for (unsigned i = 0; i < nibbles; i++) {
        stream->draws[31 - i] = (uint8_t)((number >> 4 * (nibbles - 1 - i) & 15) * 4);
    }
}

// Every value that the nibbles can have is tried: each result comes equally often, but for one.
static void check_scale_exhaustively(size_t n, unsigned nibbles) {
    static uint32_t counts[4096];
    struct stream stream;
    memset(&stream, 0, sizeof(stream));
    memset(counts, 0, sizeof(counts));
    size_t values = (size_t)1 << 4 * nibbles;
    for (size_t value = 0; value < values; value++) {
        stream_put(&stream, value, nibbles);
        size_t result = stream_scale(&stream, n);
        CHECK_EQ(stream.left, 32 - nibbles);
        REQUIRE(result < n);
        counts[result]++;
    }
    for (size_t i = 0; i < n; i++) {
        CHECK(counts[i] == values / n || counts[i] == values / n + 1);
    }
}

static void check_scale(void) {
    for (size_t n = 1; n <= 64; n++) {
        check_scale_exhaustively(n, 2);
    }
    for (size_t n = 65; n <= 4096; n += 31 * slow_factor()) {
        check_scale_exhaustively(n, 4);
    }
    check_scale_exhaustively(4096, 4);
}

// ---- the fixed seed: from here on, all streams of this process

static struct stream stream_of_seed(uint64_t seed, uint64_t identity) {
    struct stream stream;
    memset(&stream, 0, sizeof(stream));
    stream.identity = identity;
    pma_random_set_seed(seed);
    pma_stream_refill(&stream);
    return stream;
}

static void check_seed(struct dice *dice) {
    const uint64_t seed = dice_draw(dice);
    uint64_t calls = pma_os_calls();
    struct stream stream = stream_of_seed(seed, 1);
    struct stream again = stream_of_seed(seed, 1);
    CHECK(same_draws(&stream, &again));
    pma_stream_refill(&stream);
    CHECK(!same_draws(&stream, &again));
    pma_stream_forget(&stream);
    pma_stream_refill(&stream);
    CHECK(same_draws(&stream, &again));
    CHECK_EQ(pma_os_calls(), calls);
    for (int bit = 0; bit < 64; bit++) {
        struct stream other = stream_of_seed(seed ^ (uint64_t)1 << bit, 1);
        CHECK(!same_draws(&again, &other));
        other = stream_of_seed(seed, 1 ^ (uint64_t)1 << bit);
        CHECK(!same_draws(&again, &other));
    }
    stream = stream_of_seed(0, 0);
    check_nibbles_even(&stream, "seed 0");
}

int main(void) {
    test_begin(120);
    pma_os_init();
    struct dice dice = { test_seed() };
    check_the_slow_one();
    check_published_vector();
    check_stream(&dice);
    check_draws_in_order();
    check_keys_differ();
    check_fallback();
    check_child_draws_anew();
    check_even(&dice);
    check_scale();
    check_seed(&dice);
    return test_end();
}

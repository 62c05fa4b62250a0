// random.c - streams of entropy, taken four bits a draw.
//
// Owns the cipher and the fixed seed. ChaCha with 8 rounds (Bernstein, "ChaCha, a variant of
// Salsa20", 2008), with the state of RFC 8439 but a block counter of 64 bits and a nonce of 64 bits
// that is always zero, since no key is ever used for two streams. Eight rounds are the number that
// "Too Much Crypto" (Aumasson, 2019) argues for.
#include <config.h>

#include "base.h"
#include "fatal.h"
#include "os.h"
#include "random.h"
#include "tune.h"

#define KEY_WORDS 8
#define BLOCK_BYTES 64
#define DOUBLE_ROUNDS 4

// A refill is so many blocks, at two draws a byte.
#define REFILL_BLOCKS (PMA_STREAM_DRAWS / 2 / BLOCK_BYTES)
#define KEY_DRAWS (KEY_WORDS * sizeof(uint32_t) * 2)

// Four words at once: a row of the cipher's square. Every vector unit of our ports has 128 bits.
typedef uint32_t row __attribute__((vector_size(16)));

_Static_assert(REFILL_BLOCKS % 2 == 0, "blocks are computed in pairs");

static uint64_t fixed_seed;  // const after init
static uint32_t seed_is_set; // const after init
static uint64_t *seed_home;  // const after init; what it points to is atomic

// ---- the cipher

struct square {
    row a, b, c, d;
};

PMA_INLINE row rotate(row r, unsigned left) {
    return r << left | r >> (32 - left);
}

// Turns a row by so many words, which brings the square's diagonals into its columns and back.
#if defined(__clang__)
#define turn(r, by) \
    __builtin_shufflevector(r, r, by, ((by) + 1) & 3, ((by) + 2) & 3, ((by) + 3) & 3)
#else
#define turn(r, by) \
    __builtin_shuffle(r, (row){ by, ((by) + 1) & 3, ((by) + 2) & 3, ((by) + 3) & 3 })
#endif

// The four quarter rounds of the columns side by side.
PMA_INLINE void square_columns(struct square *s) {
    s->a += s->b;
    s->d = rotate(s->d ^ s->a, 16);
    s->c += s->d;
    s->b = rotate(s->b ^ s->c, 12);
    s->a += s->b;
    s->d = rotate(s->d ^ s->a, 8);
    s->c += s->d;
    s->b = rotate(s->b ^ s->c, 7);
}

PMA_INLINE void square_double_round(struct square *s) {
    square_columns(s);
    s->b = turn(s->b, 1);
    s->c = turn(s->c, 2);
    s->d = turn(s->d, 3);
    square_columns(s);
    s->b = turn(s->b, 3);
    s->c = turn(s->c, 2);
    s->d = turn(s->d, 1);
}

PMA_INLINE struct square square_start(const uint32_t key[KEY_WORDS], uint64_t counter) {
    struct square s;
    s.a = (row){ 0x61707865, 0x3320646e, 0x79622d32, 0x6b206574 };
    __builtin_memcpy(&s.b, key, sizeof(s.b));
    __builtin_memcpy(&s.c, key + 4, sizeof(s.c));
    s.d = (row){ (uint32_t)counter, (uint32_t)(counter >> 32), 0, 0 };
    return s;
}

PMA_INLINE void square_add(struct square *s, const struct square *other) {
    s->a += other->a;
    s->b += other->b;
    s->c += other->c;
    s->d += other->d;
}

// Two blocks at once: their sums do not wait for each other, and both squares fit the sixteen
// registers of x86-64.
PMA_INLINE void chacha_pair(const uint32_t key[KEY_WORDS], uint64_t counter, struct square out[2]) {
    struct square first = square_start(key, counter);
    struct square second = square_start(key, counter + 1);
    out[0] = first;
    out[1] = second;
    for (unsigned i = 0; i < DOUBLE_ROUNDS; i++) {
        square_double_round(&out[0]);
        square_double_round(&out[1]);
    }
    square_add(&out[0], &first);
    square_add(&out[1], &second);
}

// ---- keys

void pma_random_set_seed(uint64_t seed) {
    fixed_seed = seed;
    seed_is_set = 1;
}

void pma_random_set_home(uint64_t *home) {
    seed_home = home;
}

bool pma_random_has_home(void) {
    return seed_home != NULL;
}

void pma_random_forget(void) {
    if (seed_home != NULL) {
        __atomic_store_n(seed_home, 0, __ATOMIC_RELAXED);
    }
}

// The process's seed; 0 while the kernel gives none. Whoever draws it first decides.
static uint64_t process_seed(void) {
    uint64_t seed = __atomic_load_n(seed_home, __ATOMIC_RELAXED);
    uint64_t drawn;
    if (likely(seed != 0)) {
        return seed;
    }
    if (!pma_os_random(&drawn, sizeof(drawn))) {
        return 0;
    }
    drawn += drawn == 0;
    if (!__atomic_compare_exchange_n(seed_home, &seed, drawn, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED)) {
        return seed;
    }
    pma_fatal_set_seed(drawn);
    return drawn;
}

static void key_from_seed(uint32_t key[KEY_WORDS], uint64_t seed, uint64_t identity) {
    const uint32_t input[KEY_WORDS] = { (uint32_t)seed, (uint32_t)(seed >> 32), (uint32_t)identity,
                                        (uint32_t)(identity >> 32) };
    struct square blocks[2];
    chacha_pair(input, 0, blocks);
    __builtin_memcpy(key, blocks, KEY_WORDS * sizeof(*key));
}

// Weak entropy is added to the key that is there, so that what has gathered is kept, and the stream
// stays unkeyed.
static void key_from_fallback(uint32_t key[KEY_WORDS]) {
    uint32_t weak[KEY_WORDS];
    pma_os_random_fallback(weak, sizeof(weak));
    for (unsigned i = 0; i < KEY_WORDS; i++) {
        key[i] ^= weak[i];
    }
}

static PMA_COLD void stream_key(struct stream *stream) {
    uint64_t seed = seed_is_set ? fixed_seed : seed_home != NULL ? process_seed() : 0;
    if (seed_is_set || seed != 0) {
        key_from_seed(stream->key, seed, stream->identity);
    } else if (seed_home != NULL || !pma_os_random(stream->key, sizeof(stream->key))) {
        key_from_fallback(stream->key);
        return;
    }
    stream->counter = 0;
    stream->keyed = 1;
}

void pma_stream_forget(struct stream *stream) {
    stream->left = 0;
    stream->keyed = 0;
}

// ---- draws

// 1 in a library that is built for bench/placement alone: every draw is 0, the first free place, to
// show what draws and random places cost.
#ifndef PMA_BENCH_FIXED_DRAWS
#define PMA_BENCH_FIXED_DRAWS 0
#endif

// Sixteen bytes become 32 rotation counts: the low four bits of each byte times four, then the high
// four.
PMA_INLINE void draws_expand(uint8_t *draws, row bytes) {
    const row mask = { 0x3c3c3c3c, 0x3c3c3c3c, 0x3c3c3c3c, 0x3c3c3c3c };
    row low = bytes << 2 & mask;
    row high = bytes >> 2 & mask;
    __builtin_memcpy(draws, &low, sizeof(low));
    __builtin_memcpy(draws + sizeof(low), &high, sizeof(high));
}

PMA_INLINE void draws_expand_block(uint8_t *draws, const struct square *block) {
    draws_expand(draws, block->a);
    draws_expand(draws + 32, block->b);
    draws_expand(draws + 64, block->c);
    draws_expand(draws + 96, block->d);
}

// The last half block of every second refill is not drawn from: it becomes the next key, and what
// was drawn before cannot be computed from the memory of this process any more. Doing so at every
// refill would cost 6.7 % of the draws, every second costs 3.2 %.
PMA_SLOW void pma_stream_refill(struct stream *stream) {
    if (PMA_BENCH_FIXED_DRAWS) {
        stream->left = PMA_STREAM_DRAWS;
        return;
    }
    if (unlikely(!stream->keyed)) {
        stream_key(stream);
    }
    struct square blocks[2];
    uint8_t *draws = stream->draws;
    for (unsigned i = 0; i < REFILL_BLOCKS; i += 2) {
        chacha_pair(stream->key, stream->counter + i, blocks);
        draws_expand_block(draws, &blocks[0]);
        draws_expand_block(draws + 2 * BLOCK_BYTES, &blocks[1]);
        draws += 4 * BLOCK_BYTES;
    }
    if (stream->counter == 0) {
        stream->counter = REFILL_BLOCKS;
        stream->left = PMA_STREAM_DRAWS >> PMA_BENCH_BYTE_DRAWS;
        return;
    }
    __builtin_memcpy(stream->key, &blocks[1].c, sizeof(stream->key));
    __builtin_memset(stream->draws + PMA_STREAM_DRAWS - KEY_DRAWS, 0, KEY_DRAWS);
    stream->counter = 0;
    stream->left = (PMA_STREAM_DRAWS - KEY_DRAWS) >> PMA_BENCH_BYTE_DRAWS;
}

// random.h - streams of entropy, taken four bits a draw.
//
// Owns the cipher and the layout of a stream. A stream belongs to one arena, or is guarded by the
// lock of whoever holds it; there is no lock here. It must not know what the draws are for.
//
// A stream is ChaCha8 keyed from the kernel. Its output is expanded 512 bytes at a time into 1,024
// rotation counts, one byte each: four bits of the stream times four, 0, 4, ... 60. Not a bit of it
// is thrown away. A stream lies on pages of its own that a forked child sees as zero (where the
// kernel can), and zero means: no draws left, no key. So a child, however it was made, keys its
// streams anew before it draws again. Where the kernel cannot, the fork handler calls
// pma_stream_forget.
#ifndef PMA_RANDOM_H
#define PMA_RANDOM_H

#include "base.h"
#include "tune.h"

struct stream {
    size_t left;       // owner; ready draws, taken from the end: draws[left - 1] is next
    uint32_t keyed;    // owner; 0: must be keyed before the next refill
    uint32_t key[8];   // owner
    uint64_t counter;  // owner; of 64-byte blocks
    uint64_t identity; // owner; with a fixed seed: which stream of the process this is
    uint8_t draws[PMA_STREAM_DRAWS] PMA_ALIGNED(64); // owner
};

// Refills draws, keying the stream first if need be. It cannot fail: without the kernel's generator
// it takes the fallback of os.h, and tries the kernel again at every further refill until that
// succeeds.
PMA_SLOW void pma_stream_refill(struct stream *stream);

// Where the process's seed is kept: zeroed memory that a forked child sees as zero. Keys are
// derived from the seed and the stream's identity. It is drawn from the kernel when it is needed
// first, and again in a child, and told to every fatal message.
void pma_random_set_home(uint64_t *home);
bool pma_random_has_home(void);

// In a forked child where the kernel cannot wipe: the seed is drawn again.
void pma_random_forget(void);

// All later keys are derived from this seed and the stream's identity: seed= in the options.
void pma_random_set_seed(uint64_t seed);

// The stream's next refill keys it anew.
void pma_stream_forget(struct stream *stream);

// A rotation count, 0, 4, ... 60.
PMA_INLINE unsigned stream_rotation(struct stream *stream) {
    if (unlikely(stream->left == 0)) {
        pma_stream_refill(stream);
    }
    return stream->draws[--stream->left];
}

// Four bits.
PMA_INLINE unsigned stream_nibble(struct stream *stream) {
    return stream_rotation(stream) >> 2;
}

// One of 0 ... n - 1, n at most 4096: each comes of 4 or 5 in 256 draws when n is 64, of 16 in
// 65536 and more when it is larger.
PMA_INLINE size_t stream_scale(struct stream *stream, size_t n) {
    size_t drawn = stream_nibble(stream) << 4;
    drawn |= stream_nibble(stream);
    if (likely(n <= 64)) {
        return drawn * n >> 8;
    }
    drawn = drawn << 8 | stream_nibble(stream) << 4;
    drawn |= stream_nibble(stream);
    return drawn * n >> 16;
}

#endif

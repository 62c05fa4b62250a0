// base.h - the words of the house: types, attributes, bits and rounding.
//
// Owns nothing and knows no other module. Every source includes <config.h> and then what it needs,
// lowest floor first; nothing here may include a header of ours.
//
//   page     the operating system's page, read at run time (4 to 64 KiB)
//   granule  4 KiB, the page map's unit, a constant
//   region   a reserved stretch of address space: a committed prefix, then PROT_NONE
//   run      some whole pages in a row, described by one descriptor
//   slab     a run cut in equal slots
//   slot     the place of one small object
//   class    a slot size
//   word     64 neighbouring slots of a slab, and their 64 live bits
//   window   the word that an arena is now handing out of, held in the arena
//   arena    what one thread owns: a bin for each class, an entropy stream, its slabs' descriptors
//   bin      an arena's state for one class: the window, and the slabs with room
//   shard    one page heap of several, with one lock
//   remote   said of a slot freed by a thread that does not own its slab
#ifndef PMA_BASE_H
#define PMA_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define PMA_EXPORT __attribute__((visibility("default")))
#define PMA_HOT __attribute__((hot))
// A cold function is never inlined, so that its registers are not saved by the hot one that calls
// it.
#define PMA_COLD __attribute__((cold, noinline))
#define PMA_SLOW __attribute__((noinline))
#define PMA_INLINE static inline __attribute__((always_inline))
#define PMA_PRINTF(format, first) __attribute__((format(printf, format, first)))

// Adjacent cache lines are fetched in pairs: what two threads write must lie this far apart.
#define PMA_APART 128
#define PMA_ALIGNED(n) __attribute__((aligned(n)))

// Words of 64 bits are read and written at once everywhere, which 32-bit x86 promises only where
// they are aligned: there the ABI aligns them to 4 bytes unless the compiler is told
// -malign-double.
_Static_assert(_Alignof(struct { uint64_t word; }) == 8, "64-bit words must be aligned");

// Expands to nothing in a release build; the test build turns it into a check that aborts.
#if PMA_TEST
#define pma_assert(condition) ((condition) ? (void)0 : __builtin_trap())
#else
#define pma_assert(condition) ((void)sizeof(!(condition)))
#endif

PMA_INLINE size_t size_min(size_t a, size_t b) {
    return a < b ? a : b;
}

PMA_INLINE size_t size_max(size_t a, size_t b) {
    return a > b ? a : b;
}

PMA_INLINE bool is_power_of_two(size_t n) {
    return n != 0 && (n & (n - 1)) == 0;
}

// The caller makes sure that size + alignment - 1 does not wrap; alignment is a power of two.
PMA_INLINE size_t align_up(size_t size, size_t alignment) {
    return (size + alignment - 1) & ~(alignment - 1);
}

PMA_INLINE size_t align_down(size_t size, size_t alignment) {
    return size & ~(alignment - 1);
}

PMA_INLINE unsigned bits_lowest(uint64_t word) {
    return (unsigned)__builtin_ctzll(word);
}

PMA_INLINE unsigned bits_highest(uint64_t word) {
    return 63u - (unsigned)__builtin_clzll(word);
}

PMA_INLINE uint64_t bits_rotate_right(uint64_t word, unsigned by) {
    return word >> (by & 63) | word << (-by & 63);
}

// Sets or clears a bit of a word and says whether it was set. On x86 that is one instruction, which
// also takes the bit modulo 64; the compiler makes four of it (malloc and free of 48 bytes: 84
// instructions without these, 75 with).
PMA_INLINE bool bits_test_clear(uint64_t *word, uint64_t bit) {
#ifdef __x86_64__
    bool was;
    __asm__("btrq %2, %0" : "+r"(*word), "=@ccc"(was) : "r"(bit));
    return was;
#else
    uint64_t mask = (uint64_t)1 << (bit & 63);
    bool was = (*word & mask) != 0;
    *word &= ~mask;
    return was;
#endif
}

PMA_INLINE uint64_t bits_set(uint64_t word, uint64_t bit) {
#ifdef __x86_64__
    __asm__("btsq %1, %0" : "+r"(word) : "r"(bit) : "cc");
    return word;
#else
    return word | (uint64_t)1 << (bit & 63);
#endif
}

// Sets bits of a word in memory that only the calling thread writes, and others may read at any
// time: one instruction on x86, where the compiler would load and store.
PMA_INLINE void bits_add(uint64_t *word, uint64_t bits) {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    __asm__("orq %1, %0" : "+m"(*word) : "r"(bits) : "cc");
#else
    __atomic_store_n(word, *word | bits, __ATOMIC_RELAXED);
#endif
}

// Changes bits of a word in memory that only the calling thread knows.
PMA_INLINE void bits_flip(uint64_t *word, uint64_t bits) {
#ifdef __x86_64__
    __asm__("xorq %1, %0" : "+m"(*word) : "r"(bits) : "cc");
#else
    *word ^= bits;
#endif
}

// The product's high half; the low half goes to *low. Left to itself, gcc 12 keeps the pair in
// registers that free would have to save, and loads *b into one more.
PMA_INLINE uint64_t multiply_high(uint64_t a, const uint64_t *b, uint64_t *low) {
#ifdef __x86_64__
    uint64_t high;
    __asm__("mulq %3" : "=a"(*low), "=d"(high) : "0"(a), "m"(*b) : "cc");
    return high;
#elif !defined(__SIZEOF_INT128__)
    // A 32-bit port: a is the distance of two addresses there, so two products do.
    uint64_t lower = (uint64_t)(uint32_t)a * (uint32_t)*b;
    uint64_t upper = (uint64_t)(uint32_t)a * (uint32_t)(*b >> 32) + (lower >> 32);
    *low = upper << 32 | (uint32_t)lower;
    return upper >> 32;
#else
    unsigned __int128 product = (unsigned __int128)a * *b;
    *low = (uint64_t)product;
    return (uint64_t)(product >> 64);
#endif
}

// Without a popcount instruction gcc calls a library function, which saves registers; this is a
// dozen operations.
PMA_INLINE unsigned bits_count(uint64_t word) {
#ifdef __POPCNT__
    return (unsigned)__builtin_popcountll(word);
#else
    word -= word >> 1 & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + (word >> 2 & 0x3333333333333333u);
    word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (unsigned)(word * 0x0101010101010101u >> 56);
#endif
}

// The smallest e with 1 << e >= n.
PMA_INLINE unsigned log2_up(size_t n) {
    return n <= 1 ? 0 : bits_highest(n - 1) + 1;
}

// Makes one value of another, if the byte has that; what was written before is seen by whoever
// reads the new one. Some ports (riscv64) change whole words only: there the word around the byte
// is, whose lowest byte comes first.
PMA_INLINE bool byte_change(uint8_t *byte, uint8_t from, uint8_t to) {
#if defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_1) || !defined(__riscv)
    return __atomic_compare_exchange_n(byte, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
#else
    typedef uint32_t __attribute__((may_alias)) any_word;
    unsigned shift = (unsigned)((uintptr_t)byte & 3) * 8;
    any_word *word = (any_word *)((uintptr_t)byte & ~(uintptr_t)3);
    any_word seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    do {
        if ((uint8_t)(seen >> shift) != from) {
            return false;
        }
    } while (!__atomic_compare_exchange_n(
        word, &seen, (seen & ~((uint32_t)0xff << shift)) | (uint32_t)to << shift, false,
        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    return true;
#endif
}

#endif

// tune.h - every compile-time number, with its unit and its reason.
//
// Owns the constants and their assertions; knows nothing but base.h. A number that a user may want
// to change at run time does not belong here but into options.def.
#ifndef PMA_TUNE_H
#define PMA_TUNE_H

#include "base.h"

// ---- addresses

// The page map's unit. Smaller than any page of Linux's 64-bit ports, so one map serves them all.
#define PMA_GRANULE_SHIFT 12
#define PMA_GRANULE ((size_t)1 << PMA_GRANULE_SHIFT)
// The largest page of any Linux port.
#define PMA_PAGE_MAX ((size_t)1 << 16)
#if UINTPTR_MAX > UINT32_MAX
// User addresses stay below this bit even where the kernel has more: engines keep tags above it.
#define PMA_ADDRESS_BITS 47
// Nothing is placed below 4 GiB by choice: old engines need that space. And nothing in the last
// quarter: the stack and the libraries lie there.
#define PMA_ADDRESS_LOWEST ((uintptr_t)1 << 32)
#define PMA_ADDRESS_HIGHEST ((uintptr_t)3 << (PMA_ADDRESS_BITS - 2))
// Places stay away from the end of what one leaf of the page map covers: a second leaf would cost
// address space.
#define PMA_PLACE_CLEAR ((uintptr_t)1 << 29)
#else
// Between a program at 128 MiB, which grows upwards, and what the kernel places itself, from 1.3
// GiB on: small mappings at random places all over 32 bits would leave no room for large ones.
#define PMA_ADDRESS_BITS 32
#define PMA_ADDRESS_LOWEST ((uintptr_t)1 << 28)
#define PMA_ADDRESS_HIGHEST ((uintptr_t)1 << 30)
#define PMA_PLACE_CLEAR ((uintptr_t)0)
#endif
// A leaf of the page map covers 1 GiB: 2^18 entries of 8 bytes, 2 MiB of address space (4 bytes, 1
// MiB on 32 bits).
#define PMA_LEAF_SHIFT 30

// No block is larger: its pages, and the bytes that it says may be used, stay below PTRDIFF_MAX.
#define PMA_REQUEST_MAX ((size_t)PTRDIFF_MAX & ~(PMA_PAGE_MAX - 1))

// True for addresses that the page map covers.
PMA_INLINE bool is_user_address(uintptr_t address) {
    return (uint64_t)address >> PMA_ADDRESS_BITS == 0;
}

// ---- classes

#define PMA_SLOT_MIN 16
// Slots end here, runs begin. Above, the page's rounding is at most 1/8 even for the first size.
#define PMA_SLOT_MAX 32768
// Two tables of bins: by 16 bytes up to here, by 64 above.
#define PMA_FINE_MAX 1024
// Slabs that a bin has had, less one for each second, when it is split: small slots double their
// slabs each time and have 124 KiB then; larger ones have had 6 of them. The second time a bin has
// had some 180 KiB.
#define PMA_SPLIT_SMALL 5
#define PMA_SPLIT 6
#define PMA_SPLIT_AGAIN 12

// ---- slabs

// A 64-bit summary says which words have room, so a slab has at most 64.
#define PMA_SLAB_WORDS_MAX 64
// Slabs of small slots double up to this many bytes; above, a slab is one word.
#define PMA_SLAB_BYTES_MAX ((size_t)1 << 16)

// A word's bytes at first; it doubles with the slabs of its class. At least two slots, at most 64.
#define PMA_WORD_BYTES ((size_t)8 << 10)
#define PMA_SHIFT_MAX 5
// A word of slots above 1 KiB stays below this.
#define PMA_WORD_BYTES_LARGE ((size_t)32 << 10)
// After so many refills from words that are shorter than this the class gets longer ones, though it
// has few slots: a longer window is refilled less often, and a program that asks that often does
// not mind the pages.
#define PMA_HEAT_REFILLS 32
#define PMA_WORD_BYTES_HOT ((size_t)16 << 10)

// ---- address space

// The page map's leaves become writable in pieces of 64 KiB, 32 MiB of heap each: little VmData for
// small programs.
#define PMA_LEAF_PIECE ((size_t)1 << 16)
// A heap that grows prepares the page map ahead by this fraction of its size, for fewer calls:
// 1/1024 of the heap.
#define PMA_LEAF_AHEAD 2
// An expansion of the heap is at least 2^N pages at the N-th time until it reaches this size: below
// 6 MiB of heap a larger step would be more than the 5 % of writable-but-unused memory that
// bench/pagewaste allows.
#define PMA_STEP_MAX ((size_t)1 << 17)
// Later expansions are this fraction of what is committed: at most 1/80 = 1.25 % is ahead of use
// while one thread allocates.
#define PMA_STEP_FRACTION 80
// With several threads a step is one for which others may have to wait, and the next one is taken
// when one of it is left. So steps begin with more, rise faster, by an eighth of what is committed,
// to a size that the other threads need some milliseconds to use up, and stay there until they are
// 1/128 of the heap: at 2 GiB between 1.2 and 2.3 % is ahead of use.
#define PMA_STEP_MIN_SHARED ((size_t)1 << 20)
#define PMA_STEP_RISE_SHARED 8
#define PMA_STEP_MAX_SHARED ((size_t)24 << 20)
#define PMA_STEP_FRACTION_SHARED 128
// A region begins with this much PROT_NONE, or what is needed.
#define PMA_RESERVE_MIN ((size_t)1 << 20)
// Tries for a free place at a random address before the kernel may choose one.
#define PMA_PLACE_TRIES 4
// Memory for descriptors: the least that is reserved and committed at a time, and the fractions of
// the sum beyond.
#define PMA_META_RESERVE ((size_t)1 << 19)
#define PMA_META_COMMIT ((size_t)1 << 15)
#define PMA_META_RESERVE_FRACTION 1
#define PMA_META_COMMIT_FRACTION 2
// With several threads, who would wait for each other, both are at least so large, and a step is
// taken when half of one is left.
#define PMA_META_RESERVE_SHARED ((size_t)4 << 20)
#define PMA_META_COMMIT_SHARED ((size_t)1 << 18)

// ---- page heap

// So many shards for each processor, and at most so many: 8 threads on two processors that allocate
// 2 GiB under strace made 472 to 534 calls with one each, for they met at its lock, and 426 to 455
// with two.
#define PMA_SHARDS_EACH 2
#define PMA_SHARDS_MAX 16
// Free runs up to this many pages have a list for each count; above, eight lists per doubling.
#define PMA_EXACT_PAGES 128
// How many equal runs a random choice looks at.
#define PMA_CHOICES 16
// Free dirty memory may not exceed this many bytes, nor the fraction of what is live, whichever is
// more.
#define PMA_DIRTY_MIN ((size_t)16 << 20)
#define PMA_DIRTY_FRACTION 8
// Dirty runs that lay unused for this long (nanoseconds) go back at the next occasion.
#define PMA_DIRTY_AGE 1000000000u
// Readings of the clock closer than this (nanoseconds; its own step is 4 ms with most kernels) show
// a thread that allocates without pause: twice as many refills pass until the next, up to
// PMA_CLOCK_WAIT. So many slabs noticed between two refills end that wait.
#define PMA_CLOCK_STEP 10000000u
#define PMA_CLOCK_WAIT 255
// Readings so far apart (nanoseconds) show a thread that makes few calls: it gets 16 slots at a
// time and not 64, and so looks at the clock in time to give back what it freed a second ago.
#define PMA_CLOCK_QUIET 150000000u
// Refills of a new thread until its first reading: many threads do not live as long.
#define PMA_CLOCK_FIRST 15
#define PMA_NOTICES 4
// Runs purged in one batch: the lock is not held meanwhile, so they are out of reach for others.
#define PMA_PURGE_BATCH 32
// Free runs from this size on are not only purged but closed, PROT_NONE: they count neither as
// VmData nor against strict overcommit. Smaller ones would cost more mappings than they are worth.
#define PMA_CLOSE_MIN ((size_t)1 << 20)
// Stretches of free small slots from this size on are dropped when a slab is nearly empty: a call
// to the kernel should pay for itself.
#define PMA_DROP_MIN ((size_t)1 << 14)
// Run descriptors taken from metadata memory at a time.
#define PMA_RUN_BATCH 32

// ---- large and huge blocks

// Blocks of this size and more have a mapping of their own.
#define PMA_HUGE_MIN ((size_t)1 << 20)
// Large blocks start at a random multiple of this, inside the slack of their last page.
#define PMA_COLOUR 64
// Runs that an arena keeps for reuse, and the most bytes they may hold together at first and at
// last.
#define PMA_CACHE_RUNS 16
#define PMA_CACHE_MIN ((size_t)1 << 16)
#define PMA_CACHE_MAX ((size_t)1 << 21)
// Huge blocks kept for reuse, and which fraction of what is live they may be, if that is more than
// PMA_DIRTY_MIN.
#define PMA_HUGE_CACHE 16
#define PMA_HUGE_FRACTION 4

// ---- entropy

// Draws prepared at once. 512 bytes of the stream, so that a draw's share of a refill is a few
// instructions.
#define PMA_STREAM_DRAWS 1024

// 1 in a library that is built for bench/schipper alone: half of the draws are thrown away, as if
// each took a byte of the stream, to show what the nibble saves.
#ifndef PMA_BENCH_BYTE_DRAWS
#define PMA_BENCH_BYTE_DRAWS 0
#endif

_Static_assert(PMA_SLOT_MIN == 16, "every slot is 16-byte aligned, as max_align_t asks");

#endif

// meta.h - memory for descriptors, out of reach of overflows from user memory.
//
// Owns address space of its own at random places, with an inaccessible page before and behind each
// stretch. What is taken is zeroed, never given back here, and recycled only by its taker as the
// same thing. One lock guards growing and is held across the calls to the kernel, another what is
// handed out. It must not know what is stored.
#ifndef PMA_META_H
#define PMA_META_H

#include "base.h"

struct lock;

enum meta_kind {
    META_KEPT,  // a forked child has it as it was
    META_WIPED, // a forked child sees zero, where the kernel can do that
    META_KINDS
};

// NULL: no memory. The alignment is a power of two, at most PMA_APART.
void *pma_meta_take(enum meta_kind kind, size_t size, size_t alignment);

// Bytes taken and committed so far.
size_t pma_meta_committed(void);

// False if the kernel could not promise to wipe META_WIPED memory in a child.
bool pma_meta_is_wiped(void);

// Its locks, for fork; the growth lock comes first.
struct lock *pma_meta_growth_lock(void);
struct lock *pma_meta_lock(void);

#endif

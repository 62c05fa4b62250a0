// sized.c - whether the size that a program tells when it frees can be the one it asked for.
#include <config.h>

#include "sized.h"

#include "class.h"
#include "fatal.h"
#include "os.h"

#include <string.h>

// Atomic. A block could not be made to fit for want of memory: from then on a size may be smaller
// than its block's, since a correct program must never die.
static uint32_t some_are_larger;

// A slot is what pma_alloc_aligned_quiet would choose. A run has as many pages as the size needs,
// less what the block was moved within the last one.
static bool is_fit(size_t usable, size_t alignment, size_t size) {
    size_t room = alignment <= PMA_SLOT_MIN ? 1 : (size_t)1 << log2_up(alignment);
    size_t rounded = room > PMA_SLOT_MIN ? align_up(size_max(size, 1), room) : size;
    if (rounded > PMA_SLOT_MAX || room > pma_page_size) {
        return usable >= size && usable - size < pma_page_size + (size == 0);
    }
    if (rounded == 0) {
        return usable == 0;
    }
    // An arena knows how many classes it had when the block was taken; here any number will do.
    for (enum grade grade = GRADE_COARSE; grade < GRADES; grade++) {
        if (usable == class_size(class_of(align_up(rounded, pma_class_step(rounded, grade))))) {
            return true;
        }
    }
    return false;
}

void pma_sized_judge(const char *call, const void *block, size_t alignment, size_t size) {
    size_t usable = pma_alloc_usable(call, block);
    bool may_be_larger = __atomic_load_n(&some_are_larger, __ATOMIC_RELAXED) != 0;
    if (size > PTRDIFF_MAX || alignment > PTRDIFF_MAX ||
        (!is_fit(usable, alignment, size) && (!may_be_larger || size > usable))) {
        pma_fatal(call, "wrong size", (struct fatal_block){ block, usable, -1 });
    }
}

void *pma_sized_fit(const char *call, void *block, size_t size) {
    if (is_fit(pma_alloc_usable(call, block), PMA_SLOT_MIN, size)) {
        return block;
    }
    void *moved = pma_alloc_aligned_quiet(PMA_SLOT_MIN, size);
    if (moved == NULL) {
        __atomic_store_n(&some_are_larger, 1, __ATOMIC_RELAXED);
        return block;
    }
    memcpy(moved, block, size);
    pma_alloc_free(call, block);
    return moved;
}

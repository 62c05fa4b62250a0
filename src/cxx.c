// cxx.c - operators new and delete.
#include <config.h>

#include "cxx.h"

#include "fatal.h"
#include "malloc.h"
#include "tune.h"

#include <errno.h>

const char pma_link_cxx = 1;
__attribute__((used)) static const char *const links[] = { &pma_link_alloc, &pma_link_malloc,
                                                           &pma_link_extra };

// std::get_new_handler() and std::__throw_bad_alloc() of the GNU C++ library.
typedef void (*new_handler)(void);
extern new_handler get_new_handler(void) __asm__("_ZSt15get_new_handlerv") __attribute__((weak));
extern _Noreturn void throw_bad_alloc(void) __asm__("_ZSt17__throw_bad_allocv")
    __attribute__((weak));

static void *take(size_t size, size_t alignment) {
    return alignment <= PMA_SLOT_MIN ? PMA_NAME(malloc)(size) : pma_alloc_aligned(alignment, size);
}

// The new-handler makes room, or throws, or gives up by not being there.
static void *retry(size_t size, size_t alignment) {
    void *block = NULL;
    while (block == NULL && get_new_handler != NULL) {
        new_handler handler = get_new_handler();
        if (handler == NULL) {
            break;
        }
        handler();
        block = take(size, alignment);
    }
    return block;
}

PMA_COLD static void *retry_or_throw(size_t size, size_t alignment) {
    void *block = retry(size, alignment);
    if (block != NULL) {
        return block;
    }
    if (throw_bad_alloc != NULL) {
        throw_bad_alloc();
    }
    pma_fatal("operator new", "no memory, and no C++ library to throw",
              (struct fatal_block){ NULL, size, -1 });
}

static void *new_throwing(size_t size, size_t alignment) {
    void *block = take(size, alignment);
    return likely(block != NULL) ? block : retry_or_throw(size, alignment);
}

void *PMA_NAME(_Znwm)(size_t size) {
    return new_throwing(size, PMA_SLOT_MIN);
}

void *PMA_NAME(_Znam)(size_t size) {
    return new_throwing(size, PMA_SLOT_MIN);
}

void *PMA_NAME(_ZnwmSt11align_val_t)(size_t size, size_t alignment) {
    return new_throwing(size, alignment);
}

void *PMA_NAME(_ZnamSt11align_val_t)(size_t size, size_t alignment) {
    return new_throwing(size, alignment);
}

static void *new_nothrow(size_t size, size_t alignment) {
    void *block = take(size, alignment);
    return likely(block != NULL) ? block : retry(size, alignment);
}

void *PMA_NAME(_ZnwmRKSt9nothrow_t)(size_t size, const struct nothrow *nothrow) {
    (void)nothrow;
    return new_nothrow(size, PMA_SLOT_MIN);
}

void *PMA_NAME(_ZnamRKSt9nothrow_t)(size_t size, const struct nothrow *nothrow) {
    (void)nothrow;
    return new_nothrow(size, PMA_SLOT_MIN);
}

void *PMA_NAME(_ZnwmSt11align_val_tRKSt9nothrow_t)(size_t size, size_t alignment,
                                                   const struct nothrow *nothrow) {
    (void)nothrow;
    return new_nothrow(size, alignment);
}

void *PMA_NAME(_ZnamSt11align_val_tRKSt9nothrow_t)(size_t size, size_t alignment,
                                                   const struct nothrow *nothrow) {
    (void)nothrow;
    return new_nothrow(size, alignment);
}

// ---- delete: the block's own descriptor knows its size and alignment, so the hints are not needed

void PMA_NAME(_ZdlPv)(void *block) {
    pma_alloc_free("operator delete", block);
}

void PMA_NAME(_ZdaPv)(void *block) {
    pma_alloc_free("operator delete[]", block);
}

void PMA_NAME(_ZdlPvm)(void *block, size_t size) {
    (void)size;
    pma_alloc_free("operator delete", block);
}

void PMA_NAME(_ZdaPvm)(void *block, size_t size) {
    (void)size;
    pma_alloc_free("operator delete[]", block);
}

void PMA_NAME(_ZdlPvRKSt9nothrow_t)(void *block, const struct nothrow *nothrow) {
    (void)nothrow;
    pma_alloc_free("operator delete", block);
}

void PMA_NAME(_ZdaPvRKSt9nothrow_t)(void *block, const struct nothrow *nothrow) {
    (void)nothrow;
    pma_alloc_free("operator delete[]", block);
}

void PMA_NAME(_ZdlPvSt11align_val_t)(void *block, size_t alignment) {
    (void)alignment;
    pma_alloc_free("operator delete", block);
}

void PMA_NAME(_ZdaPvSt11align_val_t)(void *block, size_t alignment) {
    (void)alignment;
    pma_alloc_free("operator delete[]", block);
}

void PMA_NAME(_ZdlPvSt11align_val_tRKSt9nothrow_t)(void *block, size_t alignment,
                                                   const struct nothrow *nothrow) {
    (void)alignment;
    (void)nothrow;
    pma_alloc_free("operator delete", block);
}

void PMA_NAME(_ZdaPvSt11align_val_tRKSt9nothrow_t)(void *block, size_t alignment,
                                                   const struct nothrow *nothrow) {
    (void)alignment;
    (void)nothrow;
    pma_alloc_free("operator delete[]", block);
}

void PMA_NAME(_ZdlPvmSt11align_val_t)(void *block, size_t size, size_t alignment) {
    (void)size;
    (void)alignment;
    pma_alloc_free("operator delete", block);
}

void PMA_NAME(_ZdaPvmSt11align_val_t)(void *block, size_t size, size_t alignment) {
    (void)size;
    (void)alignment;
    pma_alloc_free("operator delete[]", block);
}

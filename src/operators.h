// operators.h - the plain operators new and delete, and those that the process has instead.
//
// Owns the addresses to which the public names of the plain operators lead: ours, or those of a
// program that brings its own. They are written in a file that defines none of them, so that the
// dynamic linker decides and no compiler. It must not know what the operators do.
#ifndef PMA_OPERATORS_H
#define PMA_OPERATORS_H

#include "alloc.h"
#include "base.h"

// Where size_t is unsigned int the names have a j for it.
#if UINTPTR_MAX == UINT32_MAX
#define _Znwm _Znwj
#define _Znam _Znaj
#define _ZnwmRKSt9nothrow_t _ZnwjRKSt9nothrow_t
#define _ZnamRKSt9nothrow_t _ZnajRKSt9nothrow_t
#define _ZnwmSt11align_val_t _ZnwjSt11align_val_t
#define _ZnamSt11align_val_t _ZnajSt11align_val_t
#define _ZnwmSt11align_val_tRKSt9nothrow_t _ZnwjSt11align_val_tRKSt9nothrow_t
#define _ZnamSt11align_val_tRKSt9nothrow_t _ZnajSt11align_val_tRKSt9nothrow_t
#define _ZdlPvm _ZdlPvj
#define _ZdaPvm _ZdaPvj
#define _ZdlPvmSt11align_val_t _ZdlPvjSt11align_val_t
#define _ZdaPvmSt11align_val_t _ZdaPvjSt11align_val_t
#endif

PMA_EXPORT void *PMA_NAME(_Znwm)(size_t size);
PMA_EXPORT void *PMA_NAME(_Znam)(size_t size);
PMA_EXPORT void *PMA_NAME(_ZnwmSt11align_val_t)(size_t size, size_t alignment);
PMA_EXPORT void *PMA_NAME(_ZnamSt11align_val_t)(size_t size, size_t alignment);
PMA_EXPORT void PMA_NAME(_ZdlPv)(void *block);
PMA_EXPORT void PMA_NAME(_ZdaPv)(void *block);
PMA_EXPORT void PMA_NAME(_ZdlPvSt11align_val_t)(void *block, size_t alignment);
PMA_EXPORT void PMA_NAME(_ZdaPvSt11align_val_t)(void *block, size_t alignment);

struct operators {
    void *(*new)(size_t size);
    void *(*new_array)(size_t size);
    void *(*new_aligned)(size_t size, size_t alignment);
    void *(*new_array_aligned)(size_t size, size_t alignment);
    void (*delete)(void *block);
    void (*delete_array)(void *block);
    void (*delete_aligned)(void *block, size_t alignment);
    void (*delete_array_aligned)(void *block, size_t alignment);
};

extern const struct operators pma_operators;

#endif

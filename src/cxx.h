// cxx.h - operators new and delete, all twenty, by the names of the Itanium C++ ABI where size_t is
// unsigned long.
//
// Owns what C++ asks beyond malloc: on failure the new-handler is called until it gives up, and
// then bad_alloc is thrown, or nothing comes back. All that belongs to the C++ library of the
// process, which is reached by weak references: a C program has none.
#ifndef PMA_CXX_H
#define PMA_CXX_H

#include "alloc.h"
#include "base.h"
#include "operators.h"

// std::nothrow_t and std::align_val_t as a C function sees them.
struct nothrow;

PMA_EXPORT void *PMA_NAME(_ZnwmRKSt9nothrow_t)(size_t size, const struct nothrow *nothrow);
PMA_EXPORT void *PMA_NAME(_ZnamRKSt9nothrow_t)(size_t size, const struct nothrow *nothrow);
PMA_EXPORT void *PMA_NAME(_ZnwmSt11align_val_tRKSt9nothrow_t)(size_t size, size_t alignment,
                                                              const struct nothrow *nothrow);
PMA_EXPORT void *PMA_NAME(_ZnamSt11align_val_tRKSt9nothrow_t)(size_t size, size_t alignment,
                                                              const struct nothrow *nothrow);
PMA_EXPORT void PMA_NAME(_ZdlPvm)(void *block, size_t size);
PMA_EXPORT void PMA_NAME(_ZdaPvm)(void *block, size_t size);
PMA_EXPORT void PMA_NAME(_ZdlPvRKSt9nothrow_t)(void *block, const struct nothrow *nothrow);
PMA_EXPORT void PMA_NAME(_ZdaPvRKSt9nothrow_t)(void *block, const struct nothrow *nothrow);
PMA_EXPORT void PMA_NAME(_ZdlPvSt11align_val_tRKSt9nothrow_t)(void *block, size_t alignment,
                                                              const struct nothrow *nothrow);
PMA_EXPORT void PMA_NAME(_ZdaPvSt11align_val_tRKSt9nothrow_t)(void *block, size_t alignment,
                                                              const struct nothrow *nothrow);
PMA_EXPORT void PMA_NAME(_ZdlPvmSt11align_val_t)(void *block, size_t size, size_t alignment);
PMA_EXPORT void PMA_NAME(_ZdaPvmSt11align_val_t)(void *block, size_t size, size_t alignment);

// What the unwinder asks about the frame in which nothrow forms call the new-handler. Only the
// unwind tables name it; the numbers are the Itanium C++ ABI's.
int pma_cxx_personality(int version, int actions, uint64_t class, void *exception,
                        const void *context);

#endif

// loader.h - calls of the C library that come before its own: what would lead past this heap, or
// into its locks.
#ifndef PMA_LOADER_H
#define PMA_LOADER_H

#include "alloc.h"
#include "base.h"

// Without RTLD_DEEPBIND, which makes a module look for each name in its own libraries before the
// program's. The C library is one of them: such a module frees with the C library's free what the
// program got from here. No entry point of malloc can help that, since none is called.
PMA_EXPORT void *PMA_NAME(dlopen)(const char *file, int flags);

// What pthread_atfork calls. Handlers run in an order, and those that are registered before this
// library's run while it holds its locks: they would wait for ever for memory. Constructors of
// other libraries often run first, so the first of them registers this library's.
PMA_EXPORT int PMA_NAME(__register_atfork)(void (*prepare)(void), void (*parent)(void),
                                           void (*child)(void), void *library);

// Of the archive's member, which cxx.c brings along.
extern const char pma_link_loader;

#endif

// loader.h - dlopen, without the flag that would lead a module past this heap.
//
// RTLD_DEEPBIND makes a module look for each name in its own libraries before the program's. The C
// library is one of them: such a module frees with the C library's free what the program got from
// here. No entry point of malloc can help that, since none is called.
#ifndef PMA_LOADER_H
#define PMA_LOADER_H

#include "alloc.h"
#include "base.h"

PMA_EXPORT void *PMA_NAME(dlopen)(const char *file, int flags);

#endif

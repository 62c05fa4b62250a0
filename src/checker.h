// checker.h - is there a checker that has taken malloc and free away from us?
//
// Owns nothing. Valgrind replaces the names of the family that it knows by its own, wherever they
// are: a preloaded or linked pamalloc needs no word to it for that. The names that it does not know
// stay ours, and would mix two heaps in one program: where it runs they lead to those that it has
// taken. Asking costs some instructions, so the names that it knows do not ask.
#ifndef PMA_CHECKER_H
#define PMA_CHECKER_H

#include "alloc.h"
#include "base.h"

#if PMA_VALGRIND && PMA_PUBLIC
#include <valgrind/valgrind.h>
#endif

PMA_INLINE bool checker_is_there(void) {
// Under names of our own nothing is taken.
#if PMA_VALGRIND && PMA_PUBLIC
    return RUNNING_ON_VALGRIND != 0;
#else
    return false;
#endif
}

// A public function by its address, which is what a checker replaces: the compiler must not put its
// body in the place of the call.
#define checker_taken(function) \
    __extension__({ \
        __typeof__(&(function)) taken = (function); \
        __asm__("" : "+r"(taken)); \
        taken; \
    })

#endif

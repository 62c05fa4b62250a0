// options.h - what a user may choose when the program starts.
//
// Owns the options, which are const after init and lie on a page that the loader closed to writing.
// They come from three places, and the later one wins: the system's file, the program's own string
// pamalloc_options, and the environment's PAMALLOC_OPTIONS, which is not looked at in a program
// that has more rights than its caller. It must not know who asks for them.
#ifndef PMA_OPTIONS_H
#define PMA_OPTIONS_H

#include "base.h"

// The words of the choices, in the order of options.def.
enum { SIZED_TOLERATE, SIZED_STRICT };
enum { REALLOC_ZERO_FREE, REALLOC_ZERO_KEEP };

struct options {
#define OPTION(name, type, initial, least, greatest, words, sentence) uint64_t name;
#include "options.def"
#undef OPTION
};

// Written by nobody but pma_options_init.
extern struct options pma_options;

void pma_options_init(void);

#endif

// options.h - what a user may choose when the program starts.
//
// Owns the parsed options, which are const after init. They are read from the environment's
// PAMALLOC_OPTIONS, unless the program runs with more rights than its caller, as
// name=value,name,... It must not know who asks for them.
#ifndef PMA_OPTIONS_H
#define PMA_OPTIONS_H

#include "base.h"

struct options {
#define OPTION(name, type, initial, least, greatest, sentence) uint64_t name;
#include "options.def"
#undef OPTION
};

extern struct options pma_options;

void pma_options_init(void);

#endif

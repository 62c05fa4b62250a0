// verify.h - walks the heap and checks every equation of the headers.
//
// Owns nothing. It is for the test build and for debugging, while no other thread allocates: it
// looks at everything without a lock. The first thing that does not hold ends the program.
#ifndef PMA_VERIFY_H
#define PMA_VERIFY_H

#include "base.h"

void pma_verify(void);

#endif

// report.h - the heap's state as text.
//
// Owns the form of malloc_stats and malloc_info. Numbers are collected first, without a lock;
// nothing is held while text is written, and nothing here allocates unless the stream does.
#ifndef PMA_REPORT_H
#define PMA_REPORT_H

#include "base.h"

#include <stdio.h>

// To a descriptor, by write(2).
void pma_report_text(int descriptor);

// XML whose root element is the C library's, so that what reads the one can read the other.
void pma_report_xml(FILE *stream);

#endif

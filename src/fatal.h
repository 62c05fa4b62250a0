// fatal.h - the one way to die.
//
// Owns nothing and takes no lock. It must know nothing of the heap: a message is formatted into a
// buffer on the stack, sent with one write(2), and then comes abort(). Nothing here allocates, and
// no lock of ours may be held by the caller, since a handler for SIGABRT may allocate before it
// ends the process.
#ifndef PMA_FATAL_H
#define PMA_FATAL_H

#include "base.h"

// What is known of the block at fault; a field that is not known stays zero (slot: -1).
struct fatal_block {
    const void *pointer;
    size_t size;    // its class, or the size of its run, in bytes
    ptrdiff_t slot; // its number in the slab
};

// Prints "pamalloc: CALL(): WHAT: 0xPOINTER (size N, slot M) [seed S]" and aborts. CALL is the
// public function that the program called, WHAT one of the sentences of doc/design.md, "Messages".
PMA_COLD _Noreturn void pma_fatal(const char *call, const char *what, struct fatal_block block);

// Told by init, printed with every fatal message, so that a layout can be met again with seed=.
void pma_fatal_set_seed(uint64_t seed);

// A line of text put together without stdio: text is cut, never overrun, when the buffer is full.
struct fatal_line {
    char text[240];
    size_t length;
};

void pma_line_text(struct fatal_line *line, const char *text);
void pma_line_decimal(struct fatal_line *line, uint64_t number);
void pma_line_hex(struct fatal_line *line, uint64_t number);
// Bytes as options have them: with K, M, G or T behind the number where it is a multiple.
void pma_line_size(struct fatal_line *line, uint64_t size);
// The newline, which is there even if the text was cut.
void pma_line_end(struct fatal_line *line);
void pma_line_write(struct fatal_line *line, int descriptor);

#endif

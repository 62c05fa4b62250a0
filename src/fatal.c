// fatal.c - the one way to die.
//
// Owns the seed that messages print, and the count of deaths. It takes no lock, allocates nothing,
// and must know nothing of the heap.
#include <config.h>

#include "base.h"
#include "fatal.h"
#include "os.h"

#include <stdlib.h>
#include <unistd.h>

// A program's handler for SIGABRT may make the same mistake again, which would come back here
// without end.
#define DEATHS_MAX 16

static uint64_t seed;   // atomic; written once by init
static uint32_t deaths; // atomic; fatal messages so far

void pma_fatal_set_seed(uint64_t new_seed) {
    __atomic_store_n(&seed, new_seed, __ATOMIC_RELAXED);
}

// ---- lines

void pma_line_text(struct fatal_line *line, const char *text) {
    while (*text != '\0' && line->length < sizeof(line->text)) {
        line->text[line->length++] = *text++;
    }
}

// At least width digits, with zeroes in front.
static void line_number(struct fatal_line *line, uint64_t number, unsigned base, unsigned width) {
    char digits[24];
    char *first = digits + sizeof(digits) - 1;
    *first = '\0';
    while (number != 0 || width > 0) {
        *--first = "0123456789abcdef"[number % base];
        number /= base;
        width = width > 0 ? width - 1 : 0;
    }
    pma_line_text(line, first);
}

void pma_line_decimal(struct fatal_line *line, uint64_t number) {
    line_number(line, number, 10, 1);
}

void pma_line_hex(struct fatal_line *line, uint64_t number) {
    pma_line_text(line, "0x");
    line_number(line, number, 16, 1);
}

void pma_line_size(struct fatal_line *line, uint64_t size) {
    static const char units[5][2] = { "", "K", "M", "G", "T" };
    unsigned unit = 0;
    while (unit < 4 && size != 0 && size % 1024 == 0) {
        size /= 1024;
        unit++;
    }
    pma_line_decimal(line, size);
    pma_line_text(line, units[unit]);
}

// A line that was cut still ends as a line.
void pma_line_end(struct fatal_line *line) {
    line->length = size_min(line->length, sizeof(line->text) - 1);
    line->text[line->length++] = '\n';
}

void pma_line_write(struct fatal_line *line, int descriptor) {
    pma_os_write(descriptor, line->text, line->length);
}

// ---- messages

static void line_block(struct fatal_line *line, struct fatal_block block) {
    if (block.pointer != NULL) {
        pma_line_text(line, ": ");
        pma_line_hex(line, (uintptr_t)block.pointer);
    }
    if (block.size == 0) {
        return;
    }
    pma_line_text(line, " (size ");
    pma_line_decimal(line, block.size);
    if (block.slot >= 0) {
        pma_line_text(line, ", slot ");
        pma_line_decimal(line, (uint64_t)block.slot);
    }
    pma_line_text(line, ")");
}

// A program may have put its own function in abort's place, one that comes back; an instruction
// that is not one cannot be replaced. The pointer hides from the compiler what it knows of abort:
// it would let a call of it that returns run into whatever code comes next.
static _Noreturn void die(void) {
    if (__atomic_add_fetch(&deaths, 1, __ATOMIC_RELAXED) <= DEATHS_MAX) {
        void (*volatile end)(void) = abort;
        end();
    }
    for (;;) {
        __builtin_trap();
    }
}

void pma_fatal(const char *call, const char *what, struct fatal_block block) {
    struct fatal_line line = { .length = 0 };
    pma_line_text(&line, "pamalloc: ");
    pma_line_text(&line, call);
    pma_line_text(&line, "(): ");
    pma_line_text(&line, what);
    line_block(&line, block);
    pma_line_text(&line, " [seed 0x");
    line_number(&line, __atomic_load_n(&seed, __ATOMIC_RELAXED), 16, 16);
    pma_line_text(&line, "]");
    pma_line_end(&line);
    pma_line_write(&line, STDERR_FILENO);
    die();
}

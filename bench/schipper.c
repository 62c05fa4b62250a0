// schipper.c - what does a draw cost where little else does?
//
//     schipper [ROUNDS]         512
//
// There are 8 rows of 16,384 pointers. In step i of a round, 0 to 7, row i is filled with blocks of
// 1 << i bytes, and then in every row k from i down to 0 the elements i, i + 8, i + 16, ... are
// freed. What is left is freed at the end of the round. So a round allocates and frees 131,072
// blocks of 1 to 128 bytes, and holes lie regularly in all of the heap while it grows. It is the
// load with which the saving of random bits in OpenBSD's malloc was measured; run it on the library
// and on its variant that uses a whole byte for every draw to see what the nibble saves.
//
// Printed: nanoseconds for a malloc and a free together, and the largest resident size.
//
// Not measured: use of the blocks, which are not written to.
#include "bench.h"

enum { ROWS = 8, COLUMNS = 16384 };

typedef void *row[COLUMNS];

static void row_fill(row *rows, unsigned step) {
    for (size_t column = 0; column < COLUMNS; column++) {
        rows[step][column] = malloc((size_t)1 << step);
        if (rows[step][column] == NULL) {
            bench_fail("no memory");
        }
    }
}

static void rows_thin(row *rows, unsigned step) {
    for (unsigned k = step + 1; k-- > 0;) {
        for (size_t column = step; column < COLUMNS; column += ROWS) {
            free(rows[k][column]);
            rows[k][column] = NULL;
        }
    }
}

static void rows_empty(row *rows) {
    for (unsigned k = 0; k < ROWS; k++) {
        for (size_t column = 0; column < COLUMNS; column++) {
            if (rows[k][column] != NULL) {
                free(rows[k][column]);
                rows[k][column] = NULL;
            }
        }
    }
}

int main(int argc, char **argv) {
    size_t rounds = bench_argument(argc, argv, 1, 512);
    if (rounds == 0) {
        bench_fail("usage: schipper [ROUNDS]");
    }
    row *rows = bench_map(ROWS * sizeof(*rows));
    struct watch started = watch_start();
    for (size_t i = 0; i < rounds; i++) {
        for (unsigned step = 0; step < ROWS; step++) {
            row_fill(rows, step);
            rows_thin(rows, step);
        }
        rows_empty(rows);
    }
    struct watch passed = watch_stop(started);

    struct line line;
    line_open(&line, "schipper");
    line_count(&line, "rounds", rounds);
    line_count(&line, "blocks", rounds * ROWS * COLUMNS);
    line_time(&line, &passed, rounds * ROWS * COLUMNS);
    line_count(&line, "peak", memory_read().peak);
    line_close(&line);
    return 0;
}

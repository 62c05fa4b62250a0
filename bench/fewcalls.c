// fewcalls.c - does a loop that needs no new memory leave the kernel alone?
//
//     fewcalls none                        nothing: what starting costs
//     fewcalls lone SIZE [TIMES]           100000: a block of SIZE bytes is allocated, written at both ends and freed
//     fewcalls grow FROM TO STEP           a block grows by realloc, in steps of so many bytes; what is new is written
//
// Printed: the time of one step, and page faults. The system calls are counted from outside:
// bench/run runs it under `strace -c` too, and takes off those of `fewcalls none`.
//
// Not measured: whether a block moved; a copy shows in the time and in the faults.
#include <sys/resource.h>

#include "bench.h"

static size_t lone(size_t size, size_t times) {
    for (size_t i = 0; i < times; i++) {
        char *volatile block = malloc(size);
        if (block == NULL) {
            bench_fail("no memory");
        }
        block[0] = 1;
        block[size - 1] = 1;
        free(block);
    }
    return times;
}

static size_t grow(size_t from, size_t to, size_t step) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t steps = 0;
    char *block = malloc(from);
    if (block == NULL) {
        bench_fail("no memory");
    }
    bench_touch(block, from, page);
    for (size_t size = from; size < to; size += step, steps++) {
        block = realloc(block, size + step);
        if (block == NULL) {
            bench_fail("no memory for %zu bytes", size + step);
        }
        bench_touch(block + size, step, page);
    }
    free(block);
    return steps;
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    size_t first = bench_argument(argc, argv, 2, 0);
    size_t second = bench_argument(argc, argv, 3, 100000);
    size_t third = bench_argument(argc, argv, 4, 0);
    struct line line;
    struct watch started = watch_start();
    size_t steps = 0;
    if (strcmp(mode, "none") == 0) {
        return 0;
    } else if (strcmp(mode, "lone") == 0 && first > 0) {
        steps = lone(first, second);
    } else if (strcmp(mode, "grow") == 0 && first > 0 && third > 0) {
        steps = grow(first, second, third);
    } else {
        bench_fail("usage: fewcalls none | lone SIZE [TIMES] | grow FROM TO STEP");
    }
    struct watch passed = watch_stop(started);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    line_open(&line, "fewcalls");
    line_word(&line, "mode", mode);
    line_count(&line, "first", first);
    line_count(&line, "second", second);
    line_count(&line, "third", third);
    line_count(&line, "steps", steps);
    line_time(&line, &passed, steps == 0 ? 1 : steps);
    line_count(&line, "faults", (size_t)usage.ru_minflt);
    line_close(&line);
    return 0;
}

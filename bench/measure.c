// measure.c - what did a program cost from its start to its end?
//
//     measure [-l LIBRARY] [-o FILE] PROGRAM ARGUMENTS...
//
// Runs the program, with the library preloaded if one is named (with nothing preloaded otherwise),
// and writes a line of JSON into FILE (the standard error without -o): time in milliseconds on the
// clock, in user mode and in the kernel, the largest resident size in bytes (of the program or of
// one of its children that it waited for), page faults, and how it ended. Exits as the program did.
//
// Why not from the script itself: a process's largest resident size counts from before its exec, so
// a child of an interpreter of 10 MB can never show less. This program's is below 2 MB.
#include <sys/resource.h>
#include <sys/wait.h>

#include "bench.h"

struct order {
    const char *library;
    const char *file;
    char **program;
};

static struct order order_read(int argc, char **argv) {
    struct order order = { NULL, NULL, NULL };
    int option;
    while ((option = getopt(argc, argv, "+l:o:")) != -1) {
        if (option == 'l') {
            order.library = optarg;
        } else if (option == 'o') {
            order.file = optarg;
        } else {
            bench_fail("usage: measure [-l LIBRARY] [-o FILE] PROGRAM ARGUMENTS...");
        }
    }
    if (optind == argc) {
        bench_fail("usage: measure [-l LIBRARY] [-o FILE] PROGRAM ARGUMENTS...");
    }
    order.program = &argv[optind];
    return order;
}

__attribute__((noreturn)) static void program_start(const struct order *order) {
    if (order->library != NULL && order->library[0] != '\0') {
        setenv("LD_PRELOAD", order->library, 1);
    } else {
        unsetenv("LD_PRELOAD");
    }
    execvp(order->program[0], order->program);
    bench_fail("%s: cannot be run", order->program[0]);
}

static double milliseconds(struct timeval time) {
    return (double)time.tv_sec * 1e3 + (double)time.tv_usec / 1e3;
}

int main(int argc, char **argv) {
    struct order order = order_read(argc, argv);
    struct watch started = watch_start();
    pid_t child = fork();
    if (child < 0) {
        bench_fail("cannot fork");
    }
    if (child == 0) {
        program_start(&order);
    }
    int status = 0;
    struct rusage usage;
    while (wait4(child, &status, 0, &usage) < 0) {
        if (errno != EINTR) {
            bench_fail("cannot wait");
        }
    }
    uint64_t time = watch_stop(started).wall;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);

    struct line line;
    line_open(&line, "measure");
    line_number(&line, "ms", (double)time / 1e6);
    line_number(&line, "user_ms", milliseconds(usage.ru_utime));
    line_number(&line, "system_ms", milliseconds(usage.ru_stime));
    line_count(&line, "peak", (size_t)usage.ru_maxrss * 1024);
    line_count(&line, "faults", (size_t)usage.ru_minflt);
    line_count(&line, "code", (size_t)code);
    int file = STDERR_FILENO;
    if (order.file != NULL) {
        file = open(order.file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (file < 0) {
            bench_fail("%s: cannot be written", order.file);
        }
    }
    dup2(file, STDOUT_FILENO);
    line_close(&line);
    return code;
}

// harness.h - what every test shares: checks, children, a watchdog, dice.
//
// Exit codes are automake's: 0 pass, 1 fail, 77 skip, 99 hard error. Nothing here calls malloc, so
// that a test may use it while the heap is exhausted or being judged. Works in C and C++.
// Environment: PMA_TEST_SEED=number repeats the draws of a run; PMA_TEST_SLOW=factor stretches
// every watchdog (emulators, checkers); PMA_TEST_FOREIGN=1 lets an API test run on another malloc.
#ifndef HARNESS_H
#define HARNESS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXIT_SKIP 77
#define EXIT_HARD 99

// A failed check is told and counted, and the test goes on. A failed REQUIRE ends it at once.
#define CHECK(condition) check_note(!!(condition), __FILE__, __LINE__, "%s", #condition)
#define CHECK_SAY(condition, ...) check_note(!!(condition), __FILE__, __LINE__, __VA_ARGS__)
#define CHECK_EQ(a, b) check_pair((uintmax_t)(a), (uintmax_t)(b), #a " == " #b, __FILE__, __LINE__)
#define CHECK_AT_MOST(a, b) \
    check_note((intmax_t)(a) <= (intmax_t)(b), __FILE__, __LINE__, "%s (%jd) <= %s (%jd)", #a, \
               (intmax_t)(a), #b, (intmax_t)(b))
#define REQUIRE(condition) ((void)(CHECK(condition) || (_exit(1), 0)))

static int failures;
// Standard error as the test found it: a child's own one is captured.
static int harness_error = 2;

__attribute__((format(printf, 1, 2))) static inline void say(const char *format, ...) {
    char line[1024];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    size_t size = (size_t)length < sizeof(line) ? (size_t)length : sizeof(line) - 1;
    if (write(harness_error, line, size) < 0) {
        failures++;
    }
}

__attribute__((format(printf, 4, 5))) static inline bool
check_note(bool ok, const char *file, int line, const char *format, ...) {
    if (ok) {
        return true;
    }
    char text[512];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    say("%s:%d: failed: %s\n", file, line, text);
    // A check in a loop should not fill the disk.
    if (__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED) == 50) {
        say("too many failures\n");
        _exit(1);
    }
    return false;
}

static inline bool check_pair(uintmax_t a, uintmax_t b, const char *text, const char *file,
                              int line) {
    return check_note(a == b, file, line, "%s (%#jx, %#jx)", text, a, b);
}

static inline unsigned slow_factor(void) {
    const char *text = getenv("PMA_TEST_SLOW");
    int factor = text != NULL ? atoi(text) : 1;
    return factor > 1 ? (unsigned)factor : 1;
}

static inline void watchdog_bark(int number) {
    (void)number;
    static const char text[] = "watchdog: no end in time\n";
    if (write(harness_error, text, sizeof(text) - 1) < 0) {
        _exit(EXIT_HARD);
    }
    _exit(1);
}

// From now on the process has so many seconds. A forked child must ask for its own.
static inline void watchdog(unsigned seconds) {
    (void)signal(SIGALRM, watchdog_bark);
    (void)alarm(seconds * slow_factor());
}

static inline void test_begin(unsigned seconds) {
    struct rlimit none = { 0, 0 };
    (void)setrlimit(RLIMIT_CORE, &none);
    watchdog(seconds);
}

static inline int test_end(void) {
    return __atomic_load_n(&failures, __ATOMIC_RELAXED) == 0 ? 0 : 1;
}

// The compiler knows nothing of what passes here: no call is folded, no pointer's origin known.
static inline void *hide(void *pointer) {
    __asm__ volatile("" : "+r"(pointer) : : "memory");
    return pointer;
}

static inline size_t any(size_t number) {
    __asm__ volatile("" : "+r"(number));
    return number;
}

// A prerequisite is missing: a skip by hand; a hard error in CI, where nothing may be missing.
static inline void test_skip(const char *reason) {
    const char *ci = getenv("CI");
    say("skipped: %s\n", reason);
    _exit(ci != NULL && strcmp(ci, "true") == 0 ? EXIT_HARD : EXIT_SKIP);
}

// A test of exported names proves nothing if they are libc's: hard error unless malloc is ours.
static inline void api_begin(unsigned seconds) {
    test_begin(seconds);
    Dl_info where;
    void *address = dlsym(RTLD_DEFAULT, "malloc");
    // The linker may leave out a library that no call names.
    free(hide(malloc(1)));
    if (address != NULL && dladdr(address, &where) != 0 && where.dli_fname != NULL &&
        (strstr(where.dli_fname, "pamalloc") != NULL ||
         strstr(where.dli_fname, "pamtest") != NULL)) {
        return;
    }
    if (getenv("PMA_TEST_FOREIGN") == NULL) {
        say("malloc is not pamalloc's in this run\n");
        _exit(EXIT_HARD);
    }
}

// ---- children

struct child_end {
    int status;
    size_t length;
    char text[4096]; // what it wrote to standard error
};

// qemu in user mode ends what a program wrote by a line of its own when a signal ends the program.
static inline void forget_emulator(struct child_end *end) {
    char *line = strstr(end->text, "qemu: uncaught target signal");
    if (line != NULL && (line == end->text || line[-1] == '\n')) {
        *line = '\0';
        end->length = (size_t)(line - end->text);
    }
}

// Runs body(argument) in a forked child that has so many seconds. It ends with test_end().
static inline struct child_end run_child(void (*body)(void *), void *argument, unsigned seconds) {
    struct child_end end;
    int ends[2];
    memset(&end, 0, sizeof(end));
    REQUIRE(pipe(ends) == 0);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        (void)dup2(ends[1], 2);
        harness_error = 2;
        (void)close(ends[0]);
        (void)close(ends[1]);
        failures = 0;
        (void)signal(SIGALRM, SIG_DFL);
        (void)alarm(seconds * slow_factor());
        body(argument);
        _exit(test_end());
    }
    (void)close(ends[1]);
    for (;;) {
        char rest[256];
        size_t room = sizeof(end.text) - 1 - end.length;
        ssize_t n = room > 0 ? read(ends[0], end.text + end.length, room)
                             : read(ends[0], rest, sizeof(rest));
        if (n == 0 || (n < 0 && errno != EINTR)) {
            break;
        }
        end.length += n > 0 && room > 0 ? (size_t)n : 0;
    }
    (void)close(ends[0]);
    while (waitpid(child, &end.status, 0) < 0 && errno == EINTR) {
    }
    forget_emulator(&end);
    return end;
}

static inline bool check_end(bool ok, const struct child_end *end, const char *what) {
    if (!ok && WIFSIGNALED(end->status)) {
        say("child (%s): signal %d%s\n%s", what, WTERMSIG(end->status),
            WTERMSIG(end->status) == SIGALRM ? " (hung)" : "", end->text);
    } else if (!ok) {
        say("child (%s): exit %d\n%s", what, WEXITSTATUS(end->status), end->text);
    }
    return CHECK_SAY(ok, "%s", what);
}

static inline bool expect_exit(const struct child_end *end, int code, const char *what) {
    return check_end(WIFEXITED(end->status) && WEXITSTATUS(end->status) == code, end, what);
}

// The child must die of SIGABRT after one line of pamalloc's that contains the text.
static inline bool expect_abort(void (*body)(void *), void *argument, const char *text) {
    struct child_end end = run_child(body, argument, 20);
    const char *newline = strchr(end.text, '\n');
    bool ok = WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT &&
              strncmp(end.text, "pamalloc: ", 10) == 0 && strstr(end.text, text) != NULL &&
              newline == end.text + end.length - 1;
    return check_end(ok, &end, text);
}

// ---- dice: splitmix64 (Steele, Lea, Flood 2014), a state for each thread

struct dice {
    uint64_t state;
};

static inline uint64_t dice_draw(struct dice *dice) {
    uint64_t z = (dice->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline size_t dice_below(struct dice *dice, size_t limit) {
#ifdef __SIZEOF_INT128__
    return (size_t)(((unsigned __int128)dice_draw(dice) * limit) >> 64);
#else
    return (size_t)((dice_draw(dice) >> 32) * limit >> 32);
#endif
}

// The seed of this run, told so that a failure can be met again.
static inline uint64_t test_seed(void) {
    const char *text = getenv("PMA_TEST_SEED");
    uint64_t seed = 0;
    if (text != NULL) {
        seed = strtoull(text, NULL, 0);
    } else if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed)) {
        seed = (uint64_t)time(NULL) * 1000000 + (uint64_t)getpid();
    }
    say("PMA_TEST_SEED=%#llx\n", (unsigned long long)seed);
    return seed;
}

#endif

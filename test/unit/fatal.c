// fatal.c - what a message says, and that nothing keeps the process from dying.
#include <config.h>

#include "base.h"
#include "fatal.h"
#include "harness.h"

#include <pthread.h>

// The program's own abort stands in front of libc's, and may come back as some do.
static bool abort_comes_back;

void program_abort(void) __asm__("abort");
void program_abort(void) {
    if (abort_comes_back) {
        return;
    }
    void (*libc_abort)(void);
    void *address = dlsym(RTLD_NEXT, "abort");
    memcpy(&libc_abort, &address, sizeof(address));
    libc_abort();
}

static struct fatal_block block_of(uintptr_t address, size_t size, ptrdiff_t slot) {
    return (struct fatal_block){ .pointer = (const void *)address, .size = size, .slot = slot };
}

// ---- lines

static bool line_is(const struct fatal_line *line, const char *text) {
    return line->length == strlen(text) && memcmp(line->text, text, line->length) == 0;
}

static void check_numbers(void) {
    static const struct {
        uint64_t number;
        const char *decimal;
        const char *hex;
    } cases[] = {
        { 0, "0", "0x0" },
        { 9, "9", "0x9" },
        { 10, "10", "0xa" },
        { 255, "255", "0xff" },
        { 1000000007, "1000000007", "0x3b9aca07" },
        { UINT64_MAX, "18446744073709551615", "0xffffffffffffffff" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fatal_line line = { .length = 0 };
        pma_line_decimal(&line, cases[i].number);
        CHECK_SAY(line_is(&line, cases[i].decimal), "decimal %s", cases[i].decimal);
        line.length = 0;
        pma_line_hex(&line, cases[i].number);
        CHECK_SAY(line_is(&line, cases[i].hex), "hex %s", cases[i].hex);
    }
}

// Whatever is put into it, a line ends where its buffer ends.
static void check_cut(void) {
    struct {
        struct fatal_line line;
        char behind[16];
    } guarded;
    memset(&guarded, 'z', sizeof(guarded));
    guarded.line.length = 0;
    for (int i = 0; i < 100; i++) {
        pma_line_text(&guarded.line, "seven.");
        pma_line_decimal(&guarded.line, 7);
    }
    CHECK_EQ(guarded.line.length, sizeof(guarded.line.text));
    CHECK(memcmp(guarded.line.text, "seven.7seven.7", 14) == 0);
    for (size_t i = 0; i < sizeof(guarded.behind); i++) {
        CHECK_EQ(guarded.behind[i], 'z');
    }
}

// ---- messages, each from a child that must die

struct message {
    const char *call;
    const char *what;
    struct fatal_block block;
    const char *text;
};

static void message_die(void *argument) {
    const struct message *message = argument;
    pma_fatal_set_seed(0x0123456789abcdef);
    pma_fatal(message->call, message->what, message->block);
}

static void check_messages(void) {
    struct message messages[] = {
        { "free", "double free", block_of(0x7f12a8c0, 48, 12),
          "pamalloc: free(): double free: 0x7f12a8c0 (size 48, slot 12) "
          "[seed 0x0123456789abcdef]\n" },
        { "realloc", "misaligned pointer", block_of(0x7fffffffffff, 0, -1),
          "pamalloc: realloc(): misaligned pointer: 0x7fffffffffff [seed 0x0123456789abcdef]\n" },
        { "free", "double free", block_of(0x10, 8192, -1),
          "pamalloc: free(): double free: 0x10 (size 8192) [seed 0x0123456789abcdef]\n" },
        { "free", "double free", block_of(0x10, 16, 0),
          "pamalloc: free(): double free: 0x10 (size 16, slot 0) [seed 0x0123456789abcdef]\n" },
        { "lock", "lock taken twice", block_of(0, 0, -1),
          "pamalloc: lock(): lock taken twice [seed 0x0123456789abcdef]\n" },
    };
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        expect_abort(message_die, &messages[i], messages[i].text);
    }
}

// A message that is too long is cut, and is still one line.
static void check_long_message(void) {
    char name[1000];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    struct message message = { name, "double free", block_of(0x10, 16, 0), NULL };
    struct child_end end = run_child(message_die, &message, 20);
    CHECK(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT);
    CHECK_EQ(end.length, sizeof(((struct fatal_line *)NULL)->text));
    CHECK_EQ(end.text[end.length - 1], '\n');
    CHECK(strchr(end.text, '\n') == end.text + end.length - 1);
}

static void check_sizes(void) {
    static const struct {
        uint64_t size;
        const char *text;
    } sizes[] = { { 0, "0" },
                  { 1, "1" },
                  { 1000, "1000" },
                  { 1024, "1K" },
                  { 1025, "1025" },
                  { 1536, "1536" },
                  { 1023 * 1024, "1023K" },
                  { 16 << 20, "16M" },
                  { (uint64_t)3 << 30, "3G" },
                  { (uint64_t)1 << 40, "1T" },
                  { (uint64_t)1 << 50, "1024T" },
                  { UINT64_MAX, "18446744073709551615" } };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct fatal_line line = { .length = 0 };
        pma_line_size(&line, sizes[i].size);
        CHECK_EQ(line.length, strlen(sizes[i].text));
        CHECK(memcmp(line.text, sizes[i].text, line.length) == 0);
    }
}

// A line that was cut ends all the same.
static void check_line_end(void) {
    struct fatal_line line = { .length = 0 };
    pma_line_text(&line, "short");
    pma_line_end(&line);
    CHECK(line.length == 6 && memcmp(line.text, "short\n", 6) == 0);
    for (int i = 0; i < 100; i++) {
        pma_line_text(&line, "and long ");
    }
    pma_line_end(&line);
    CHECK_EQ(line.length, sizeof(line.text));
    CHECK_EQ(line.text[line.length - 1], '\n');
}

// ---- nothing keeps the process alive

static struct message plain = { "free", "double free", { NULL, 0, -1 }, NULL };

static void die_silent(void *argument) {
    (void)argument;
    (void)close(STDERR_FILENO);
    message_die(&plain);
}

static void die_blocked(void *argument) {
    (void)argument;
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
    message_die(&plain);
}

static void die_again(int number) {
    (void)number;
    message_die(&plain);
}

static void die_in_handler(void *argument) {
    (void)argument;
    (void)signal(SIGABRT, die_again);
    message_die(&plain);
}

static void die_without_abort(void *argument) {
    (void)argument;
    abort_comes_back = true;
    message_die(&plain);
}

static size_t count_lines(const struct child_end *end) {
    size_t lines = 0;
    for (size_t i = 0; i < end->length; i++) {
        lines += end->text[i] == '\n';
    }
    return lines;
}

static void check_it_dies(void) {
    struct child_end end = run_child(die_silent, NULL, 20);
    check_end(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT && end.length == 0, &end,
              "standard error is closed");
    end = run_child(die_blocked, NULL, 20);
    check_end(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT, &end,
              "all signals are blocked");
    end = run_child(die_without_abort, NULL, 20);
    check_end(WIFSIGNALED(end.status) && WTERMSIG(end.status) != SIGALRM && count_lines(&end) == 1,
              &end, "abort comes back");
    end = run_child(die_in_handler, NULL, 20);
    check_end(WIFSIGNALED(end.status) && WTERMSIG(end.status) != SIGALRM && count_lines(&end) == 17,
              &end, "the handler for SIGABRT makes the same mistake");
}

static pthread_barrier_t barrier;

static void *thread_die(void *argument) {
    (void)pthread_barrier_wait(&barrier);
    message_die(argument);
    return NULL;
}

static void die_together(void *argument) {
    (void)argument;
    pthread_t threads[4];
    (void)pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 4; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, thread_die, &plain) == 0);
    }
    (void)pthread_join(threads[0], NULL);
}

// Each line is one write, so that they are not mixed.
static void check_threads(void) {
    static const char text[] = "pamalloc: free(): double free [seed 0x0123456789abcdef]\n";
    const size_t length = sizeof(text) - 1;
    for (int round = 0; round < 20; round++) {
        struct child_end end = run_child(die_together, NULL, 20);
        check_end(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT, &end,
                  "threads die at the same time");
        CHECK(end.length >= length && end.length % length == 0);
        for (size_t i = 0; i < end.length; i += length) {
            CHECK(memcmp(end.text + i, text, length) == 0);
        }
    }
}

int main(void) {
    test_begin(120);
    check_numbers();
    check_cut();
    check_messages();
    check_long_message();
    check_sizes();
    check_line_end();
    check_it_dies();
    check_threads();
    return test_end();
}

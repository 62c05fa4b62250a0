// wrong.h - what every misuse test shares: a child does one wrong thing and must die of SIGABRT
// after exactly one line, the right one, about the right address.
//
//   pamalloc: CALL(): WHAT: 0xPOINTER (size N, slot M) [seed 0x0123456789abcdef]
#ifndef WRONG_H
#define WRONG_H

#include "../harness.h"

#include <malloc.h>
#include <sys/mman.h>

#define DOUBLE_FREE "double free"
#define MIDDLE "pointer into the middle of a block"
#define MISALIGNED "misaligned pointer"
#define FOREIGN "not a block of pamalloc"
#define NOT_USER "not a user address"

// What a child knows and its parent has to compare: a page that both see.
struct told {
    void *pointer; // about to be handed in, though it is wrong
    size_t size;   // of the block it belongs to; 0: none, the line may not name a size
};

// Some size that the test does not know.
#define SOME_SIZE SIZE_MAX

static struct told *told;

static inline void told_begin(void) {
    void *page =
        mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(page != MAP_FAILED);
    told = (struct told *)page;
}

static inline void *tell(void *pointer, size_t size) {
    told->pointer = pointer;
    told->size = size;
    return hide(pointer);
}

// Each call that takes a block, by the name its line must carry.
#define WRONG_CALLS(X) \
    X(free, (void *), (p)) \
    X(cfree, (void *), (p)) \
    X(realloc, (void *, size_t), (p, 100)) \
    X(reallocarray, (void *, size_t, size_t), (p, 10, 10)) \
    X(recallocarray, (void *, size_t, size_t, size_t), (p, 1, 10, 10)) \
    X(malloc_usable_size, (void *), (p)) \
    X(free_sized, (void *, size_t), (p, 100)) \
    X(free_aligned_sized, (void *, size_t, size_t), (p, 64, 100)) \
    X(freezero, (void *, size_t), (p, 1)) \
    X(__libc_free, (void *), (p)) \
    X(__libc_realloc, (void *, size_t), (p, 100)) \
    X(_ZdlPv, (void *), (p)) \
    X(_ZdaPv, (void *), (p)) \
    X(_ZdlPvm, (void *, size_t), (p, 100)) \
    X(_ZdaPvm, (void *, size_t), (p, 100)) \
    X(_ZdlPvSt11align_val_t, (void *, size_t), (p, 64))

#define X(name, parameters, arguments) \
    static inline void wrong_##name(void *p) { \
        void(*volatile function) parameters = \
            (void(*) parameters)(uintptr_t)dlsym(RTLD_DEFAULT, #name); \
        REQUIRE(function != NULL); \
        function arguments; \
    }
WRONG_CALLS(X)
#undef X

// realloc of 0 takes another way than realloc of a size.
static inline void wrong_realloc_to_nothing(void *p) {
    void *(*volatile function)(void *, size_t) = realloc;
    (void)function(p, 0);
}

struct wrong_call {
    const char *symbol;
    const char *name; // in the line
    void (*make)(void *pointer);
};

static const struct wrong_call wrong_calls[] = {
#define X(name, parameters, arguments) { #name, NULL, wrong_##name },
    WRONG_CALLS(X)
#undef X
        { "realloc(p, 0)", "realloc", wrong_realloc_to_nothing },
};

#define WRONG_CALLS_COUNT (sizeof(wrong_calls) / sizeof(wrong_calls[0]))

static inline bool is_operator(const struct wrong_call *call) {
    return strncmp(call->symbol, "_Zd", 3) == 0;
}

// The name in the line. Aliases tell the name they stand for; operators, which have their own
// judgement below, the one that they are compiled to.
static inline const char *line_name(const struct wrong_call *call) {
    if (call->name != NULL) {
        return call->name;
    }
    if (is_operator(call)) {
        return "free\noperator delete\noperator delete[]";
    }
    return strncmp(call->symbol, "__libc_", 7) == 0 ? call->symbol + 7 : call->symbol;
}

// The rest of the line if it begins with the text, NULL otherwise, so that calls can be chained.
static inline const char *after(const char *line, const char *text) {
    size_t length = strlen(text);
    return line != NULL && strncmp(line, text, length) == 0 ? line + length : NULL;
}

static inline const char *after_number(const char *line, int base, uintptr_t *number) {
    char *end = NULL;
    if (line == NULL || *line < '0' || *line > 'f') {
        return NULL;
    }
    *number = strtoul(line, &end, base);
    return end != line ? end : NULL;
}

// A class is at most a sixteenth and one step of 16 above the size. A run is whole pages, and so is
// what is left of a slab when its last slot was freed.
static inline bool size_fits(size_t named, size_t asked) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (asked == SOME_SIZE) {
        return true;
    }
    return asked != 0 && named >= asked &&
           (named <= asked + asked / 16 + 16 + (asked > 32768) * page || named % page == 0);
}

static inline bool line_is_right(const char *line, const char *call, const char *what) {
    uintptr_t pointer = 0;
    uintptr_t size = 0;
    uintptr_t number = 0;
    const char *at = after(after(after(line, "pamalloc: "), call), "(): ");
    at = after_number(after(after(at, what), ": 0x"), 16, &pointer);
    const char *sized = after_number(after(at, " (size "), 10, &size);
    if (sized != NULL) {
        const char *slotted = after_number(after(sized, ", slot "), 10, &number);
        at = after(slotted != NULL ? slotted : sized, ")");
    }
    at = after(at, " [seed 0x");
    bool seeded = at != NULL && strspn(at, "0123456789abcdef") == 16;
    return pointer == (uintptr_t)told->pointer && (sized == NULL || size_fits(size, told->size)) &&
           seeded && strcmp(at + 16, "]\n") == 0;
}

// A child in which the draws did not lead to the case in question ends with EXIT_SKIP: another one
// draws anew, from another stream.
static inline struct child_end run_until_the_case(void (*body)(void *), void *argument) {
    struct child_end end = run_child(body, argument, 20);
    for (int i = 0; i < 30 && WIFEXITED(end.status) && WEXITSTATUS(end.status) == EXIT_SKIP; i++) {
        end = run_child(body, argument, 20);
    }
    return end;
}

// One of several texts, each on a line of its own; false after the last one.
static inline bool next_text(const char **texts, char *text, size_t room) {
    size_t length = strcspn(*texts, "\n");
    if (**texts == 0) {
        return false;
    }
    (void)snprintf(text, room, "%.*s", (int)length, *texts);
    *texts += length + ((*texts)[length] == '\n');
    return true;
}

// Runs the body in a child and judges its end. calls and what list the right names and sentences:
// where a block's memory has gone meanwhile, more than one can be true.
static inline bool dies_with(void (*body)(void *), void *argument, const char *calls,
                             const char *what, const char *title) {
    told->pointer = NULL;
    told->size = 0;
    struct child_end end = run_until_the_case(body, argument);
    char call[64];
    char sentence[64];
    bool right = false;
    while (next_text(&calls, call, sizeof(call))) {
        for (const char *at = what; next_text(&at, sentence, sizeof(sentence));) {
            right |= line_is_right(end.text, call, sentence);
        }
    }
    bool died = WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT;
    return check_end(died && right, &end, title);
}

#endif

// life.h - moments of a process's life, each a case with a name: PROGRAM-CASE.t runs one of them
// linked, preloaded, and with the test build preloaded.
#ifndef LIFE_H
#define LIFE_H

#include "../../work.h"

#include <limits.h>

struct life_case {
    const char *name;
    void (*body)(void);
};

// Where the modules are, which a build makes.
static inline const char *life_module(const char *name) {
    static char path[4][PATH_MAX];
    static unsigned turn;
    const char *folder = getenv("builddir");
    char *slot = path[turn++ % 4];
    (void)snprintf(slot, PATH_MAX, "%s/test/api/modules/%s", folder != NULL ? folder : ".", name);
    return slot;
}

// This program anew, for a case of its own whose name no list has.
static inline void life_restart(const char *name) {
    char *arguments[] = { (char *)(uintptr_t) "life", (char *)(uintptr_t)name, NULL };
    (void)execv("/proc/self/exe", arguments);
    _exit(EXIT_HARD);
}

// The body in a child that must end well and write nothing.
static inline void life_child(void (*body)(void *), void *argument, const char *name) {
    struct child_end end = run_child(body, argument, 20);
    if (expect_exit(&end, 0, name)) {
        CHECK_SAY(end.length == 0, "%s: %s", name, end.text);
    }
}

static inline int life_main(int count, char **arguments, const struct life_case *cases,
                            size_t ncases) {
    for (size_t i = 0; count > 1 && i < ncases; i++) {
        if (strcmp(arguments[1], cases[i].name) == 0) {
            api_begin(30);
            cases[i].body();
            return test_end();
        }
    }
    say("no such case\n");
    return EXIT_HARD;
}

#define LIFE_MAIN(cases) \
    int main(int count, char **arguments) { \
        return life_main(count, arguments, cases, sizeof(cases) / sizeof((cases)[0])); \
    }

#endif

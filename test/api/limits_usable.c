// Under a limit on address space or data, is most of it usable, by every size, does the rest give
// NULL with ENOMEM, and can it be used again after it was freed?
//
// Each case is a program started under the limit, since starting is part of what must fit.
#include "entry.h"

// First goal. What is missing to 100 is the program, libc, and the heap's own tables.
#define PERCENT_USABLE 80

static size_t get_all(size_t size, struct dice *dice, void **head) {
    size_t total = 0;
    for (;;) {
        size_t wanted =
            size != 0 ? size : 16 + dice_below(dice, (size_t)64 << dice_below(dice, 11));
        errno = 0;
        void *block = call.malloc(wanted);
        if (block == NULL) {
            CHECK_EQ(errno, ENOMEM);
            return total;
        }
        memcpy(block, head, sizeof(*head));
        *head = block;
        total += call.malloc_usable_size(block);
    }
}

static void free_all(void *head) {
    for (void *next; head != NULL; head = next) {
        memcpy(&next, head, sizeof(next));
        call.free(head);
    }
}

// Two rounds: what was freed can be had again, by the same size and by others.
static int use_the_limit(size_t limit, size_t size) {
    struct dice dice = { 17 };
    void *head = NULL;
    entry_begin(60);
    size_t first = get_all(size, &dice, &head);
    free_all(head);
    head = NULL;
    size_t second = get_all(size, &dice, &head);
    free_all(head);
    head = NULL;
    size_t other = get_all(size == 40000 ? 1000 : 40000, &dice, &head);
    free_all(head);
    CHECK_SAY(first >= limit / 100 * PERCENT_USABLE, "size %zu: %zu of %zu bytes", size, first,
              limit);
    CHECK_SAY(second >= first / 100 * 97, "size %zu: again %zu of %zu", size, second, first);
    CHECK_SAY(other >= first / 100 * 90, "size %zu: then %zu of %zu", size, other, first);
    return test_end();
}

struct limited {
    int resource;
    const char *limit;
    const char *size;
};

static void start(void *argument) {
    const struct limited *limited = (const struct limited *)argument;
    struct rlimit rlimit = { strtoul(limited->limit, NULL, 10), 0 };
    rlimit.rlim_max = rlimit.rlim_cur;
    REQUIRE(setrlimit((__rlimit_resource_t)limited->resource, &rlimit) == 0);
    (void)execl("/proc/self/exe", "limits_usable", limited->limit, limited->size, (char *)NULL);
    _exit(EXIT_HARD);
}

int main(int count, char **arguments) {
    if (count == 3) {
        return use_the_limit(strtoul(arguments[1], NULL, 10), strtoul(arguments[2], NULL, 10));
    }
    entry_begin(120);
    // A size of 0 stands for a mix. Limits of 32, 64 and 256 MiB.
    static const char *const sizes[] = { "0",    "16",    "100",    "1000",   "4096",
                                         "5000", "40000", "200000", "2000000" };
    static const char *const limits[] = { "33554432", "67108864", "268435456" };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct limited space = { RLIMIT_AS, limits[1], sizes[i] };
        struct child_end end = run_child(start, &space, 30);
        check_end(WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0, &end, "64 MiB of space");
        struct limited data = { RLIMIT_DATA, limits[i % 3], sizes[i] };
        end = run_child(start, &data, 30);
        check_end(WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0, &end, "a limit on data");
    }
    return test_end();
}

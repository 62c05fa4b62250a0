// Does every call that takes a block refuse what is none: interior, misaligned, never allocated,
// foreign, unmapped and impossible addresses, each with its own sentence, without crashing itself?
#include "wrong.h"

#include <pthread.h>

struct wrong_pointer {
    const char *name;
    void *(*make)(void);
    const char *what;
};

static char *block_of(size_t size) {
    char *block = (char *)malloc(any(size));
    REQUIRE(block != NULL);
    memset(block, 1, size);
    return block;
}

#define MAKE(name, expression, size) \
    static void *make_##name(void) { \
        char *block = block_of(size); \
        return tell(expression, size); \
    }

MAKE(small_plus_1, block + 1, 100)
MAKE(small_plus_8, block + 8, 100)
MAKE(small_plus_16, block + 16, 100)
MAKE(small_plus_96, block + 96, 100)
MAKE(tiny_plus_8, block + 8, 16)
MAKE(page_plus_16, block + 16, 4096)
MAKE(page_plus_2048, block + 2048, 4096)
MAKE(slot_plus_page, block + 4096, 20000)
MAKE(large_plus_16, block + 16, 40000)
MAKE(large_plus_page, block + 4096, 40000)
MAKE(large_plus_pages, block + 30 * 4096, 200000)
MAKE(large_plus_1, block + 4097, 40000)
MAKE(huge_plus_16, block + 16, 2 << 20)
MAKE(huge_plus_page, block + 4096, 2 << 20)
MAKE(huge_plus_a_mebibyte, block + (1 << 20), 64 << 20)
MAKE(huge_last_bytes, block + (2 << 20) - 16, 2 << 20)
MAKE(huge_plus_8, block + 4104, 2 << 20)

// An over-aligned block begins inside what was taken for it: only that address is the block.
static void *make_aligned_plus_16(void) {
    return tell((char *)hide(memalign(1 << 16, 100)) + 16, SOME_SIZE);
}

static int by_address(const void *a, const void *b) {
    char *const *left = (char *const *)a;
    char *const *right = (char *const *)b;
    return (*left > *right) - (*left < *right);
}

// A gap between two live neighbours of a rare class: a slot that nobody ever had.
static void *make_never_allocated(void) {
    enum { COUNT = 10 };
    char *blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = block_of(720);
    }
    size_t size = malloc_usable_size(blocks[0]);
    qsort(blocks, COUNT, sizeof(blocks[0]), by_address);
    for (size_t i = 1; i < COUNT; i++) {
        size_t gap = (size_t)(blocks[i] - blocks[i - 1]);
        if (gap > size && gap < 16 * size) {
            return tell(blocks[i] - size, 720);
        }
    }
    // All neighbours, or one in another slab: a later child draws anew.
    _exit(EXIT_SKIP);
}

static char static_bytes[256] __attribute__((aligned(64)));
static int constructed = 7;

static void *make_stack(void) {
    char *bytes = (char *)__builtin_frame_address(0);
    return tell((char *)((uintptr_t)bytes & ~(uintptr_t)15), 0);
}

static void *make_static(void) {
    return tell(static_bytes, 0);
}

static void *make_static_plus_1(void) {
    return tell((char *)&constructed + 1, 0);
}

static void *make_code(void) {
    return tell((void *)(uintptr_t)make_code, 0);
}

static void *make_library_code(void) {
    return tell((void *)((uintptr_t)dlsym(RTLD_DEFAULT, "malloc") & ~(uintptr_t)15), 0);
}

static void *foreign_pages(void) {
    void *pages = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(pages != MAP_FAILED);
    return pages;
}

static void *make_foreign_mapping(void) {
    return tell(foreign_pages(), 0);
}

static void *make_foreign_plus_64(void) {
    return tell((char *)foreign_pages() + 64, 0);
}

static void *make_unmapped(void) {
    void *pages = foreign_pages();
    REQUIRE(munmap(pages, 1 << 20) == 0);
    return tell(pages, 0);
}

static void *make_untouchable(void) {
    void *pages = foreign_pages();
    REQUIRE(mprotect(pages, 1 << 20, PROT_NONE) == 0);
    return tell(pages, 0);
}

#define MAKE_ADDRESS(name, address) \
    static void *make_##name(void) { \
        return tell((void *)(uintptr_t)(address), 0); \
    }

MAKE_ADDRESS(null_page, 16)
MAKE_ADDRESS(null_page_end, 4080)
MAKE_ADDRESS(low, 0x10000000)
MAKE_ADDRESS(last_user, 0x7ffffffffff0)
MAKE_ADDRESS(nowhere, 0x4a4a4a4a4a40)
MAKE_ADDRESS(first_beyond_user, 0x800000000000)
MAKE_ADDRESS(tagged, 0x0100000000001000)
MAKE_ADDRESS(sign_bit, 0x8000000000000010)
MAKE_ADDRESS(kernel_half, 0xffff800000000000)
MAKE_ADDRESS(last_of_all, 0xfffffffffffffff0)
MAKE_ADDRESS(minus_one, 0xffffffffffffffff)

static const struct wrong_pointer wrong_pointers[] = {
    { "block of 100 + 1", make_small_plus_1, MISALIGNED },
    { "block of 100 + 8", make_small_plus_8, MISALIGNED },
    { "block of 100 + 16", make_small_plus_16, MIDDLE },
    { "block of 100 + 96", make_small_plus_96, MIDDLE },
    { "block of 16 + 8", make_tiny_plus_8, MISALIGNED },
    { "page + 16", make_page_plus_16, MIDDLE },
    { "page + 2048", make_page_plus_2048, MIDDLE },
    { "block of 20000 + page", make_slot_plus_page, MIDDLE },
    { "block of 40000 + 16", make_large_plus_16, MIDDLE },
    { "block of 40000 + page", make_large_plus_page, MIDDLE },
    { "block of 200000 + 30 pages", make_large_plus_pages, MIDDLE },
    { "block of 40000 + page + 1", make_large_plus_1, MISALIGNED },
    { "block of 2 MiB + 16", make_huge_plus_16, MIDDLE },
    { "block of 2 MiB + page", make_huge_plus_page, MIDDLE },
    { "block of 64 MiB + 1 MiB", make_huge_plus_a_mebibyte, MIDDLE },
    { "block of 2 MiB, last bytes", make_huge_last_bytes, MIDDLE },
    { "block of 2 MiB + page + 8", make_huge_plus_8, MISALIGNED },
    { "aligned block + 16", make_aligned_plus_16, MIDDLE },
    { "slot never allocated", make_never_allocated, DOUBLE_FREE },
    { "stack", make_stack, FOREIGN },
    { "static object", make_static, FOREIGN },
    { "static object + 1", make_static_plus_1, FOREIGN },
    { "code", make_code, FOREIGN },
    { "the library's code", make_library_code, FOREIGN },
    { "foreign mapping", make_foreign_mapping, FOREIGN },
    { "foreign mapping + 64", make_foreign_plus_64, FOREIGN },
    { "unmapped memory", make_unmapped, FOREIGN },
    { "untouchable memory", make_untouchable, FOREIGN },
    { "null page", make_null_page, FOREIGN },
    { "end of the null page", make_null_page_end, FOREIGN },
    { "low address", make_low, FOREIGN },
    { "last user address", make_last_user, FOREIGN },
    { "address in nothing", make_nowhere, FOREIGN },
    { "first address beyond", make_first_beyond_user, NOT_USER },
    { "tagged address", make_tagged, NOT_USER },
    { "address with the sign bit", make_sign_bit, NOT_USER },
    { "kernel's half", make_kernel_half, NOT_USER },
    { "last address of all", make_last_of_all, NOT_USER },
    { "minus one", make_minus_one, NOT_USER },
};

struct wrong_case {
    const struct wrong_pointer *pointer;
    const struct wrong_call *call;
};

static void do_wrong(void *argument) {
    const struct wrong_case *wrong = (const struct wrong_case *)argument;
    wrong->call->make(wrong->pointer->make());
    say("accepted: %s of %s\n", wrong->call->symbol, wrong->pointer->name);
}

static void every_pointer_through_every_call(void) {
    for (size_t i = 0; i < sizeof(wrong_pointers) / sizeof(wrong_pointers[0]); i++) {
        for (size_t k = 0; k < WRONG_CALLS_COUNT; k++) {
            struct wrong_case wrong = { &wrong_pointers[i], &wrong_calls[k] };
            char title[128];
            (void)snprintf(title, sizeof(title), "%s of %s", wrong.call->symbol,
                           wrong.pointer->name);
            (void)dies_with(do_wrong, &wrong, line_name(wrong.call), wrong.pointer->what, title);
        }
    }
}

// A C++ programmer looks for his operators, by the names that he knows.
static void operators_are_named(void) {
    for (size_t k = 0; k < WRONG_CALLS_COUNT; k++) {
        struct wrong_case wrong = { &wrong_pointers[0], &wrong_calls[k] };
        if (is_operator(wrong.call)) {
            bool array = wrong.call->symbol[3] == 'a';
            (void)dies_with(do_wrong, &wrong, array ? "operator delete[]" : "operator delete",
                            wrong.pointer->what, wrong.call->symbol);
        }
    }
}

// Every mapping of the process, heap and tables of the library included: eight bytes from its start
// nobody's block begins, so each must end in some sentence and never in a fault of the detector.
static void free_in_mapping(void *argument) {
    free(tell(*(void **)argument, 0));
}

static void no_mapping_crashes_the_detector(void) {
    static void *starts[2000];
    size_t count = 0;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    REQUIRE(maps != NULL);
    while (count + 2 <= 2000 && fgets(line, sizeof(line), maps) != NULL) {
        uintptr_t start = 0;
        uintptr_t end = 0;
        REQUIRE(sscanf(line, "%zx-%zx", &start, &end) == 2);
        starts[count++] = (void *)(start + 8);
        starts[count++] = (void *)((start + (end - start) / 2) | 8);
    }
    (void)fclose(maps);
    for (size_t i = 0; i < count; i++) {
        struct child_end end = run_child(free_in_mapping, &starts[i], 10);
        check_end(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT &&
                      strncmp(end.text, "pamalloc: free(): ", 18) == 0,
                  &end, "a pointer into some mapping");
    }
}

static void wild_pointers_are_refused(void) {
    struct dice dice = { test_seed() };
    for (size_t i = 0; i < 300; i++) {
        // Odd, so that none is a block by chance.
        void *wild = (void *)((uintptr_t)(dice_draw(&dice) >> dice_below(&dice, 40)) | 1);
        struct child_end end = run_child(free_in_mapping, &wild, 10);
        check_end(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT &&
                      strncmp(end.text, "pamalloc: free(): ", 18) == 0,
                  &end, "a wild pointer");
    }
}

int main(void) {
    api_begin(120);
    told_begin();
    every_pointer_through_every_call();
    operators_are_named();
    no_mapping_crashes_the_detector();
    wild_pointers_are_refused();
    return test_end();
}

// How many sizes trip the compiler's fortification when a program writes all that the usable size
// reports? The number is told; anything but success or that one abort is a failure.
//
// Built with -O2 -D_FORTIFY_SOURCE=3: the compiler knows what malloc was asked for.
#include "../harness.h"

#include <malloc.h>

static void write_usable_size(void *argument) {
    size_t size = *(volatile size_t *)argument;
    char *block = (char *)malloc(size);
    REQUIRE(block != NULL);
    memset(block, 0, malloc_usable_size(block));
    free(hide(block));
}

static bool survives(size_t size) {
    struct child_end end = run_child(write_usable_size, &size, 10);
    bool told = WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT &&
                strstr(end.text, "buffer overflow detected") != NULL;
    check_end(end.status == 0 || told, &end, "a write of the usable size");
    return end.status == 0;
}

int main(void) {
    api_begin(60);
    size_t aborts = 0;
    size_t sizes = 0;
    for (size_t size = 1; size <= 5000; size += 13) {
        aborts += !survives(size);
        sizes++;
    }
    say("%zu of %zu sizes are stopped by the compiler's check\n", aborts, sizes);
    // Where the class is exact there is no slack to trip over.
    for (size_t size = 16; size <= 256; size += 16) {
        CHECK_SAY(survives(size), "size %zu is exact", size);
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t pages = 1; pages <= 8; pages++) {
        CHECK_SAY(survives(pages * page), "%zu pages are exact", pages);
    }
    return test_end();
}

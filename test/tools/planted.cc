// planted.cc - a program that does everything right but for the one mistake that its argument
// names.
//
// Run by test/tools/valgrind.sh.
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>

static void *volatile kept;

// Pairs of all kinds, which no tool may complain of.
static void right() {
    delete new int(3);
    delete[] new int[10];
    delete new (std::nothrow) int;
    struct alignas(128) wide {
        char text[128];
    };
    delete new wide;
    void *block = memalign(64, 100);
    block = realloc(block, 300);
    free(block);
    free(calloc(10, 10));
    free(malloc(50000));
    free(malloc(5000000));
}

int main(int count, char **arguments) {
    const char *mistake = count > 1 ? arguments[1] : "none";
    right();
    char *volatile block = static_cast<char *>(malloc(40));
    memset(block, 1, 39);
    if (strcmp(mistake, "leak") == 0) {
        kept = malloc(123);
        kept = nullptr;
    } else if (strcmp(mistake, "overrun") == 0) {
        block[40] = 1;
    } else if (strcmp(mistake, "underrun") == 0) {
        block[-1] = 1;
    } else if (strcmp(mistake, "late") == 0) {
        char *volatile gone = static_cast<char *>(malloc(10));
        free(gone);
        gone[0] = 1;
    } else if (strcmp(mistake, "twice") == 0) {
        free(block);
    } else if (strcmp(mistake, "unset") == 0 && block[39] != 0) {
        return 3;
    } else if (strcmp(mistake, "mismatch") == 0) {
        delete[] static_cast<int *>(malloc(10));
    }
    free(block);
    return 0;
}

// user.so, plugin.so - a library that allocates on behalf of its host, and frees what the host has.
// plugin.so is the same, linked with libpamalloc.
#include <stdlib.h>
#include <string.h>

char *user_copy(const char *text);
void user_free(char *text);
int user_work(size_t rounds);

// Initial-exec thread-local memory, as many libraries have some of: the loader's reserve is small.
__attribute__((tls_model("initial-exec"), visibility("default"))) __thread char user_local[32];

__attribute__((visibility("default"))) char *user_copy(const char *text) {
    user_local[0]++;
    return strdup(text);
}

__attribute__((visibility("default"))) void user_free(char *text) {
    free(text);
}

__attribute__((visibility("default"))) int user_work(size_t rounds) {
    for (size_t i = 0; i < rounds; i++) {
        char *block = malloc(i * 37 % 100000 + 1);
        if (block == NULL) {
            return 0;
        }
        block[0] = 1;
        block = realloc(block, i * 91 % 50000 + 1);
        if (block == NULL || block[0] != 1) {
            return 0;
        }
        free(block);
    }
    return 1;
}

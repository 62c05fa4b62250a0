// handlers.so - a library whose constructor registers handlers of fork that allocate.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void allocate(void) {
    for (size_t i = 0; i < 60; i++) {
        size_t size = ((size_t)1 << i % 21) + i * 37;
        char *block = malloc(size);
        if (block == NULL) {
            abort();
        }
        memset(block, 1, size < 4096 ? size : 4096);
        block = realloc(block, size + size / 2);
        free(block);
    }
}

__attribute__((constructor)) static void register_handlers(void) {
    (void)pthread_atfork(allocate, allocate, allocate);
}

// A program that brings a malloc of its own, whole or in part, and exports it, as browsers do.
//
// Whole: a preloaded library must lie still. In part (-DPARTIAL): blocks of the one heap reach the
// other one, and that may end in one line and SIGABRT, never in silence or a fault.
#include "../harness.h"

#include <malloc.h>
#include <pthread.h>

#define PUBLIC __attribute__((visibility("default"), used))

static char heap[64 << 20] __attribute__((aligned(64)));
static size_t used;

static void *bump(size_t alignment, size_t size) {
    size_t start;
    size_t old = __atomic_load_n(&used, __ATOMIC_RELAXED);
    do {
        // 16 bytes before the block hold its size, for realloc.
        start = (old + 16 + alignment - 1) & ~(alignment - 1);
        if (start + size > sizeof(heap)) {
            return NULL;
        }
    } while (!__atomic_compare_exchange_n(&used, &old, start + size, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    memcpy(heap + start - sizeof(size_t), &size, sizeof(size));
    return heap + start;
}

PUBLIC void *malloc(size_t size) {
    return bump(16, size);
}

PUBLIC void *calloc(size_t count, size_t size) {
    return bump(16, count * size);
}

PUBLIC void free(void *block) {
    if (block != NULL && ((char *)block < heap || (char *)block >= heap + sizeof(heap))) {
        static const char text[] = "own_malloc: foreign block\n";
        (void)!write(2, text, sizeof(text) - 1);
        abort();
    }
}

PUBLIC void *realloc(void *block, size_t size) {
    void *moved = bump(16, size);
    if (block != NULL && moved != NULL) {
        size_t old;
        memcpy(&old, (char *)block - sizeof(size_t), sizeof(old));
        memcpy(moved, block, old < size ? old : size);
    }
    return moved;
}

#ifndef PARTIAL
PUBLIC int posix_memalign(void **out, size_t alignment, size_t size) {
    *out = bump(alignment, size);
    return *out != NULL ? 0 : ENOMEM;
}

PUBLIC void *memalign(size_t alignment, size_t size) {
    return bump(alignment < 16 ? 16 : alignment, size);
}

PUBLIC void *aligned_alloc(size_t alignment, size_t size) {
    return bump(alignment < 16 ? 16 : alignment, size);
}

PUBLIC void *valloc(size_t size) {
    return bump(4096, size);
}

PUBLIC void *pvalloc(size_t size) {
    return bump(4096, (size + 4095) / 4096 * 4096);
}

PUBLIC size_t malloc_usable_size(void *block) {
    size_t size = 0;
    if (block != NULL) {
        memcpy(&size, (char *)block - sizeof(size_t), sizeof(size));
    }
    return size;
}
#endif

static void *in_a_thread(void *unused) {
    for (int i = 0; i < 1000; i++) {
        free(hide(strdup("in a thread")));
    }
    return unused;
}

static void live(void *unused) {
    pthread_t threads[4];
    void *block = NULL;
    (void)unused;
    CHECK((char *)hide(malloc(1)) >= heap);
    free(hide(strdup("text")));
    CHECK_EQ(posix_memalign(&block, 64, 100), 0);
    free(hide(block));
    free(hide(aligned_alloc(64, 128)));
    for (int i = 0; i < 4; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, in_a_thread, NULL) == 0);
    }
    for (int i = 0; i < 4; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    pid_t child = fork();
    if (child == 0) {
        (void)in_a_thread(NULL);
        _exit(0);
    }
    int status = 1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
}

int main(void) {
    test_begin(20);
    struct child_end end = run_child(live, NULL, 10);
#ifdef PARTIAL
    bool told = WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT && end.length > 0;
    CHECK_SAY(end.status == 0 || told, "status %#x, %s", (unsigned)end.status, end.text);
#else
    expect_exit(&end, 0, "a program with its own malloc");
#endif
    return test_end();
}

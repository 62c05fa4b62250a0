// Do free and its kin keep errno, and success too, when the kernel refuses whatever they ask?
#include "entry.h"
#include "sandbox.h"

// What C++ programs free with, by their names in the object file.
static void (*delete_one)(void *);
static void (*delete_sized)(void *, size_t);
static void (*delete_array)(void *);
static void (*delete_aligned)(void *, size_t);

static void find_operators(void) {
    delete_one = (void (*)(void *))(uintptr_t)find_call("_ZdlPv");
    delete_array = (void (*)(void *))(uintptr_t)find_call("_ZdaPv");
    delete_sized = (void (*)(void *, size_t))(uintptr_t)find_call("_ZdlPvm");
    delete_aligned = (void (*)(void *, size_t))(uintptr_t)find_call("_ZdlPvSt11align_val_t");
}

static void give(size_t way, void *block, size_t size) {
    switch (way) {
    case 0:
        call.free(block);
        break;
    case 1:
        call.free_sized(block, size);
        break;
    case 2:
        call.free_aligned_sized(block, 64, size);
        break;
    case 3:
        call.cfree(block);
        break;
    case 4:
        call.__libc_free(block);
        break;
    case 5:
        delete_one(block);
        break;
    case 6:
        delete_sized(block, size);
        break;
    case 7:
        delete_array(block);
        break;
    case 8:
        delete_aligned(block, 64);
        break;
    default:
        call.freezero(block, size);
        break;
    }
}

#define WAYS 10

// Many blocks of a size at once, so that caches overflow and memory goes back to the kernel.
static void free_and_compare(size_t size) {
    enum { LIVE = 40 };
    void *blocks[LIVE];
    size_t count = size > (8 << 20) ? 4 : LIVE;
    for (size_t way = 0; way < WAYS; way++) {
        for (size_t i = 0; i < count; i++) {
            errno = ERANGE;
            blocks[i] = way == 2 || way == 8 ? call.aligned_alloc(64, size) : call.malloc(size);
            // Memory may be short here, a stale errno may not.
            CHECK(errno == (blocks[i] != NULL ? ERANGE : ENOMEM));
            if (blocks[i] != NULL) {
                memset(blocks[i], 1, size < 65536 ? size : 65536);
            }
        }
        for (size_t i = 0; i < count; i++) {
            errno = ERANGE;
            give(way, blocks[i], size);
            CHECK_SAY(errno == ERANGE, "way %zu, size %zu: errno is %d", way, size, errno);
        }
        errno = ERANGE;
        give(way, NULL, 0);
        CHECK_EQ(errno, ERANGE);
    }
}

static void every_size(void *unused) {
    (void)unused;
    for (size_t size = 1; size <= (size_t)64 << 20; size *= 2) {
        free_and_compare(size);
    }
    errno = ERANGE;
    (void)call.malloc_usable_size(NULL);
    CHECK_EQ(errno, ERANGE);
}

static void with_a_kernel_that_refuses(void *unused) {
    const int calls[] = { SYS_madvise, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_prctl };
    every_size(NULL);
    refuse_calls(calls, sizeof(calls) / sizeof(calls[0]), EPERM);
    every_size(unused);
}

int main(void) {
    entry_begin(60);
    find_operators();
    every_size(NULL);
    struct child_end end = run_child(with_a_kernel_that_refuses, NULL, 40);
    expect_exit(&end, 0, "with a kernel that refuses");
    return test_end();
}

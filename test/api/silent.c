// Is the library silent unless it aborts: large requests, exhaustion, wrong alignments, failing
// kernel calls, closed and blocked standard error?
#include "entry.h"
#include "sandbox.h"

#include <sys/mman.h>

static void odd_requests(void *unused) {
    (void)unused;
    void *large = call.malloc((size_t)3 << 30);
    call.free(large);
    CHECK(call.malloc((size_t)1 << 62) == NULL);
    CHECK(call.memalign((size_t)1 << 46, (size_t)1 << 46) == NULL);
    CHECK(call.aligned_alloc(3, 100) == NULL);
    void *block = NULL;
    CHECK_EQ(call.posix_memalign(&block, 3, 100), EINVAL);
    CHECK(call.calloc(SIZE_MAX, SIZE_MAX) == NULL);
}

static void exhaustion(void *unused) {
    struct rlimit limit = { 256 << 20, 256 << 20 };
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
    while (call.malloc(100000) != NULL) {
    }
    odd_requests(unused);
}

static void failing_kernel(void *unused) {
    const int calls[] = { SYS_madvise, SYS_mprotect, SYS_mremap, SYS_prctl };
    refuse_calls(calls, sizeof(calls) / sizeof(calls[0]), ENOMEM);
    for (size_t i = 0; i < 1000; i++) {
        call.free(call.malloc(i * 3000));
    }
    odd_requests(unused);
}

static void expect_silence(void (*body)(void *), const char *name) {
    struct child_end end = run_child(body, NULL, 20);
    expect_exit(&end, 0, name);
    CHECK_SAY(end.length == 0, "%s: standard error has %s", name, end.text);
}

static void requests_that_fail_at_once(void) {
    for (size_t i = 0; i < 100; i++) {
        errno = 0;
        CHECK(call.malloc((size_t)1 << 48) == NULL);
        CHECK_EQ(errno, ENOMEM);
        CHECK(call.malloc((size_t)1 << 62) == NULL);
        CHECK(call.memalign((size_t)1 << 30, (size_t)1 << 46) == NULL);
    }
}

static void closed_error(void *unused) {
    (void)unused;
    (void)close(2);
    (void)close(1);
    (void)close(0);
    harness_error = -1;
    requests_that_fail_at_once();
    void *block = call.malloc(100);
    call.free(block);
    call.free(hide(block));
}

// The message does not fit into a full pipe, and nobody reads: the process must end all the same.
static void full_pipe(void *unused) {
    int ends[2];
    (void)unused;
    REQUIRE(pipe2(ends, O_NONBLOCK) == 0);
    char filler[4096];
    memset(filler, 'x', sizeof(filler));
    while (write(ends[1], filler, sizeof(filler)) > 0) {
    }
    while (write(ends[1], filler, 1) > 0) {
    }
    REQUIRE(dup2(ends[1], 2) == 2);
    requests_that_fail_at_once();
    void *block = call.malloc(100);
    call.free(block);
    call.free(hide(block));
}

static void expect_abort_signal(void (*body)(void *), const char *name) {
    struct child_end end = run_child(body, NULL, 5);
    check_end(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT, &end, name);
}

int main(void) {
    entry_begin(60);
    // In a language with messages of its own, if there is one.
    (void)setenv("LC_ALL", "de_DE.UTF-8", 1);
    expect_silence(odd_requests, "odd requests");
    expect_silence(exhaustion, "exhaustion");
    expect_silence(failing_kernel, "a failing kernel");
    expect_abort_signal(closed_error, "an abort with standard error closed");
    expect_abort_signal(full_pipe, "an abort with standard error blocked");
    return test_end();
}

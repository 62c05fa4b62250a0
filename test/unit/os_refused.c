// os_refused.c - calls that fail change nothing: on purpose, or on kernels that know less.
//
// The other kernels are made by a filter of system calls in a child: it answers a call with an
// error, or with success while nothing is done.
#include <config.h>

#include "base.h"
#include "harness.h"
#include "os.h"
#include "probe.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static uint8_t *place; // four pages: two to write, two reserved

static void place_new(void) {
    place = pma_os_reserve(NULL, 4 * pma_page_size);
    REQUIRE(place != NULL && pma_os_commit(place, 2 * pma_page_size));
    memset(place, 6, 2 * pma_page_size);
}

static bool place_is_unchanged(void) {
    return is_writable(place) && is_filled(place, 6, 2 * pma_page_size) &&
           !is_readable(place + 2 * pma_page_size);
}

// ---- failing on purpose

static bool call_reserve(void) {
    void *start = pma_os_reserve(NULL, pma_page_size);
    return start != NULL && munmap(start, pma_page_size) == 0;
}

static bool call_map(void) {
    void *start = pma_os_map(NULL, pma_page_size);
    return start != NULL && munmap(start, pma_page_size) == 0;
}

static bool call_map_readonly(void) {
    void *start = pma_os_map_readonly(NULL, pma_page_size);
    return start != NULL && munmap(start, pma_page_size) == 0;
}

static bool call_unmap(void) {
    return pma_os_unmap(place, pma_page_size);
}

static bool call_commit(void) {
    return pma_os_commit(place + 2 * pma_page_size, pma_page_size);
}

static bool call_protect(void) {
    return pma_os_protect(place, pma_page_size);
}

static bool call_decommit(void) {
    return pma_os_decommit(place, pma_page_size);
}

static bool call_purge(void) {
    return pma_os_purge(place, pma_page_size);
}

static bool call_populate(void) {
    return pma_os_populate(place, pma_page_size);
}

static bool call_remap(void) {
    void *target = pma_os_reserve(NULL, 8 * pma_page_size);
    return target != NULL &&
           pma_os_remap(place, 2 * pma_page_size, 8 * pma_page_size, target) == target;
}

static bool call_wipe(void) {
    return pma_os_wipe_on_fork(place, pma_page_size);
}

static bool call_random(void) {
    uint64_t number = 0;
    return pma_os_random(&number, sizeof(number)) && number != 0;
}

static const struct {
    const char *name;
    bool (*call)(void);
} calls[] = {
    { "reserve", call_reserve },   { "map", call_map },           { "readonly", call_map_readonly },
    { "unmap", call_unmap },       { "commit", call_commit },     { "protect", call_protect },
    { "decommit", call_decommit }, { "purge", call_purge },       { "remap", call_remap },
    { "wipe", call_wipe },         { "populate", call_populate }, { "random", call_random },
};

static void check_injection(void) {
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        const char *name = calls[i].name;
        place_new();
        pma_os_fail_at(1, false);
        uint64_t before = pma_os_calls();
        CHECK_SAY(!calls[i].call(), "%s did not fail", name);
        CHECK_SAY(pma_os_calls() == before + 1, "%s counts wrongly", name);
        CHECK_SAY(place_is_unchanged(), "%s failed and changed something", name);
        CHECK_SAY(calls[i].call(), "%s fails again", name);
        place_new();
        pma_os_fail_at(3, true);
        CHECK(call_random() && call_random());
        for (int round = 0; round < 3; round++) {
            CHECK_SAY(!calls[i].call(), "%s did not fail forever", name);
            CHECK_SAY(place_is_unchanged(), "%s failed and changed something", name);
        }
        pma_os_fail_at(0, false);
        CHECK_SAY(calls[i].call(), "%s still fails", name);
    }
}

// ---- the environment

static void check_hooks(const char *page, const char *fail, size_t size, const char *results) {
    REQUIRE(setenv("PMA_TEST_PAGE", page, 1) == 0 && setenv("PMA_TEST_FAIL", fail, 1) == 0);
    pma_os_init();
    CHECK_EQ(pma_page_size, size);
    for (const char *result = results; *result != '\0'; result++) {
        CHECK_SAY(call_random() == (*result == 'y'), "%s: %s at %d", fail, results,
                  (int)(result - results));
    }
}

static void check_environment(void *argument) {
    (void)argument;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    check_hooks("65536", "1", 65536, "nyyy");
    check_hooks("0", "3", page, "yynyy");
    check_hooks("24576", "2+", page, "ynnnn");
    check_hooks("131072", "0", page, "yyyy");
    check_hooks("1024", "", page, "yyyy");
    check_hooks("nonsense", "nonsense", page, "yyyy");
}

// ---- other kernels

// Answers the call with the error (0: success, and nothing is done) if this argument masked is so.
struct answer {
    uint32_t call, argument, mask, value, error;
};

#define LOW_HALF (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 4)

static void install(struct answer answer) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, answer.call, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 offsetof(struct seccomp_data, args) + 8 * answer.argument + LOW_HALF),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, answer.mask),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, answer.value, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | answer.error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        _exit(EXIT_SKIP);
    }
}

#define FIXED_NOREPLACE 0x100000u
#define INSECURE 4u

// A hint is kept or the call fails, where the flag that says so is not known.
static void without_noreplace(void *error) {
    uint8_t *taken = place + pma_page_size;
    uint8_t *free_place = pma_os_reserve(NULL, pma_page_size);
    REQUIRE(free_place != NULL && pma_os_unmap(free_place, pma_page_size));
    install(
        (struct answer){ SYS_mmap, 3, FIXED_NOREPLACE, FIXED_NOREPLACE, *(const uint32_t *)error });
    CHECK(pma_os_reserve(taken, pma_page_size) == NULL);
    CHECK(pma_os_map_readonly(taken, pma_page_size) == NULL);
    CHECK(place_is_unchanged());
    CHECK(pma_os_reserve(free_place, pma_page_size) == free_place);
}

// No mapping over another: pages are closed and dropped.
static void without_map_fixed(void *argument) {
    (void)argument;
    install((struct answer){ SYS_mmap, 3, MAP_FIXED, MAP_FIXED, ENOMEM });
    CHECK(pma_os_decommit(place, pma_page_size));
    CHECK(!is_readable(place));
    CHECK(pma_os_commit(place, pma_page_size) && is_zero(place, pma_page_size));
}

// Nor can they be dropped: all is as it was.
static void without_any_drop(void *argument) {
    (void)argument;
    install((struct answer){ SYS_mmap, 3, MAP_FIXED, MAP_FIXED, ENOMEM });
    install((struct answer){ SYS_madvise, 2, UINT32_MAX, MADV_DONTNEED, EINVAL });
    CHECK(!pma_os_purge(place, pma_page_size));
    CHECK(!pma_os_decommit(place, pma_page_size));
    CHECK(place_is_unchanged());
}

// The answer is success, and the pages are as they were.
static void with_purge_ignored(void *argument) {
    (void)argument;
    install((struct answer){ SYS_mmap, 3, MAP_FIXED, MAP_FIXED, ENOMEM });
    install((struct answer){ SYS_madvise, 2, UINT32_MAX, MADV_DONTNEED, 0 });
    for (int round = 0; round < 2; round++) {
        CHECK(!pma_os_purge(place, pma_page_size));
        CHECK(!pma_os_decommit(place, pma_page_size));
        CHECK(place_is_unchanged());
    }
}

// Every advice is answered with success.
static void with_all_advice_ignored(void *argument) {
    (void)argument;
    install((struct answer){ SYS_madvise, 0, 0, 0, 0 });
    CHECK(!pma_os_purge(place, pma_page_size));
    CHECK(!pma_os_wipe_on_fork(place, pma_page_size));
    CHECK(place_is_unchanged());
}

// While there is no page to try it on the answer is no, but not for good.
static void with_purge_untried(void *argument) {
    (void)argument;
    struct rlimit limit, none;
    REQUIRE(getrlimit(RLIMIT_AS, &limit) == 0);
    none = (struct rlimit){ 0, limit.rlim_max };
    REQUIRE(setrlimit(RLIMIT_AS, &none) == 0);
    CHECK(!pma_os_purge(place, pma_page_size));
    CHECK(place_is_unchanged());
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
    CHECK(pma_os_purge(place, pma_page_size));
    CHECK(is_zero(place, pma_page_size));
}

// The generator is not ready: it is asked for what it has.
static void with_random_not_ready(void *argument) {
    (void)argument;
    install((struct answer){ SYS_getrandom, 2, UINT32_MAX, 1, EAGAIN });
    CHECK(call_random());
    install((struct answer){ SYS_getrandom, 2, UINT32_MAX, INSECURE, EINVAL });
    CHECK(!call_random());
}

static void without_random(void *argument) {
    (void)argument;
    install((struct answer){ SYS_getrandom, 0, 0, 0, ENOSYS });
    CHECK(!call_random());
}

// Nothing comes, and no error either: it must not be asked without end.
static void with_random_of_nothing(void *argument) {
    (void)argument;
    install((struct answer){ SYS_getrandom, 0, 0, 0, 0 });
    CHECK(!call_random());
}

// More processors than the first mask has room for; or more than any has.
static void with_many_processors(void *argument) {
    (void)argument;
    const unsigned count = pma_os_processors();
    install((struct answer){ SYS_sched_getaffinity, 1, UINT32_MAX, 1024, EINVAL });
    install((struct answer){ SYS_sched_getaffinity, 1, UINT32_MAX, 2048, EINVAL });
    CHECK_EQ(pma_os_processors(), count);
    install((struct answer){ SYS_sched_getaffinity, 1, UINT32_MAX, 4096, EINVAL });
    CHECK_EQ(pma_os_processors(), 1);
}

static void without_populate_and_wipe(void *argument) {
    (void)argument;
    install((struct answer){ SYS_madvise, 2, UINT32_MAX, 23, EINVAL });
    install((struct answer){ SYS_madvise, 2, UINT32_MAX, 18, EINVAL });
    CHECK(!pma_os_populate(place, pma_page_size));
    CHECK(!pma_os_wipe_on_fork(place, pma_page_size));
    CHECK(place_is_unchanged());
}

// None of our calls shows in errno, whether it fails or not.
static void check_errno(void) {
    uint8_t bytes[16];
    errno = 1234;
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        void *nowhere = (void *)(pma_page_size * 16);
        (void)calls[i].call();
        (void)pma_os_unmap(NULL, SIZE_MAX);
        (void)pma_os_commit(nowhere, pma_page_size);
        (void)pma_os_protect(nowhere, pma_page_size);
        (void)pma_os_populate(nowhere, pma_page_size);
        (void)pma_os_purge(nowhere, pma_page_size);
        (void)pma_os_wipe_on_fork(nowhere, pma_page_size);
        (void)pma_os_reserve(place + pma_page_size, pma_page_size);
        (void)pma_os_random((void *)nowhere, 8);
        (void)pma_os_overwrite(nowhere, bytes, 8);
    }
    pma_os_init();
    pma_os_random_fallback(bytes, sizeof(bytes));
    (void)pma_os_time();
    (void)pma_os_processors();
    (void)pma_os_read_file("/nonexistent/file", (char *)bytes, sizeof(bytes));
    (void)pma_os_is_privileged();
    pma_os_write(-1, "x", 1);
    uint32_t word = 0;
    pma_os_wait(&word, 1);
    pma_os_yield();
    CHECK_EQ(errno, 1234);
}

static void check_kernel(void (*kernel)(void *), void *argument, const char *name) {
    place_new();
    struct child_end end = run_child(kernel, argument, 20);
    if (WIFEXITED(end.status) && WEXITSTATUS(end.status) == EXIT_SKIP) {
        test_skip("no filters of system calls here");
    }
    expect_exit(&end, 0, name);
}

int main(void) {
    test_begin(120);
    pma_os_init();
    // The kernels come first: whether a purge works is asked once in a process.
    static uint32_t errors[3] = { EOPNOTSUPP, EINVAL, EEXIST };
    place_new();
    check_kernel(with_purge_ignored, NULL, "purge is ignored");
    check_kernel(with_all_advice_ignored, NULL, "all advice is ignored");
    check_kernel(with_purge_untried, NULL, "purge cannot be tried");
    check_kernel(without_noreplace, &errors[0], "no MAP_FIXED_NOREPLACE, EOPNOTSUPP");
    check_kernel(without_noreplace, &errors[1], "no MAP_FIXED_NOREPLACE, EINVAL");
    check_kernel(without_map_fixed, NULL, "no MAP_FIXED");
    check_kernel(without_any_drop, NULL, "no way to drop pages");
    check_kernel(with_random_not_ready, NULL, "generator not ready");
    check_kernel(without_random, NULL, "no generator");
    check_kernel(with_random_of_nothing, NULL, "generator of nothing");
    check_kernel(with_many_processors, NULL, "many processors");
    check_kernel(without_populate_and_wipe, NULL, "no populate, no wipe");
    check_injection();
    struct child_end end = run_child(check_environment, NULL, 20);
    expect_exit(&end, 0, "the environment");
    place_new();
    check_errno();
    return test_end();
}

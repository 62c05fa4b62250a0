// Does a program that locks all its memory, now and later, still get what it asks for?
#include "../figures.h"
#include "../work.h"

#include <pthread.h>
#include <sys/mman.h>

enum { SMALL = 1000, LARGE = 8, REQUESTED_KIB = SMALL * 4 + LARGE * 1024 };

static void *in_a_thread(void *unused) {
    CHECK(work_run(1, 1000, 100000) == 0);
    return unused;
}

static void allocate_locked(void *flags) {
    static char *small[SMALL];
    static char *large[LARGE];
    long rss_before = rss_kib();
    if (mlockall(*(const int *)flags) != 0) {
        say("mlockall: %s\n", strerror(errno));
        _exit(EXIT_SKIP);
    }
    for (size_t i = 0; i < SMALL; i++) {
        small[i] = (char *)(i % 2 == 0 ? malloc(4096) : calloc(1, 4096));
        REQUIRE(small[i] != NULL);
        CHECK(i % 2 == 0 || work_is_marked((unsigned char *)small[i], 4096, 0));
        memset(small[i], 1, 4096);
    }
    for (size_t i = 0; i < LARGE; i++) {
        large[i] = (char *)malloc(1 << 20);
        REQUIRE(large[i] != NULL);
        memset(large[i], 1, 1 << 20);
    }
    CHECK_AT_MOST(status_kib("VmLck:"), 3 * REQUESTED_KIB + 8192);
    CHECK_AT_MOST(rss_kib() - rss_before, 3 * REQUESTED_KIB + 8192);
    pthread_attr_t attributes;
    pthread_t thread;
    REQUIRE(pthread_attr_init(&attributes) == 0);
    REQUIRE(pthread_attr_setstacksize(&attributes, 1 << 16) == 0);
    REQUIRE(pthread_create(&thread, &attributes, in_a_thread, NULL) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
    for (size_t i = 0; i < SMALL; i++) {
        free(small[i]);
    }
    for (size_t i = 0; i < LARGE; i++) {
        free(large[i]);
    }
    // What was freed while locked must not be taken for zeroes.
    for (size_t i = 0; i < 2 * LARGE; i++) {
        unsigned char *again = (unsigned char *)hide(calloc(1, 500000));
        REQUIRE(again != NULL);
        CHECK(work_is_marked(again, 500000, 0));
        memset(again, 1, 500000);
        free(again);
    }
}

// Without privileges the limit of locked memory counts, also against what is only reserved.
static void allocate_locked_under_a_limit(void *flags) {
    struct rlimit limit;
    REQUIRE(getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    if (limit.rlim_max < 64 << 20) {
        say("not tested under a limit: only %zu bytes may be locked\n", (size_t)limit.rlim_max);
        return;
    }
    limit.rlim_cur = limit.rlim_max = 64 << 20;
    REQUIRE(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    if (geteuid() == 0) {
        REQUIRE(setgid(65534) == 0 && setuid(65534) == 0);
    }
    allocate_locked(flags);
}

int main(void) {
    api_begin(60);
    int modes[] = { MCL_CURRENT | MCL_FUTURE, MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT };
    for (size_t i = 0; i < 2; i++) {
        struct child_end end = run_child(allocate_locked_under_a_limit, &modes[i], 20);
        expect_exit(&end, 0, "locked memory under a limit");
        if (geteuid() == 0) {
            end = run_child(allocate_locked, &modes[i], 20);
            expect_exit(&end, 0, "locked memory");
        }
    }
    return test_end();
}

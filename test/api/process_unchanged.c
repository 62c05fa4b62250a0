// Does the library leave the process as it was: no threads, handlers, masks, limits or switches
// that programs started from it would inherit, and signals that reach who waits for them?
#include "../work.h"
#include "../figures.h"

#include <pthread.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/prctl.h>

static size_t read_file(const char *path, char *text, size_t room) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    for (ssize_t n; file >= 0 && (n = read(file, text + length, room - 1 - length)) > 0;) {
        length += (size_t)n;
    }
    text[length] = 0;
    if (file >= 0) {
        (void)close(file);
    }
    return length;
}

// One line of a file in procfs, compared with the parent's, who has another malloc.
static void same_as_parent(const char *file, const char *name) {
    char path[64];
    char mine[8192];
    char theirs[8192];
    (void)snprintf(path, sizeof(path), "/proc/self/%s", file);
    (void)read_file(path, mine, sizeof(mine));
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", getppid(), file);
    if (read_file(path, theirs, sizeof(theirs)) == 0) {
        return;
    }
    const char *left = strstr(mine, name);
    const char *right = strstr(theirs, name);
    if (left == NULL || right == NULL) {
        CHECK(left == right);
        return;
    }
    size_t length = strcspn(left, "\n");
    CHECK_SAY(length == strcspn(right, "\n") && memcmp(left, right, length) == 0,
              "%s: \"%.*s\" was \"%.*s\"", file, (int)length, left, (int)strcspn(right, "\n"),
              right);
}

static void nothing_is_inherited(void) {
    same_as_parent("status", "THP_enabled:");
    same_as_parent("status", "NoNewPrivs:");
    same_as_parent("status", "CapEff:");
    same_as_parent("limits", "");
    same_as_parent("personality", "");
    same_as_parent("coredump_filter", "");
    same_as_parent("oom_score_adj", "");
    CHECK_EQ(status_kib("Threads:"), 1);
    CHECK_EQ(status_kib("SigCgt:"), 0);
    CHECK_EQ(status_kib("SigBlk:"), 0);
    CHECK_EQ(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 1);
    CHECK_EQ(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0), 0);
    // What the kernel was given at the start is what the program sees.
    char text[32768];
    size_t length = read_file("/proc/self/environ", text, sizeof(text));
    size_t at = 0;
    for (char **variable = environ; *variable != NULL && at < length; variable++) {
        CHECK_SAY(strcmp(*variable, text + at) == 0, "%s was %s", *variable, text + at);
        at += strlen(text + at) + 1;
    }
    CHECK(at == length || length == sizeof(text) - 1);
}

// The kernel refuses this to a process with a second thread, visible or hidden.
static void new_user_namespace(void *unused) {
    (void)unused;
    CHECK(work_run(1, 1000, 4 << 20) == 0);
    CHECK_SAY(unshare(CLONE_NEWUSER) == 0 || errno != EINVAL, "unshare: %s", strerror(errno));
}

static volatile bool stop;

static void *work_until_stopped(void *seed) {
    sigset_t before;
    sigset_t after;
    struct work work;
    memset(&before, 0, sizeof(before));
    memset(&after, 0, sizeof(after));
    work_begin(&work, (uint64_t)(uintptr_t)seed, 1 << 20);
    REQUIRE(pthread_sigmask(SIG_SETMASK, NULL, &before) == 0);
    while (!stop) {
        work_step(&work);
    }
    work_end(&work);
    REQUIRE(pthread_sigmask(SIG_SETMASK, NULL, &after) == 0);
    CHECK(memcmp(&before, &after, sizeof(before)) == 0);
    return NULL;
}

// Every thread of the program blocks the signals; one that did not would be killed by them.
static void signals_reach_who_waits(void *unused) {
    sigset_t signals;
    pthread_t threads[3];
    struct timespec patience = { 5, 0 };
    (void)unused;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGUSR1);
    (void)sigaddset(&signals, SIGTERM);
    REQUIRE(pthread_sigmask(SIG_BLOCK, &signals, NULL) == 0);
    for (uintptr_t i = 0; i < 3; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, work_until_stopped, (void *)(i + 1)) == 0);
    }
    for (int i = 0; i < 1000; i++) {
        int sent = i % 2 == 0 ? SIGUSR1 : SIGTERM;
        REQUIRE(kill(getpid(), sent) == 0);
        CHECK_EQ(sigtimedwait(&signals, NULL, &patience), sent);
    }
    stop = true;
    for (int i = 0; i < 3; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
}

int main(void) {
    // Whoever started this may block signals of his own.
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    // Before the harness sets limits and handlers of its own.
    CHECK(work_run(1, 20000, 4 << 20) == 0);
    nothing_is_inherited();
    api_begin(60);
    struct child_end end = run_child(new_user_namespace, NULL, 10);
    expect_exit(&end, 0, "one thread only");
    end = run_child(signals_reach_who_waits, NULL, 30);
    expect_exit(&end, 0, "signals");
    return test_end();
}

// Does the heap work at the first moment of a process, and in poor surroundings: before any
// constructor, inside dlsym, without /proc, descriptors or standard streams, on a tiny stack?
#include "../work.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>

static size_t early_refusals = SIZE_MAX;

static void use_every_call(void) {
    void *block = NULL;
    CHECK(posix_memalign(&block, 64, 100) == 0);
    free(hide(block));
    block = hide(realloc(hide(calloc(3, 5)), 5000));
    CHECK(block != NULL && malloc_usable_size(block) >= 5000);
    free(block);
    // The loader allocates for its messages.
    CHECK(dlsym(RTLD_NEXT, "there is no such symbol") == NULL);
    CHECK(dlerror() != NULL);
    CHECK(dlsym(RTLD_DEFAULT, "malloc") != NULL);
}

// Runs before the constructors of every library, the preloaded one's included.
static void before_constructors(int count, char **arguments, char **environment) {
    (void)count;
    (void)arguments;
    (void)environment;
    early_refusals = work_run(1, 2000, 1 << 20);
    use_every_call();
}

__attribute__((section(".preinit_array"),
               used)) static void (*const before)(int, char **, char **) = before_constructors;

static size_t handlers_run;

static void count_handler(void) {
    free(hide(malloc(100)));
    handlers_run++;
}

// The list of exit handlers grows by calloc under a lock of libc's own.
__attribute__((constructor(101))) static void first_constructor(void) {
    for (int i = 0; i < 200; i++) {
        CHECK(atexit(count_handler) == 0);
    }
    CHECK(work_run(2, 2000, 1 << 20) == 0);
}

static void start_again(void) {
    char *arguments[] = { (char *)(uintptr_t) "early", (char *)(uintptr_t) "again", NULL };
    (void)execv("/proc/self/exe", arguments);
    _exit(EXIT_HARD);
}

static void without_streams(void *unused) {
    (void)unused;
    for (int i = 0; i < 3; i++) {
        (void)close(i);
    }
    start_again();
}

static void without_descriptors(void *unused) {
    struct rlimit none = { 0, 0 };
    (void)unused;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
    work_on_stack(1 << 16);
    CHECK(work_run(4, 10000, 4 << 20) == 0);
}

// An open file of the program itself stands in for its name, which is gone with /proc.
static void without_proc(void *unused) {
    char *arguments[] = { (char *)(uintptr_t) "early", (char *)(uintptr_t) "again", NULL };
    char *environment[] = { NULL, NULL };
    char preload[PATH_MAX + 20];
    (void)unused;
    const char *library = getenv("LD_PRELOAD");
    if (library != NULL) {
        (void)snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", library);
        environment[0] = preload;
    }
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    REQUIRE(length > 0);
    path[length] = 0;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
        mount("none", "/proc", "tmpfs", MS_NOSUID, NULL) != 0) {
        say("not tested without /proc: %s\n", strerror(errno));
        return;
    }
    (void)execve(path, arguments, environment);
    _exit(EXIT_HARD);
}

static void exit_normally(void *unused) {
    (void)unused;
    exit(0);
}

static void expect_good(void (*body)(void *), const char *name) {
    struct child_end end = run_child(body, NULL, 20);
    expect_exit(&end, 0, name);
}

int main(int count, char **arguments) {
    (void)arguments;
    CHECK_EQ(early_refusals, 0);
    if (count > 1) {
        CHECK(work_run(5, 3000, 1 << 20) == 0);
        return test_end();
    }
    api_begin(60);
    work_on_stack(PTHREAD_STACK_MIN);
    work_on_stack(1 << 16);
    expect_good(without_streams, "without standard streams");
    expect_good(without_descriptors, "without descriptors");
    expect_good(without_proc, "without /proc");
    expect_good(exit_normally, "200 exit handlers");
    return test_end();
}

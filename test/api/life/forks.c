// Children of every kind.
#include "life.h"
#include "../../figures.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static volatile bool stop;

static void *work_until_stopped(void *seed) {
    struct work work;
    work_begin(&work, (uint64_t)(uintptr_t)seed, 200000);
    while (!stop) {
        work_step(&work);
    }
    work_end(&work);
    return NULL;
}

static void *work_shortly(void *seed) {
    CHECK(work_run((uint64_t)(uintptr_t)seed, 300, 1 << 20) == 0);
    return NULL;
}

static void start_threads(pthread_t *threads, size_t count, void *(*body)(void *)) {
    for (size_t i = 0; i < count; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, body, (void *)(uintptr_t)(i + 1)) == 0);
    }
}

static void join_threads(const pthread_t *threads, size_t count) {
    stop = true;
    for (size_t i = 0; i < count; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
}

static void live(bool threads) {
    watchdog(20);
    failures = 0;
    CHECK(work_run(9, 500, 1 << 20) == 0);
    if (threads) {
        pthread_t others[2];
        start_threads(others, 2, work_shortly);
        join_threads(others, 2);
    }
    _exit(test_end());
}

static void wait_for(pid_t child, const char *what) {
    int status = -1;
    REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_SAY(status == 0, "%s: child's status is %#x", what, (unsigned)status);
}

// It runs in the parent's memory.
static void vfork_once(void) {
    pid_t child = vfork();
    if (child == 0) {
        free(hide(malloc(5000)));
        _exit(0);
    }
    wait_for(child, "vfork");
}

static void by_vfork(void) {
    for (int i = 0; i < 50; i++) {
        vfork_once();
    }
    CHECK(work_run(1, 1000, 1 << 20) == 0);
}

static void by__Fork(void) {
    for (int i = 0; i < 30; i++) {
        pid_t child = _Fork();
        if (child == 0) {
            live(false);
        }
        wait_for(child, "_Fork");
    }
}

static void by_clone_without_handlers(void) {
    for (int i = 0; i < 30; i++) {
        pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (child == 0) {
            live(false);
        }
        wait_for(child, "clone");
    }
}

static void *fork_here(void *unused) {
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            live(true);
        }
        wait_for(child, "fork in a thread");
    }
    return unused;
}

static void from_threads(void) {
    pthread_t threads[4];
    pthread_t others[2];
    start_threads(others, 2, work_until_stopped);
    start_threads(threads, 4, fork_here);
    for (size_t i = 0; i < 4; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    join_threads(others, 2);
}

// ---- other people's handlers

static void fork_beside_threads(void) {
    pthread_t threads[2];
    start_threads(threads, 2, work_until_stopped);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            live(true);
        }
        wait_for(child, "fork with handlers that allocate");
    }
    join_threads(threads, 2);
}

// Constructors run from the end of the list: the module registers first.
static void with_handlers(void *unused) {
    static char list[2 * PATH_MAX];
    const char *others = getenv("LD_PRELOAD");
    (void)unused;
    (void)snprintf(list, sizeof(list), "%s %s", others != NULL ? others : "",
                   life_module("handlers.so"));
    (void)setenv("LD_PRELOAD", list, 1);
    life_restart("beside_threads");
}

static void with_handlers_that_allocate(void) {
    life_child(with_handlers, NULL, "a library's handlers of fork");
    // And registered after this library's.
    void *handle = dlopen(life_module("handlers.so"), RTLD_NOW);
    REQUIRE(handle != NULL);
    fork_beside_threads();
}

// ---- the C library's own locks: fflush has the list of files and waits for a file, getline has
// the file and waits for memory, fork has the heap and waits for the list

static void *read_lines(void *unused) {
    FILE *file = tmpfile();
    REQUIRE(file != NULL);
    for (int i = 0; i < 100000; i++) {
        (void)fputc('x', file);
    }
    (void)fputc('\n', file);
    while (!stop) {
        char *line = NULL;
        size_t size = 0;
        rewind(file);
        CHECK(getline(&line, &size, file) > 0);
        free(line);
    }
    (void)fclose(file);
    return unused;
}

static void *flush_all(void *unused) {
    while (!stop) {
        (void)fflush(NULL);
    }
    return unused;
}

static void beside_open_files(void) {
    pthread_t readers[3];
    pthread_t flusher[1];
    start_threads(readers, 3, read_lines);
    start_threads(flusher, 1, flush_all);
    struct timespec start;
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        pid_t child = fork();
        if (child == 0) {
            free(hide(malloc(100000)));
            _exit(0);
        }
        wait_for(child, "fork beside open files");
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - start.tv_sec < 2);
    join_threads(readers, 3);
    join_threads(flusher, 1);
}

// ---- a signal's handler forks, whatever it interrupted; alone, as the C library allows

static int forks;

static void fork_in_handler(int number) {
    int error = errno;
    (void)number;
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    wait_for(child, "fork in a handler");
    forks++;
    errno = error;
}

static void in_a_handler(void) {
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_handler = fork_in_handler;
    action.sa_flags = SA_RESTART;
    REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
    pid_t parent = getpid();
    pid_t sender = fork();
    if (sender == 0) {
        for (int i = 0; i < 400; i++) {
            (void)kill(parent, SIGUSR1);
            (void)usleep(1000);
        }
        _exit(0);
    }
    struct work work;
    work_begin(&work, 5, 1 << 20);
    while (forks < 100) {
        for (int i = 0; i < 20; i++) {
            work_step(&work);
        }
        pid_t child = fork();
        if (child == 0) {
            _exit(0);
        }
        wait_for(child, "fork that a handler interrupts");
    }
    (void)kill(sender, SIGKILL);
    (void)waitpid(sender, NULL, 0);
    work_end(&work);
}

// ---- a child that goes on for long

enum { LEFT_THREADS = 6, LEFT_BLOCKS = 4000, LEFT_SIZE = 1000 };

static char *left[LEFT_THREADS][LEFT_BLOCKS];
static pthread_barrier_t ready;

static void *leave_blocks(void *argument) {
    size_t number = (size_t)(uintptr_t)argument - 1;
    for (size_t i = 0; i < LEFT_BLOCKS; i++) {
        left[number][i] = (char *)hide(malloc(LEFT_SIZE));
        memset(left[number][i], (int)number, LEFT_SIZE);
    }
    (void)pthread_barrier_wait(&ready);
    (void)pthread_barrier_wait(&ready);
    return NULL;
}

// Frees what the threads left, and lives on it: rounds of threads must not need more than they had.
static void go_on(void) {
    watchdog(20);
    failures = 0;
    for (size_t t = 0; t < LEFT_THREADS; t++) {
        for (size_t i = 0; i < LEFT_BLOCKS; i++) {
            CHECK(left[t][i][0] == (char)t && left[t][i][LEFT_SIZE - 1] == (char)t);
            free(hide(left[t][i]));
        }
    }
    long before = status_kib("VmData:");
    for (int round = 0; round < 30; round++) {
        pthread_t threads[2];
        stop = false;
        start_threads(threads, 2, work_shortly);
        join_threads(threads, 2);
    }
    // The stacks of two threads stay with the C library.
    CHECK_AT_MOST(status_kib("VmData:") - before, 2 * 8192 + 8192);
    _exit(test_end());
}

static void whose_child_goes_on_for_long(void) {
    pthread_t threads[LEFT_THREADS];
    REQUIRE(pthread_barrier_init(&ready, NULL, LEFT_THREADS + 1) == 0);
    start_threads(threads, LEFT_THREADS, leave_blocks);
    (void)pthread_barrier_wait(&ready);
    pid_t child = fork();
    if (child == 0) {
        go_on();
    }
    wait_for(child, "a child that goes on");
    (void)pthread_barrier_wait(&ready);
    join_threads(threads, LEFT_THREADS);
}

static const struct life_case cases[] = {
    { "by_vfork", by_vfork },
    { "by__Fork", by__Fork },
    { "by_clone_without_handlers", by_clone_without_handlers },
    { "from_threads", from_threads },
    { "with_handlers_that_allocate", with_handlers_that_allocate },
    { "beside_open_files", beside_open_files },
    { "in_a_handler", in_a_handler },
    { "whose_child_goes_on_for_long", whose_child_goes_on_for_long },
};

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "beside_threads") == 0) {
        test_begin(20);
        fork_beside_threads();
        return test_end();
    }
    return life_main(count, arguments, cases, sizeof(cases) / sizeof(cases[0]));
}

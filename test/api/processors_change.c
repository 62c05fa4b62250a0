// Does it matter which processors a program may use, or that this changes while threads work?
#include "../work.h"

#include <pthread.h>
#include <sched.h>
#include <sys/sysinfo.h>

static volatile bool stop;

static void *work_until_stopped(void *seed) {
    struct work work;
    work_begin(&work, (uint64_t)(uintptr_t)seed, 200000);
    while (!stop) {
        work_step(&work);
    }
    work_end(&work);
    CHECK_EQ(work.refused, 0);
    return NULL;
}

static void pin(pid_t who, int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (processor < 0 || i == processor) {
            CPU_SET(i, &set);
        }
    }
    // A container may have other processors than the ones that are counted.
    (void)sched_setaffinity(who, sizeof(set), &set);
}

static void narrow_and_widen(void) {
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, work_until_stopped, (void *)(i + 1)) == 0);
    }
    for (int i = 0; i < 200; i++) {
        int processor = i % 3 == 0 ? -1 : i % get_nprocs_conf();
        pin(0, processor);
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(i % get_nprocs_conf(), &set);
        (void)pthread_setaffinity_np(threads[i % 4], sizeof(set), &set);
        (void)usleep(2000);
    }
    stop = true;
    for (int i = 0; i < 4; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
}

static void start_on(void *processor) {
    pin(0, *(const int *)processor);
    (void)execl("/proc/self/exe", "processors_change", "again", (char *)NULL);
    _exit(EXIT_HARD);
}

int main(int count, char **arguments) {
    (void)arguments;
    if (count > 1) {
        // Started on one processor, and the machine has more than it knew of.
        pin(0, -1);
        narrow_and_widen();
        return test_end();
    }
    api_begin(60);
    narrow_and_widen();
    int last = get_nprocs_conf() - 1;
    struct child_end end = run_child(start_on, &last, 20);
    expect_exit(&end, 0, "started on one processor");
    return test_end();
}

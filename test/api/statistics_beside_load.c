// Can statistics be asked for while threads work and fork, and be written to a pipe that is read
// slowly, with nobody waiting for them?
#include "../figures.h"
#include "../work.h"

#include <pthread.h>

static bool stop;
static double longest[3];

static void *work_and_time(void *argument) {
    size_t number = (size_t)(uintptr_t)argument;
    struct work work;
    work_begin(&work, number, 100000);
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        double start = seconds_now();
        work_step(&work);
        double time = seconds_now() - start;
        longest[number] = time > longest[number] ? time : longest[number];
    }
    work_end(&work);
    return NULL;
}

// A slow reader: a report that holds a lock while it writes would hold it for long.
static void *read_slowly(void *descriptor) {
    char text[64];
    while (read(*(const int *)descriptor, text, sizeof(text)) > 0) {
        (void)usleep(200);
    }
    return NULL;
}

static void ask_everything(void) {
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    REQUIRE(stream != NULL);
    CHECK_EQ(malloc_info(0, stream), 0);
    CHECK_EQ(fclose(stream), 0);
    CHECK(length > 0);
    free(text);
    malloc_stats();
    struct mallinfo2 info = mallinfo2();
    CHECK(info.uordblks > 0 || info.hblkhd > 0);
}

int main(void) {
    int ends[2];
    pthread_t threads[3];
    pthread_t reader;
    api_begin(60);
    // Statistics go to standard error, which is the pipe from here on.
    harness_error = dup(2);
    REQUIRE(harness_error >= 0 && pipe(ends) == 0 && dup2(ends[1], 2) == 2 && close(ends[1]) == 0);
    REQUIRE(pthread_create(&reader, NULL, read_slowly, &ends[0]) == 0);
    for (uintptr_t i = 0; i < 3; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, work_and_time, (void *)i) == 0);
    }
    double end = seconds_now() + 2;
    for (size_t rounds = 0; seconds_now() < end; rounds++) {
        ask_everything();
        pid_t child = rounds % 4 == 0 ? fork() : -1;
        if (child == 0) {
            watchdog(10);
            (void)dup2(harness_error, 1);
            CHECK_EQ(work_run(1, 100, 100000), 0);
            struct mallinfo2 info = mallinfo2();
            CHECK(info.uordblks + info.hblkhd > 0);
            _exit(test_end());
        }
        int status = 0;
        CHECK(child < 0 || (waitpid(child, &status, 0) == child && status == 0));
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 3; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
        say("the longest step beside the statistics: %.1f ms\n", longest[i] * 1e3);
        // Three busy threads and more share two processors, and forks copy page tables.
        CHECK_SAY(longest[i] < 0.3 * slow_factor(), "a step takes %.0f ms", longest[i] * 1e3);
    }
    (void)close(2);
    REQUIRE(pthread_join(reader, NULL) == 0);
    return test_end();
}

// comingdown.c - how much stays resident after nearly everything was freed, and for how long?
//
//     comingdown WHO THEN [KEPT] [MIN] [MAX] [MIB]         WHO THEN 0 16 1024 1024
//
// MIB of blocks of MIN to MAX bytes, evenly drawn and all of them written, are allocated, and freed
// but for KEPT percent of them, chosen at random. WHO says by whom:
//
//     same    one thread allocates and frees
//     others  four threads allocate, each frees what another one allocated, and all of them live on
//     ended   the same, and the four end before the memory is read
//     freer   one thread allocates, another one only frees and lives on
//
// Threads that live on sleep. THEN is what happens afterwards:
//
//     calls   the first thread allocates and frees one block of 100 bytes every 10 ms for 1.5 s, then the
//             allocator is told to give back what it can (malloc_trim(0), or the call that it has instead)
//     idle    nobody makes any call for 3 s
//
// Printed: the growth of the resident size since before the first block, with all blocks live, at
// once after the frees, after 1.5 s of calls, after the trim, or after 3 s of idleness; the bytes
// that are kept, and those of the pages on which they lie: what an allocator that returns every
// page without a block could reach with this placement; and as lines of bench "series" the resident
// size over the time since the frees.
//
// Not measured: the time of free. The order of the frees is that of the allocations.
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>

#include "bench.h"

enum {
    THREADS_MAX = 4,
    SAMPLES_MAX = 512,
    SAMPLE_MS = 50,
    CALL_MS = 10,
    CALLS_MS = 1500,
    IDLE_MS = 3000
};

struct block {
    char *start;
    uint32_t size;
    uint32_t kept;
};

struct share {
    pthread_t thread;
    struct load *load;
    size_t index;
    struct rng rng;
    struct block *blocks;
    size_t count;
};

struct load {
    size_t threads; // that allocate
    size_t bytes;   // for each of them
    uint32_t min;
    uint32_t max;
    uint32_t kept; // percent
    int ends;      // the threads end after the frees
    pthread_barrier_t step;
    struct share shares[THREADS_MAX];
};

struct sample {
    double seconds;
    size_t rss;
};

struct samples {
    size_t count;
    struct sample all[SAMPLES_MAX];
};

// ---- the load

static void share_allocate(struct share *share) {
    const struct load *load = share->load;
    for (size_t sum = 0; sum < load->bytes; share->count++) {
        struct block *block = &share->blocks[share->count];
        block->size = load->min + rng_below(&share->rng, load->max - load->min + 1);
        block->kept = rng_below(&share->rng, 100) < load->kept;
        block->start = malloc(block->size);
        if (block->start == NULL) {
            bench_fail("no memory after %zu bytes", sum);
        }
        memset(block->start, 1, block->size);
        sum += block->size;
    }
}

static void share_free(struct share *share) {
    for (size_t i = 0; i < share->count; i++) {
        if (!share->blocks[i].kept) {
            free(share->blocks[i].start);
        }
    }
}

static void rest(const struct load *load) {
    while (!load->ends) {
        pause();
    }
}

static void *share_main(void *argument) {
    struct share *share = argument;
    struct load *load = share->load;
    share_allocate(share);
    pthread_barrier_wait(&load->step);
    pthread_barrier_wait(&load->step);
    share_free(&load->shares[(share->index + 1) % load->threads]);
    pthread_barrier_wait(&load->step);
    rest(load);
    return NULL;
}

static void *freer_main(void *argument) {
    struct load *load = argument;
    share_free(&load->shares[0]);
    pthread_barrier_wait(&load->step);
    rest(load);
    return NULL;
}

static void thread_start(pthread_t *thread, void *(*body)(void *), void *argument) {
    if (pthread_create(thread, NULL, body, argument) != 0) {
        bench_fail("no thread");
    }
}

static size_t growth(size_t before) {
    size_t rss = memory_read().rss;
    return rss > before ? rss - before : 0;
}

// Everything is allocated, and freed by whom it is to be. The growth while all of it was live.
static size_t load_in_threads(struct load *load, size_t before) {
    pthread_barrier_init(&load->step, NULL, (unsigned)load->threads + 1);
    for (size_t i = 0; i < load->threads; i++) {
        thread_start(&load->shares[i].thread, share_main, &load->shares[i]);
    }
    pthread_barrier_wait(&load->step);
    size_t full = growth(before);
    pthread_barrier_wait(&load->step);
    pthread_barrier_wait(&load->step);
    for (size_t i = 0; i < load->threads && load->ends; i++) {
        pthread_join(load->shares[i].thread, NULL);
    }
    return full;
}

static size_t load_alone(struct load *load, int other_frees, size_t before) {
    share_allocate(&load->shares[0]);
    size_t full = growth(before);
    if (other_frees) {
        pthread_barrier_init(&load->step, NULL, 2);
        thread_start(&load->shares[0].thread, freer_main, load);
        pthread_barrier_wait(&load->step);
    } else {
        share_free(&load->shares[0]);
    }
    return full;
}

// ---- afterwards

// Each allocator by the call that it has for it; the C library's does nothing to the others.
static void give_back(void) {
    void (*collect)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "mi_collect");
    void (*release)(void) =
        (void (*)(void))dlsym(RTLD_DEFAULT, "MallocExtension_ReleaseFreeMemory");
    int (*control)(const char *, void *, size_t *, void *, size_t) =
        (int (*)(const char *, void *, size_t *, void *, size_t))dlsym(RTLD_DEFAULT, "mallctl");
    if (collect != NULL) {
        collect(1);
    } else if (release != NULL) {
        release();
    } else if (control != NULL) {
        // 4096 stands for all arenas.
        control("thread.tcache.flush", NULL, NULL, NULL, 0);
        control("arena.4096.purge", NULL, NULL, NULL, 0);
    } else {
        malloc_trim(0);
    }
}

static void sleep_ms(unsigned ms) {
    struct timespec time = { ms / 1000, (long)(ms % 1000) * 1000000 };
    nanosleep(&time, NULL);
}

static void sample(struct samples *samples, uint64_t since, size_t before) {
    if (samples->count < SAMPLES_MAX) {
        double seconds = (double)(bench_clock(CLOCK_MONOTONIC) - since) / 1e9;
        samples->all[samples->count++] = (struct sample){ seconds, growth(before) };
    }
}

static void pass(unsigned ms, int with_calls, struct samples *samples, size_t before) {
    uint64_t since = bench_clock(CLOCK_MONOTONIC);
    for (unsigned passed = 0; passed < ms; passed += CALL_MS) {
        sleep_ms(CALL_MS);
        if (with_calls) {
            char *volatile block = malloc(100);
            free(block);
        }
        if (passed % SAMPLE_MS == 0) {
            sample(samples, since, before);
        }
    }
}

// ---- what is kept

// The pages on which the kept blocks lie, counted once each: a hash table of page numbers.
static size_t pages_below_kept(const struct load *load, uint64_t *table, size_t slots,
                               size_t *kept) {
    size_t pages = 0;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    for (size_t s = 0; s < load->threads; s++) {
        for (size_t i = 0; i < load->shares[s].count; i++) {
            const struct block *block = &load->shares[s].blocks[i];
            uint64_t first = (uintptr_t)block->start / page;
            uint64_t last = ((uintptr_t)block->start + block->size - 1) / page;
            *kept += block->kept ? block->size : 0;
            for (uint64_t number = first; block->kept && number <= last; number++) {
                size_t at = number * UINT64_C(0x9e3779b97f4a7c15) % slots;
                while (table[at] != 0 && table[at] != number) {
                    at = (at + 1) % slots;
                }
                pages += table[at] == 0;
                table[at] = number;
            }
        }
    }
    return pages * page;
}

static void series_print(const struct samples *samples, const char *who, const char *then,
                         size_t kept) {
    for (size_t i = 0; i < samples->count; i++) {
        struct line line;
        line_open(&line, "series");
        line_word(&line, "of", "comingdown");
        line_word(&line, "who", who);
        line_word(&line, "then", then);
        line_count(&line, "kept_percent", kept);
        line_number(&line, "seconds", samples->all[i].seconds);
        line_number(&line, "rss_mib", (double)samples->all[i].rss / 1048576);
        line_close(&line);
    }
}

static struct load load_of(int argc, char **argv) {
    static const char *const names[] = { "same", "others", "ended", "freer" };
    size_t who = 0;
    while (argc > 2 && who < 4 && strcmp(argv[1], names[who]) != 0) {
        who++;
    }
    if (argc < 3 || who == 4 || (strcmp(argv[2], "calls") != 0 && strcmp(argv[2], "idle") != 0)) {
        bench_fail("usage: comingdown same|others|ended|freer calls|idle [KEPT] [MIN] [MAX] [MIB]");
    }
    struct load load = { .threads = who == 1 || who == 2 ? THREADS_MAX : 1,
                         .kept = (uint32_t)bench_argument(argc, argv, 3, 0),
                         .min = (uint32_t)bench_argument(argc, argv, 4, 16),
                         .max = (uint32_t)bench_argument(argc, argv, 5, 1024),
                         .bytes = bench_argument(argc, argv, 6, 1024) << 20,
                         .ends = who == 2 };
    if (load.min < 1 || load.min > load.max || load.kept > 100) {
        bench_fail("sizes from 1, and MIN at most MAX; KEPT in percent");
    }
    load.bytes /= load.threads;
    return load;
}

int main(int argc, char **argv) {
    static struct load load;
    load = load_of(argc, argv);
    int calls = strcmp(argv[2], "calls") == 0;
    // The mean size is (min + max) / 2; a quarter more, and some, is never reached.
    size_t places = load.bytes / ((load.min + load.max) / 2) * 5 / 4 + 1024;
    size_t slots = load.kept * load.threads * places / 50 * (load.max / 4096 + 2) + 1;
    uint64_t *table = bench_map(slots * sizeof(*table));
    struct samples *samples = bench_map(sizeof(*samples));
    for (size_t i = 0; i < load.threads; i++) {
        load.shares[i] = (struct share){ .load = &load, .index = i, .rng = rng_new(i) };
        load.shares[i].blocks = bench_map(places * sizeof(struct block));
    }
    size_t before = memory_read_first().rss;
    size_t full = load.threads > 1 ? load_in_threads(&load, before)
                                   : load_alone(&load, strcmp(argv[1], "freer") == 0, before);
    size_t at_once = growth(before);
    pass(calls ? CALLS_MS : IDLE_MS, calls, samples, before);
    size_t later = growth(before);

    struct line line;
    line_open(&line, "comingdown");
    line_word(&line, "who", argv[1]);
    line_word(&line, "then", argv[2]);
    line_count(&line, "kept_percent", load.kept);
    line_count(&line, "min", load.min);
    line_count(&line, "max", load.max);
    line_number(&line, "full_mib", (double)full / 1048576);
    line_number(&line, "at_once_mib", (double)at_once / 1048576);
    line_number(&line, calls ? "calls_mib" : "idle_mib", (double)later / 1048576);
    if (calls) {
        give_back();
        line_number(&line, "trim_mib", (double)growth(before) / 1048576);
    }
    if (load.kept > 0) {
        size_t kept = 0;
        size_t pages = pages_below_kept(&load, table, slots, &kept);
        line_number(&line, "kept_mib", (double)kept / 1048576);
        line_number(&line, "pages_mib", (double)pages / 1048576);
        line_number(&line, "ratio", (double)later / (double)pages);
    }
    line_close(&line);
    series_print(samples, argv[1], argv[2], load.kept);
    return 0;
}

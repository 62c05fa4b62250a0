// stayingdown.c - does a server's memory follow its load, or only its peaks?
//
//     stayingdown [SECONDS] [THREADS] [MIB]         60 16 320
//
// An hour of a server, compressed. Every 20 ms each of the threads opens connections or closes
// them, so that their number swings by a factor of 5, eight times in all, most threads together and
// some apart; now and then it closes one for a new one. A connection holds small blocks, whose
// usual size drifts between 48 and 768 bytes, four times in all, and a buffer of 1 KiB to 4 MiB
// that reached its size by realloc. Every eighth connection is closed by another thread than opened
// it. Requests add blocks that live for a moment, and change blocks of connections. Everything is
// written to. At its highest, about MIB are live.
//
// Printed: the growth of the resident size over the bytes that the program has asked for and not
// freed (every 100 ms, after the first eighth of the time): the mean of these ratios, the greatest,
// the mean when the load is low; the drift, which is the mean over the last quarter less that over
// the third; and as lines of bench "series" both sizes over time.
//
// Not measured: speed. Steps that a slow machine does not manage in their time are left out, the
// same for all kinds of work.
#include <pthread.h>

#include "bench.h"

enum {
    THREADS_MAX = 64,
    TICK_MS = 20,
    SAMPLE_TICKS = 5,
    CONNECTIONS = 64,
    SMALL = 200,
    SWINGS = 8,
    DRIFTS = 4,
    SAMPLES_MAX = 8192,
    // The mean life of a connection, in ticks.
    LIFE = 100,
    REQUESTS = 8,
    // What the connections of the greatest load hold on average, measured with this program: buffer
    // and small blocks.
    CONNECTION_KIB = 575
};

struct connection {
    char *buffer;
    size_t size;
    size_t wanted;
    char *small[SMALL];
    uint32_t small_size[SMALL];
    uint32_t small_count;
};

struct worker {
    pthread_t thread;
    struct server *server;
    size_t index;
    struct rng rng;
    // atomic; bytes that the program has asked for; below 0 where others free, so all are summed
    size_t live;
    pthread_mutex_t lock;
    struct connection handed[8]; // lock; to be closed here
    size_t handed_count;         // lock
    size_t count;
    struct connection connections[CONNECTIONS];
};

struct server {
    size_t ticks;
    size_t threads;
    size_t most; // connections of a thread at the greatest load
    uint64_t start;
    struct worker *workers;
};

struct sample {
    double seconds;
    size_t rss;
    size_t live;
};

// ---- blocks, counted

static void live_add(struct worker *worker, size_t bytes) {
    __atomic_store_n(&worker->live, worker->live + bytes, __ATOMIC_RELAXED);
}

static void *get(struct worker *worker, size_t size) {
    char *block = malloc(size);
    if (block == NULL) {
        bench_fail("no memory");
    }
    memset(block, 1, size);
    live_add(worker, size);
    return block;
}

static void drop(struct worker *worker, char *block, size_t size) {
    free(block);
    live_add(worker, (size_t)0 - size);
}

// ---- what changes with time: 0 to 1 and back, so many times in all

static double wave(const struct server *server, size_t tick, size_t times, double phase) {
    double position = (double)tick / (double)server->ticks * (double)times + phase;
    position -= (double)(size_t)position;
    return position < 0.5 ? 2 * position : 2 - 2 * position;
}

static uint32_t small_size(struct worker *worker, size_t tick) {
    double usual = 48;
    double up = wave(worker->server, tick, DRIFTS, 0) * 4;
    for (; up > 1; up -= 1) {
        usual *= 2;
    }
    usual *= 1 + up;
    return (uint32_t)usual / 2 + rng_below(&worker->rng, (uint32_t)usual);
}

// 1 KiB to 4 MiB, each doubling as likely as any other.
static size_t buffer_size(struct worker *worker) {
    size_t base = (size_t)1024 << rng_below(&worker->rng, 12);
    return base + rng_below(&worker->rng, (uint32_t)base);
}

// ---- connections

static void buffer_grow(struct worker *worker, struct connection *connection) {
    size_t size = connection->size * 3 / 2;
    size = size > connection->wanted ? connection->wanted : size;
    char *buffer = realloc(connection->buffer, size);
    if (buffer == NULL) {
        bench_fail("no memory");
    }
    memset(buffer + connection->size, 1, size - connection->size);
    live_add(worker, size - connection->size);
    connection->buffer = buffer;
    connection->size = size;
}

static void connection_open(struct worker *worker, size_t tick) {
    struct connection *connection = &worker->connections[worker->count++];
    connection->wanted = buffer_size(worker);
    connection->size = 1024;
    connection->buffer = get(worker, connection->size);
    connection->small_count = SMALL / 4 + rng_below(&worker->rng, SMALL - SMALL / 4);
    for (size_t i = 0; i < connection->small_count; i++) {
        connection->small_size[i] = small_size(worker, tick);
        connection->small[i] = get(worker, connection->small_size[i]);
    }
}

static void connection_free(struct worker *worker, struct connection *connection) {
    for (size_t i = 0; i < connection->small_count; i++) {
        drop(worker, connection->small[i], connection->small_size[i]);
    }
    drop(worker, connection->buffer, connection->size);
}

static int hand_over(struct worker *worker, const struct connection *connection) {
    struct worker *other = &worker->server->workers[(worker->index + 1) % worker->server->threads];
    pthread_mutex_lock(&other->lock);
    int handed = other->handed_count < 8;
    if (handed) {
        other->handed[other->handed_count++] = *connection;
    }
    pthread_mutex_unlock(&other->lock);
    return handed;
}

static void connection_close(struct worker *worker, size_t index) {
    struct connection *connection = &worker->connections[index];
    if (rng_below(&worker->rng, 8) != 0 || !hand_over(worker, connection)) {
        connection_free(worker, connection);
    }
    *connection = worker->connections[--worker->count];
}

static void close_handed(struct worker *worker) {
    pthread_mutex_lock(&worker->lock);
    while (worker->handed_count > 0) {
        connection_free(worker, &worker->handed[--worker->handed_count]);
    }
    pthread_mutex_unlock(&worker->lock);
}

static void request(struct worker *worker, struct connection *connection, size_t tick) {
    char *blocks[REQUESTS];
    uint32_t sizes[REQUESTS];
    for (size_t i = 0; i < REQUESTS; i++) {
        sizes[i] = small_size(worker, tick) * (1 + rng_below(&worker->rng, 8));
        blocks[i] = get(worker, sizes[i]);
    }
    size_t changed = rng_below(&worker->rng, connection->small_count);
    drop(worker, connection->small[changed], connection->small_size[changed]);
    connection->small_size[changed] = small_size(worker, tick);
    connection->small[changed] = get(worker, connection->small_size[changed]);
    if (connection->size < connection->wanted) {
        buffer_grow(worker, connection);
    }
    for (size_t i = 0; i < REQUESTS; i++) {
        drop(worker, blocks[i], sizes[i]);
    }
}

// Two thirds of the swing all threads make together; the rest is spread over them.
static size_t connections_wanted(const struct worker *worker, size_t tick) {
    const struct server *server = worker->server;
    double own = (double)worker->index / (double)server->threads;
    double load = wave(server, tick, SWINGS, 0) * 2 / 3 + wave(server, tick, SWINGS, own) / 3;
    double least = (double)server->most / 5;
    return (size_t)(least + ((double)server->most - least) * load + 0.5);
}

static void tick_do(struct worker *worker, size_t tick) {
    size_t wanted = connections_wanted(worker, tick);
    close_handed(worker);
    for (size_t i = 0; i < worker->count; i++) {
        request(worker, &worker->connections[i], tick);
    }
    for (size_t i = 0; i < worker->count; i++) {
        if (rng_below(&worker->rng, LIFE) == 0) {
            connection_close(worker, i);
        }
    }
    while (worker->count > wanted) {
        connection_close(worker, rng_below(&worker->rng, (uint32_t)worker->count));
    }
    while (worker->count < wanted) {
        connection_open(worker, tick);
    }
}

// ---- time

static size_t tick_now(const struct server *server) {
    return (size_t)((bench_clock(CLOCK_MONOTONIC) - server->start) / (TICK_MS * 1000000U));
}

static void sleep_until(const struct server *server, size_t tick) {
    uint64_t when = server->start + (uint64_t)tick * TICK_MS * 1000000U;
    struct timespec time = { (time_t)(when / 1000000000U), (long)(when % 1000000000U) };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) {
    }
}

static void *worker_main(void *argument) {
    struct worker *worker = argument;
    const struct server *server = worker->server;
    for (size_t tick = 0; tick < server->ticks; tick = tick_now(server)) {
        tick_do(worker, tick);
        sleep_until(server, tick + 1);
    }
    return NULL;
}

static size_t live_now(const struct server *server) {
    size_t live = 0;
    for (size_t i = 0; i < server->threads; i++) {
        live += __atomic_load_n(&server->workers[i].live, __ATOMIC_RELAXED);
    }
    return live;
}

static size_t watch_server(const struct server *server, struct sample *samples, size_t before) {
    size_t count = 0;
    for (size_t tick = SAMPLE_TICKS; tick <= server->ticks && count < SAMPLES_MAX;
         tick += SAMPLE_TICKS) {
        sleep_until(server, tick);
        size_t live = live_now(server);
        size_t rss = memory_read().rss;
        samples[count++] =
            (struct sample){ (double)tick * TICK_MS / 1000, rss > before ? rss - before : 0, live };
    }
    return count;
}

// ---- results

struct mean {
    double sum;
    size_t count;
};

static void mean_add(struct mean *mean, double value) {
    mean->sum += value;
    mean->count++;
}

static double mean_of(struct mean mean) {
    return mean.count == 0 ? 0 : mean.sum / (double)mean.count;
}

static void series_print(const struct sample *samples, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct line line;
        line_open(&line, "series");
        line_word(&line, "of", "stayingdown");
        line_number(&line, "seconds", samples[i].seconds);
        line_number(&line, "rss_mib", (double)samples[i].rss / 1048576);
        line_number(&line, "live_mib", (double)samples[i].live / 1048576);
        line_close(&line);
    }
}

static void result_print(const struct server *server, const struct sample *samples, size_t count) {
    struct mean all = { 0 };
    struct mean low = { 0 };
    struct mean quarters[4] = { { 0 } };
    struct mean live = { 0 };
    double most = 0;
    size_t peak = 0;
    for (size_t i = 0; i < count; i++) {
        peak = samples[i].live > peak ? samples[i].live : peak;
    }
    for (size_t i = count / 8; i < count; i++) {
        double ratio = (double)samples[i].rss / (double)samples[i].live;
        mean_add(&all, ratio);
        mean_add(&live, (double)samples[i].live / 1048576);
        mean_add(&quarters[i * 4 / count], ratio);
        if (samples[i].live < peak / 2) {
            mean_add(&low, ratio);
        }
        most = ratio > most ? ratio : most;
    }
    struct line line;
    line_open(&line, "stayingdown");
    line_count(&line, "seconds", server->ticks * TICK_MS / 1000);
    line_count(&line, "threads", server->threads);
    line_number(&line, "live_mib", mean_of(live));
    line_number(&line, "live_peak_mib", (double)peak / 1048576);
    line_number(&line, "rss_over_live", mean_of(all));
    line_number(&line, "greatest", most);
    line_number(&line, "when_low", mean_of(low));
    line_number(&line, "drift", mean_of(quarters[3]) - mean_of(quarters[2]));
    line_close(&line);
}

int main(int argc, char **argv) {
    static struct server server;
    server.ticks = bench_argument(argc, argv, 1, 60) * 1000 / TICK_MS;
    server.threads = bench_argument(argc, argv, 2, 16);
    size_t mib = bench_argument(argc, argv, 3, 320);
    if (server.ticks == 0 || server.threads == 0 || server.threads > THREADS_MAX) {
        bench_fail("usage: stayingdown [SECONDS] [THREADS, at most %d] [MIB]", THREADS_MAX);
    }
    server.most = mib * 1024 / CONNECTION_KIB / server.threads;
    server.most = server.most < 5 ? 5 : server.most > CONNECTIONS ? CONNECTIONS : server.most;
    server.workers = bench_map(server.threads * sizeof(*server.workers));
    struct sample *samples = bench_map(SAMPLES_MAX * sizeof(*samples));
    size_t before = memory_read_first().rss;
    server.start = bench_clock(CLOCK_MONOTONIC);
    for (size_t i = 0; i < server.threads; i++) {
        struct worker *worker = &server.workers[i];
        worker->server = &server;
        worker->index = i;
        worker->rng = rng_new(i);
        pthread_mutex_init(&worker->lock, NULL);
        if (pthread_create(&worker->thread, NULL, worker_main, worker) != 0) {
            bench_fail("no thread");
        }
    }
    size_t count = watch_server(&server, samples, before);
    result_print(&server, samples, count);
    series_print(samples, count);
    _exit(0);
}

// limits.c - how much of what a limit allows can be allocated, and again after it was freed?
//
//     limits space MIB SIZE      RLIMIT_AS, all address space (ulimit -v)
//     limits data MIB SIZE       RLIMIT_DATA, private writable memory (ulimit -d)
//     limits charge MIB SIZE     what the kernel charges under strict overcommit (vm.overcommit_memory=2): the
//                                private writable mappings, and others with "ac" in smaps; counted, not enforced
//     limits maps COUNT SIZE     mappings: all of vm.max_map_count but COUNT are taken before; 512 MiB are asked for
//
// The program starts itself again under the limit, so that starting must fit too. It allocates
// blocks of SIZE bytes (0: a mix of 16 bytes to 64 KiB, each doubling as likely as any other) and
// writes their first bytes until it gets NULL, frees all, allocates again, frees all, and allocates
// blocks of another size.
//
// Printed: what it got each time (bytes asked for), in percent of the limit less what the process
// had when main began, and in percent of the whole limit; which errno came with NULL; what of the
// limit the heap took, with maps when every second block was freed.
//
// Not measured: time. The sum of blocks counts what was asked for, so rounding to classes is paid
// here too.
#include <sys/resource.h>

#include "bench.h"

enum { MAPS_ASKED_MIB = 512, CHARGE_STEPS = 64 };

enum mode { MODE_SPACE, MODE_DATA, MODE_CHARGE, MODE_MAPS, MODES };

static const char *const mode_names[MODES] = { "space", "data", "charge", "maps" };

struct limit {
    enum mode mode;
    size_t bytes; // or mappings
    size_t size;
};

struct heap {
    void *blocks; // each begins with the address of the next
    size_t asked;
    int error; // that came with NULL
};

// ---- what the kernel counts

// Charged are mappings with "ac"; and without it those that are private and writable, since strict
// overcommit does not heed MAP_NORESERVE, with which some allocators map where it is off.
static int is_charged(const char *flags) {
    return strstr(flags, " ac") != NULL ||
           (strstr(flags, " wr") != NULL && strstr(flags, " sh") == NULL);
}

static size_t charge_of_line(const char *line, size_t *size) {
    if (strncmp(line, "Size:", 5) == 0) {
        *size = (size_t)strtoull(line + 5, NULL, 10) * 1024;
    }
    return strncmp(line, "VmFlags:", 8) == 0 && is_charged(line) ? *size : 0;
}

// smaps is long: it is read piece by piece, and used by lines.
static size_t charge_now(void) {
    char text[8192];
    size_t used = 0;
    size_t size = 0;
    size_t sum = 0;
    int file = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        bench_fail("no /proc/self/smaps");
    }
    for (ssize_t got; (got = read(file, text + used, sizeof(text) - 1 - used)) > 0;) {
        char *line = text;
        used += (size_t)got;
        text[used] = '\0';
        for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = '\0';
            sum += charge_of_line(line, &size);
        }
        used -= (size_t)(line - text);
        memmove(text, line, used);
    }
    close(file);
    return sum;
}

static size_t amount_now(enum mode mode) {
    switch (mode) {
    case MODE_SPACE:
        return memory_read().size;
    case MODE_DATA:
        return memory_read().data;
    case MODE_CHARGE:
        return charge_now();
    default:
        return bench_count_maps();
    }
}

// ---- the load

static size_t size_next(size_t size, struct rng *rng) {
    return size != 0 ? size : 16 + rng_below(rng, 64U << rng_below(rng, 11));
}

// Until NULL, or until there is most, or a limit that is only counted is passed; 0: it is not
// looked at.
static struct heap fill(size_t size, size_t most, size_t charge) {
    struct heap heap = { NULL, 0, 0 };
    struct rng rng = rng_new(1);
    size_t look = most / CHARGE_STEPS;
    for (;;) {
        size_t wanted = size_next(size, &rng);
        if (heap.asked + wanted > most) {
            return heap;
        }
        if (charge > 0 && heap.asked >= look) {
            if (charge_now() >= charge) {
                return heap;
            }
            look += most / CHARGE_STEPS;
        }
        errno = 0;
        void **block = malloc(wanted);
        if (block == NULL) {
            heap.error = errno;
            return heap;
        }
        *block = heap.blocks;
        heap.blocks = block;
        heap.asked += wanted;
    }
}

// Frees every second block: a heap of many mappings has the most of them then.
static void thin(struct heap *heap) {
    void *kept = NULL;
    for (void *block = heap->blocks; block != NULL;) {
        void **next = *(void **)block;
        *(void **)block = kept;
        kept = block;
        block = next == NULL ? NULL : *next;
        free(next);
    }
    heap->blocks = kept;
}

static void empty(struct heap *heap) {
    for (void *block = heap->blocks; block != NULL;) {
        void *next = *(void **)block;
        free(block);
        block = next;
    }
    heap->blocks = NULL;
}

// ---- the limit

// Mappings of one page that cannot merge, until the kernel refuses; then as many as are to be left
// are unmapped.
static void maps_take(size_t left) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t pages = 2 * (size_t)1 << 20;
    char *filler =
        mmap(NULL, pages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    size_t taken = 0;
    while (filler != MAP_FAILED && taken < pages &&
           mprotect(filler + taken * page, page, PROT_READ) == 0) {
        taken += 2;
    }
    if (filler == MAP_FAILED || taken < left || taken >= pages) {
        bench_fail("the table of mappings cannot be filled");
    }
    // Readable again to inaccessible: each such page joins its neighbours, two mappings less.
    for (size_t i = 0; i < left / 2; i++) {
        mprotect(filler + (taken - 2 - 2 * i) * page, page, PROT_NONE);
    }
}

static void limit_set(const struct limit *limit) {
    struct rlimit rlimit = { limit->bytes, limit->bytes };
    if (limit->mode == MODE_SPACE || limit->mode == MODE_DATA) {
        if (setrlimit(limit->mode == MODE_SPACE ? RLIMIT_AS : RLIMIT_DATA, &rlimit) != 0) {
            bench_fail("the limit cannot be set");
        }
    }
}

static double percent(size_t part, size_t whole) {
    return 100.0 * (double)part / (double)whole;
}

struct rounds {
    size_t got[3]; // bytes; the same size twice, then another
    size_t amount; // of the limit, in the first round
    int error;     // that came with NULL then
};

// A limit that is only counted cannot refuse: in the later rounds as much is asked for as the first
// one got, and what is charged beyond the first round's charge, in proportion, would not have been
// had.
static struct rounds rounds_do(const struct limit *limit, size_t most, size_t before) {
    struct rounds rounds = { { 0, 0, 0 }, 0, 0 };
    size_t other = limit->size == 40000 ? 1000 : 40000;
    int is_counted = limit->mode == MODE_CHARGE;
    for (int i = 0; i < 3; i++) {
        size_t size = i < 2 ? limit->size : other;
        struct heap heap = i == 0 || !is_counted
                               ? fill(size, most, i == 0 && is_counted ? limit->bytes : 0)
                               : fill(size, rounds.got[0], 0);
        rounds.got[i] = heap.asked;
        if (i == 0) {
            if (limit->mode == MODE_MAPS) {
                thin(&heap);
            }
            rounds.amount = amount_now(limit->mode) - before;
            rounds.error = heap.error;
        } else if (is_counted) {
            double fits = (double)rounds.amount / (double)(charge_now() - before);
            rounds.got[i] = fits < 1 ? (size_t)((double)heap.asked * fits) : heap.asked;
        }
        empty(&heap);
    }
    return rounds;
}

static int run(const struct limit *limit) {
    size_t start = amount_now(limit->mode);
    if (limit->mode == MODE_MAPS) {
        maps_take(limit->bytes);
    }
    size_t before = amount_now(limit->mode);
    size_t asked = (size_t)MAPS_ASKED_MIB << 20;
    size_t whole = limit->mode == MODE_MAPS ? asked : limit->bytes;
    size_t allowed = limit->mode == MODE_MAPS ? asked : whole > start ? whole - start : 1;
    struct rounds rounds = rounds_do(limit, limit->mode == MODE_MAPS ? asked : 2 * whole, before);
    struct line line;
    line_open(&line, "limits");
    line_word(&line, "mode", mode_names[limit->mode]);
    line_count(&line, "limit", limit->bytes);
    line_count(&line, "size", limit->size);
    line_count(&line, "at_start", start);
    line_count(&line, "asked", rounds.got[0]);
    line_number(&line, "percent", percent(rounds.got[0], allowed));
    line_number(&line, "percent_of_all", percent(rounds.got[0], whole));
    line_number(&line, "again_percent", percent(rounds.got[1], rounds.got[0]));
    line_number(&line, "other_percent", percent(rounds.got[2], rounds.got[0]));
    line_count(&line, "amount", rounds.amount);
    line_count(&line, "error", (size_t)rounds.error);
    line_close(&line);
    return 0;
}

int main(int argc, char **argv) {
    struct limit limit = { MODES, bench_argument(argc, argv, 2, 64),
                           bench_argument(argc, argv, 3, 0) };
    for (enum mode mode = MODE_SPACE; argc > 1 && mode < MODES; mode++) {
        limit.mode = strcmp(argv[1], mode_names[mode]) == 0 ? mode : limit.mode;
    }
    if (limit.mode == MODES) {
        bench_fail("usage: limits space|data|charge|maps MIB|COUNT SIZE");
    }
    limit.bytes <<= limit.mode == MODE_MAPS ? 0 : 20;
    if (argc > 4) {
        return run(&limit);
    }
    limit_set(&limit);
    execl("/proc/self/exe", argv[0], argv[1], argc > 2 ? argv[2] : "64", argc > 3 ? argv[3] : "0",
          "again", (char *)NULL);
    bench_fail("cannot start again");
}

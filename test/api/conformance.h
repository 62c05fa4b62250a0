// conformance.h - the table: entry points x sizes x alignments, with memory and without. Each cell
// is judged on result, alignment, errno, out parameter, usable size and contents, and is given back
// by each of the calls that free, in turn.
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include "entry.h"

// What a call that frees is told besides the block.
struct giver {
    const char *name;
    void (*give)(void *block, size_t size, size_t alignment);
};

struct family {
    const struct entry_point *entries;
    size_t nentries;
    const struct giver *givers;
    size_t ngivers;
};

static const struct family *judged;

#define ERRNO_BEFORE 4711

struct cell {
    const struct entry_point *entry;
    size_t alignment;
    size_t size;
};

static bool is_power(size_t n) {
    return n != 0 && (n & (n - 1)) == 0;
}

static bool alignment_is_wrong(const struct cell *cell) {
    switch (cell->entry->rule) {
    case RULE_C:
        return !is_power(cell->alignment);
    case RULE_POSIX:
        return !is_power(cell->alignment) || cell->alignment % sizeof(void *) != 0;
    case RULE_NEW:
        return !is_power(cell->alignment);
    case RULE_ROUND:
        return cell->alignment > SIZE_MAX / 2 + 1;
    default:
        return false;
    }
}

static size_t promised_alignment(const struct cell *cell) {
    size_t alignment = 16;
    if (cell->entry->rule == RULE_PAGE) {
        return page;
    }
    while (cell->entry->rule != RULE_NONE && alignment < cell->alignment) {
        alignment *= 2;
    }
    return alignment;
}

static size_t promised_size(const struct cell *cell) {
    if (cell->entry->rule != RULE_PAGE) {
        return cell->size;
    }
    // valloc and pvalloc mean pages, so nothing is one page; only pvalloc promises whole ones.
    bool whole = strstr(cell->entry->name, "pvalloc") != NULL;
    return cell->size == 0 ? page : whole ? (cell->size + page - 1) / page * page : cell->size;
}

#define TELL(ok) \
    CHECK_SAY(ok, "%s: %s, alignment %#zx, size %#zx: block %p, code %d, errno %d", #ok, \
              cell->entry->name, cell->alignment, cell->size, block, code, error)

static void judge_failure(const struct cell *cell, void *block, int code, int error) {
    bool wrong = alignment_is_wrong(cell);
    bool too_large = cell->size > PTRDIFF_MAX / 4;
    if (cell->entry->rule == RULE_POSIX) {
        TELL(block == UNTOUCHED);
        TELL(code == (wrong ? EINVAL : ENOMEM));
        TELL(error == ERRNO_BEFORE);
    } else if (cell->entry->rule == RULE_NEW) {
        TELL(block == NULL);
    } else {
        TELL(block == NULL);
        // With both at fault either answer is right.
        TELL(error == (wrong ? EINVAL : ENOMEM) || (wrong && too_large && error == ENOMEM));
    }
}

static size_t turn;

static void judge_success(const struct cell *cell, void *block, int code, int error) {
    TELL(code == 0);
    TELL(error == ERRNO_BEFORE);
    TELL(block != NULL && block != UNTOUCHED);
    TELL((uintptr_t)block % promised_alignment(cell) == 0);
    size_t usable = call.malloc_usable_size(block);
    CHECK_SAY(usable >= promised_size(cell), "%s(%#zx, %#zx): usable size %zu", cell->entry->name,
              cell->alignment, cell->size, usable);
    CHECK_SAY(usable == 0 || promised_size(cell) != 0 || cell->entry->rule != RULE_NONE,
              "%s(0): usable size %zu", cell->entry->name, usable);
    CHECK_SAY(!cell->entry->zeroed || all_bytes(block, 0, cell->size), "%s(%zu) is not zero",
              cell->entry->name, cell->size);
    memset(block, 0x5a, usable);
    errno = ERRNO_BEFORE;
    CHECK(call.malloc_usable_size(block) == usable);
    CHECK(all_bytes(block, 0x5a, usable));
    const struct giver *giver = &judged->givers[turn++ % judged->ngivers];
    giver->give(block, cell->size, cell->alignment);
    CHECK_SAY(errno == ERRNO_BEFORE, "%s sets errno %d, %s(%#zx, %#zx)", giver->name, errno,
              cell->entry->name, cell->alignment, cell->size);
}

static bool failed(const struct cell *cell, void *block, int code) {
    return cell->entry->rule == RULE_POSIX ? code != 0 : block == NULL;
}

// may_fail: memory is scarce, so NULL with ENOMEM is right as well where a block would be.
static void judge(const struct cell *cell, bool may_fail) {
    int code = 0;
    errno = ERRNO_BEFORE;
    void *block = cell->entry->get(cell->alignment, cell->size, &code);
    int error = errno;
    bool must_fail = alignment_is_wrong(cell) || cell->size > PTRDIFF_MAX / 4;
    bool fails = failed(cell, block, code);
    if (fails && (must_fail || may_fail)) {
        judge_failure(cell, block, code, error);
    } else if (fails || must_fail) {
        TELL(!"the opposite result was due");
    } else {
        judge_success(cell, block, code, error);
    }
}

static void whole_table(bool may_fail) {
    const size_t sizes[] = { 0,
                             1,
                             15,
                             16,
                             17,
                             100,
                             page - 1,
                             page,
                             page + 1,
                             32768,
                             32769,
                             200000,
                             1 << 20,
                             (1 << 20) + 1,
                             (size_t)PTRDIFF_MAX - (1 << 30),
                             (size_t)PTRDIFF_MAX - 1,
                             PTRDIFF_MAX,
                             (size_t)PTRDIFF_MAX + 1,
                             SIZE_MAX - (1 << 30),
                             SIZE_MAX - (1 << 21),
                             SIZE_MAX - 65536,
                             SIZE_MAX - page,
                             SIZE_MAX - 16,
                             SIZE_MAX - 1,
                             SIZE_MAX };
    const size_t alignments[] = { 0,
                                  1,
                                  2,
                                  3,
                                  4,
                                  8,
                                  16,
                                  24,
                                  48,
                                  64,
                                  page,
                                  page + 16,
                                  3 * page,
                                  1 << 21,
                                  3 << 20,
                                  1 << 30,
                                  SIZE_MAX / 2 + 2 };
    for (size_t e = 0; e < judged->nentries; e++) {
        struct cell cell = { &judged->entries[e], 0, 0 };
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]) && !entry_missing(cell.entry);
             s++) {
            cell.size = sizes[s];
            size_t n = cell.entry->rule == RULE_NONE || cell.entry->rule == RULE_PAGE
                           ? 1
                           : sizeof(alignments) / sizeof(alignments[0]);
            for (size_t a = 0; a < n; a++) {
                cell.alignment = alignments[a];
                judge(&cell, may_fail);
            }
        }
    }
}

// Takes all there is, in blocks of halving sizes, under a limit a little above what is in use.
static void table_without_memory(void *unused) {
    (void)unused;
    void *head = NULL;
    struct rlimit limit = { 0, 0 };
    FILE *maps = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    REQUIRE(maps != NULL && fscanf(maps, "%lu", &pages) == 1);
    (void)fclose(maps);
    limit.rlim_cur = limit.rlim_max = pages * (unsigned long)sysconf(_SC_PAGESIZE) + (24 << 20);
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
    for (size_t size = 4 << 20; size >= 16; size /= 2) {
        for (void *block; (block = call.malloc(size)) != NULL; head = block) {
            memcpy(block, &head, sizeof(head));
        }
    }
    CHECK_EQ(errno, ENOMEM);
    int code = 0;
    for (size_t e = 0; e < judged->nentries; e++) {
        struct cell cell = { &judged->entries[e], 64, 8 << 20 };
        if (!entry_missing(cell.entry)) {
            void *block = cell.entry->get(cell.alignment, cell.size, &code);
            CHECK_SAY(failed(&cell, block, code), "%s finds 8 MiB where none are left",
                      cell.entry->name);
        }
    }
    whole_table(true);
    for (void *next; head != NULL; head = next) {
        memcpy(&next, head, sizeof(next));
        call.free(head);
    }
    void *again = call.malloc(8 << 20);
    CHECK_SAY(again != NULL, "what was freed cannot be had again");
    call.free(again);
}

// errno is the caller's through a free of nothing as well.
static void nothing_is_freed(void) {
    for (size_t g = 0; g < judged->ngivers; g++) {
        errno = ERRNO_BEFORE;
        judged->givers[g].give(NULL, 100, 64);
        CHECK_SAY(errno == ERRNO_BEFORE, "%s(NULL) sets errno", judged->givers[g].name);
    }
}

static void judge_family(const struct family *family) {
    judged = family;
    nothing_is_freed();
    whole_table(false);
    struct child_end end = run_child(table_without_memory, NULL, 60);
    expect_exit(&end, 0, "the table without memory");
}

#endif

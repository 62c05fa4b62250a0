// os.c - the only caller of the kernel.
//
// Owns the page size, one answer about MADV_DONTNEED, and in the test build the counters of failure
// injection. It takes no lock and must know nothing of who asks. The kernel is entered by the
// instruction itself: libc's wrappers can be interposed, and they write errno, which malloc and
// free must leave alone when they succeed.
#include <config.h>

#include "base.h"
#include "kernel.h"
#include "os.h"
#include "tune.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// Newer than the oldest headers we build with; the numbers are those of most ports, and of all that
// have a raw entry in kernel.h.
enum { PMA_MAP_FIXED_NOREPLACE = 0x100000 };
enum { PMA_MADV_WIPEONFORK = 18, PMA_MADV_POPULATE_WRITE = 23, PMA_MADV_NONE = -1 };
enum { PMA_GRND_NONBLOCK = 1, PMA_GRND_INSECURE = 4 };

// The kernel's headers are not where every compiler looks: musl's does not, nor one for 32 bits
// that has none of its own. Like the rest of the kernel's interface these numbers never change.
enum { PMA_FUTEX_WAIT_PRIVATE = 0 | 128, PMA_FUTEX_WAKE_PRIVATE = 1 | 128 };

// On 32 bits mmap counts its offset, which is always 0 here, in pages, and has another name.
#ifdef SYS_mmap2
#define CALL_MMAP SYS_mmap2
#else
#define CALL_MMAP SYS_mmap
#endif

// Without MAP_NORESERVE: pages that nobody can write are not charged anyway, and mappings that
// differ in it do not merge with their neighbours.
#define ANONYMOUS (MAP_PRIVATE | MAP_ANONYMOUS)

enum purge_answer { PURGE_UNKNOWN, PURGE_ZEROES, PURGE_IS_IGNORED };

// Const after pma_os_init. In the test build the page may be larger than the kernel's.
size_t pma_page_size;
unsigned pma_page_shift;
static size_t kernel_page;

static uint32_t purge_answer; // atomic; an enum purge_answer, const after the first purge
static uint32_t huge_pages;   // an enum huge_pages; const after init
static uint64_t fail_calls;   // atomic; calls so far that could fail, in the test build
static uint64_t fail_call;    // atomic; the number of the call that is to fail, 0: none
static uint32_t fail_forever; // atomic; and all after it

// getauxval sets errno for an entry that is not there.
static unsigned long auxiliary(unsigned long type) {
    int saved = errno;
    unsigned long value = getauxval(type);
    errno = saved;
    return value;
}

// ---- failing on purpose

// Each call that can fail asks here first. Always false in a release build.
static bool fails(void) {
    if (!PMA_TEST) {
        return false;
    }
    uint64_t call = __atomic_add_fetch(&fail_calls, 1, __ATOMIC_RELAXED);
    uint64_t at = __atomic_load_n(&fail_call, __ATOMIC_RELAXED);
    bool forever = __atomic_load_n(&fail_forever, __ATOMIC_RELAXED) != 0;
    return at != 0 && (call == at || (forever && call > at));
}

#if PMA_TEST
void pma_os_fail_at(uint64_t n, bool forever) {
    uint64_t calls = __atomic_load_n(&fail_calls, __ATOMIC_RELAXED);
    __atomic_store_n(&fail_forever, forever, __ATOMIC_RELAXED);
    __atomic_store_n(&fail_call, n == 0 ? 0 : calls + n, __ATOMIC_RELAXED);
}

uint64_t pma_os_calls(void) {
    return __atomic_load_n(&fail_calls, __ATOMIC_RELAXED);
}

static void test_hooks_init(void) {
    const char *page = getenv("PMA_TEST_PAGE");
    size_t size = page == NULL ? 0 : (size_t)strtoul(page, NULL, 10);
    if (is_power_of_two(size) && size > pma_page_size && size <= PMA_PAGE_MAX) {
        pma_page_size = size;
    }
    const char *fail = getenv("PMA_TEST_FAIL");
    if (fail != NULL) {
        char *end;
        uint64_t n = strtoull(fail, &end, 10);
        pma_os_fail_at(n, *end == '+');
    }
}
#endif

void pma_os_init(void) {
    kernel_page = auxiliary(AT_PAGESZ);
    if (!is_power_of_two(kernel_page) || kernel_page < PMA_GRANULE) {
        kernel_page = PMA_GRANULE;
    }
    pma_page_size = kernel_page;
#if PMA_TEST
    test_hooks_init();
#endif
    pma_page_shift = bits_lowest(pma_page_size);
}

// ---- mappings

static bool advise(void *start, size_t size, int advice) {
    return !is_error(enter(SYS_madvise, (long)start, (long)size, advice, 0, 0, 0));
}

static void huge_pages_refuse(void *start, size_t size) {
    if (unlikely(huge_pages == HUGE_PAGES_NEVER)) {
        advise(start, size, MADV_NOHUGEPAGE);
    }
}

void pma_os_set_huge_pages(enum huge_pages choice) {
    huge_pages = choice;
}

// 2 MiB is the usual size of one; where it is larger, the advice does no harm.
void pma_os_invite_huge_pages(void *start, size_t size) {
    if (unlikely(huge_pages == HUGE_PAGES_ADVISE) && size >= (size_t)2 << 20) {
        advise(start, size, MADV_HUGEPAGE);
    }
}

static bool unmap(uintptr_t start, size_t size) {
    addresses_leave();
    return size == 0 || !is_error(enter(SYS_munmap, (long)start, (long)size, 0, 0, 0, 0));
}

static long map(uintptr_t start, size_t size, int protection, int flags) {
    long result = enter(CALL_MMAP, (long)start, (long)size, protection, flags, -1, 0);
    addresses_come();
    return result;
}

// Where the page of the test build is larger than the kernel's, the kernel's choice is not aligned
// to it: a little more is mapped, and the ends are given back.
static void *map_anywhere(size_t size, int protection) {
    size_t slack = PMA_TEST ? pma_page_size - kernel_page : 0;
    if (size > SIZE_MAX - slack) {
        return NULL;
    }
    long result = map(0, size + slack, protection, ANONYMOUS);
    if (is_error(result)) {
        return NULL;
    }
    uintptr_t given = (uintptr_t)result;
    if (slack == 0) {
        return (void *)given;
    }
    uintptr_t start = align_up(given, pma_page_size);
    unmap(given, start - given);
    unmap(start + size, given + slack - start);
    return (void *)start;
}

// Kernels before 4.17 take the flag for nothing and the address for a wish; some emulators refuse
// unknown flags.
static void *map_at(void *hint, size_t size, int protection) {
    uintptr_t start = (uintptr_t)hint;
    long result = map(start, size, protection, ANONYMOUS | PMA_MAP_FIXED_NOREPLACE);
    if (result == -EOPNOTSUPP || result == -EINVAL) {
        result = map(start, size, protection, ANONYMOUS);
    }
    if (is_error(result)) {
        return NULL;
    }
    if ((uintptr_t)result != start) {
        unmap((uintptr_t)result, size);
        return NULL;
    }
    return hint;
}

static void *map_new(void *hint, size_t size, int protection) {
    if (fails()) {
        return NULL;
    }
    void *start = hint == NULL ? map_anywhere(size, protection) : map_at(hint, size, protection);
    if (start != NULL) {
        addresses_are_new(start, size, protection);
    }
    if (start != NULL && (protection & PROT_WRITE) != 0) {
        huge_pages_refuse(start, size);
    }
    return start;
}

void *pma_os_reserve(void *hint, size_t size) {
    return map_new(hint, size, PROT_NONE);
}

void *pma_os_map(void *hint, size_t size) {
    return map_new(hint, size, PROT_READ | PROT_WRITE);
}

void *pma_os_map_readonly(void *hint, size_t size) {
    return map_new(hint, size, PROT_READ);
}

bool pma_os_unmap(void *start, size_t size) {
    return !fails() && unmap((uintptr_t)start, size);
}

void *pma_os_remap(void *start, size_t old_size, size_t new_size, void *target) {
    if (fails()) {
        // As the kernel does before it looks whether there is memory.
        unmap((uintptr_t)target, target == NULL ? 0 : new_size);
        return NULL;
    }
    long flags = target == NULL ? 0 : MREMAP_MAYMOVE | MREMAP_FIXED;
    addresses_leave();
    long result =
        enter(SYS_mremap, (long)start, (long)old_size, (long)new_size, flags, (long)target, 0);
    addresses_come();
    return is_error(result) ? NULL : (void *)result;
}

// ---- pages of a mapping

static bool protect(void *start, size_t size, int protection) {
    return !is_error(enter(SYS_mprotect, (long)start, (long)size, protection, 0, 0, 0));
}

bool pma_os_commit(void *start, size_t size) {
    if (fails() || !protect(start, size, PROT_READ | PROT_WRITE)) {
        return false;
    }
    huge_pages_refuse(start, size);
    return true;
}

bool pma_os_protect(void *start, size_t size) {
    return !fails() && protect(start, size, PROT_READ);
}

// Whether the page can be written is asked of the kernel, which faults nobody: it is to write some
// bytes there, by a call that valgrind and qemu leave to it. Only what it found closed is closed
// again.
bool pma_os_overwrite(uint64_t *target, const void *source, size_t size) {
    void *page = (void *)align_down((uintptr_t)target, kernel_page);
    long answer = enter(SYS_getrandom, (long)target, sizeof(*target), PMA_GRND_NONBLOCK, 0, 0, 0);
    if (is_error(answer) && (fails() || !protect(page, kernel_page, PROT_READ | PROT_WRITE))) {
        return false;
    }
    __builtin_memcpy(target, source, size);
    if (answer == -EFAULT) {
        protect(page, kernel_page, PROT_READ);
    }
    return true;
}

// User-mode emulators and library kernels may answer MADV_DONTNEED with success and do nothing. One
// page is tried; when not even that can be done the question stays open and the answer for now is
// no.
static bool purge_is_known_to_zero(void) {
    uint32_t answer = __atomic_load_n(&purge_answer, __ATOMIC_RELAXED);
    if (likely(answer != PURGE_UNKNOWN)) {
        return answer == PURGE_ZEROES;
    }
    long page = map(0, kernel_page, PROT_READ | PROT_WRITE, ANONYMOUS);
    if (is_error(page)) {
        return false;
    }
    volatile uint64_t *word = (volatile uint64_t *)page;
    *word = 1;
    if (advise((void *)page, kernel_page, MADV_DONTNEED)) {
        answer = *word == 0 ? PURGE_ZEROES : PURGE_IS_IGNORED;
        __atomic_store_n(&purge_answer, answer, __ATOMIC_RELAXED);
    }
    unmap((uintptr_t)page, kernel_page);
    return answer == PURGE_ZEROES;
}

static bool purge(void *start, size_t size) {
    return purge_is_known_to_zero() && advise(start, size, MADV_DONTNEED);
}

bool pma_os_purge(void *start, size_t size) {
    return !fails() && purge(start, size);
}

// A mapping laid over the pages drops them and their charge at once. Where that is refused, as it
// may be when there are no more mappings to be had, the pages are closed and then dropped, so that
// a failure can still be undone.
bool pma_os_decommit(void *start, size_t size) {
    if (fails()) {
        return false;
    }
    if (!is_error(map((uintptr_t)start, size, PROT_NONE, ANONYMOUS | MAP_FIXED))) {
        return true;
    }
    if (!protect(start, size, PROT_NONE)) {
        return false;
    }
    if (purge(start, size)) {
        return true;
    }
    protect(start, size, PROT_READ | PROT_WRITE);
    return false;
}

bool pma_os_populate(void *start, size_t size) {
    return !fails() && advise(start, size, PMA_MADV_POPULATE_WRITE);
}

// qemu (7.2, user mode) answers every advice with success, even one that does not exist, which no
// kernel does: there the answer to this one means nothing.
bool pma_os_wipe_on_fork(void *start, size_t size) {
    return !fails() && !advise(start, size, PMA_MADV_NONE) &&
           advise(start, size, PMA_MADV_WIPEONFORK);
}

// ---- entropy

// Until the kernel's generator is ready, at the start of the machine, GRND_INSECURE still gives
// what there is.
bool pma_os_random(void *buffer, size_t size) {
    if (fails()) {
        return false;
    }
    long flags = PMA_GRND_NONBLOCK;
    size_t filled = 0;
    while (filled < size) {
        long got = enter(SYS_getrandom, (long)buffer + (long)filled, (long)(size - filled), flags,
                         0, 0, 0);
        if (got > 0) {
            filled += (size_t)got;
        } else if (flags == PMA_GRND_NONBLOCK && got != -EINTR) {
            flags = PMA_GRND_INSECURE;
        } else if (got != -EINTR) {
            return false;
        }
    }
    return true;
}

static uint64_t nanoseconds(clockid_t clock) {
    int saved = errno;
    struct timespec now = { 0 };
    if (clock_gettime(clock, &now) != 0) {
        errno = saved;
    }
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t cycles(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    return nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
#endif
}

// The finalizer of splitmix64 (Steele, Lea, Flood, 2014): a bijection, every bit of which depends
// on every other.
static uint64_t mix(uint64_t word) {
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
    word = (word ^ word >> 27) * 0x94d049bb133111ebu;
    return word ^ word >> 31;
}

static uint64_t mix_all(uint64_t start, const uint64_t *words, size_t count) {
    uint64_t hash = mix(start + 0x9e3779b97f4a7c15u);
    for (size_t i = 0; i < count; i++) {
        hash = mix(hash ^ words[i]) + 0x9e3779b97f4a7c15u;
    }
    return mix(hash);
}

// Every eight bytes hash all the sources from another start, so that the buffer holds as much as
// they do together.
void pma_os_random_fallback(void *buffer, size_t size) {
    uint64_t given[2] = { 0, 0 };
    const void *from_kernel = (const void *)auxiliary(AT_RANDOM);
    if (from_kernel != NULL) {
        __builtin_memcpy(given, from_kernel, sizeof(given));
    }
    const uint64_t sources[] = { given[0],
                                 given[1],
                                 nanoseconds(CLOCK_MONOTONIC),
                                 nanoseconds(CLOCK_REALTIME),
                                 (uintptr_t)buffer,
                                 (uintptr_t)&pma_os_random_fallback,
                                 auxiliary(AT_SYSINFO_EHDR),
                                 (uint64_t)enter(SYS_getpid, 0, 0, 0, 0, 0, 0),
                                 (uint64_t)enter(SYS_gettid, 0, 0, 0, 0, 0, 0) };
    uint8_t *bytes = buffer;
    for (size_t done = 0; done < size; done += sizeof(uint64_t)) {
        uint64_t word = mix_all(done + cycles(), sources, sizeof(sources) / sizeof(sources[0]));
        __builtin_memcpy(bytes + done, &word, size_min(sizeof(word), size - done));
    }
}

// ---- time, processors, sleep, files

// Through libc, which reads the kernel's shared page without entering the kernel.
uint64_t pma_os_time(void) {
    return nanoseconds(CLOCK_MONOTONIC_COARSE);
}

// The kernel refuses a mask shorter than its own, which has a bit for each processor that it was
// built for. Today's largest are built for 8192, the first try; the last has room for 32768.
unsigned pma_os_processors(void) {
    uint64_t mask[512] = { 0 };
    long bytes = -EINVAL;
    for (size_t room = 1024; room <= sizeof(mask) && bytes == -EINVAL; room *= 2) {
        bytes = enter(SYS_sched_getaffinity, 0, (long)room, (long)mask, 0, 0, 0);
    }
    unsigned count = 0;
    for (long i = 0; i * (long)sizeof(mask[0]) < bytes; i++) {
        count += bits_count(mask[i]);
    }
    return count == 0 ? 1 : count;
}

void pma_os_wait(uint32_t *word, uint32_t value) {
    enter(SYS_futex, (long)word, PMA_FUTEX_WAIT_PRIVATE, (long)value, 0, 0, 0);
}

void pma_os_wait_for(uint32_t *word, uint32_t value, uint64_t nanoseconds) {
    struct timespec time = { .tv_sec = (time_t)(nanoseconds / 1000000000u),
                             .tv_nsec = (long)(nanoseconds % 1000000000u) };
    enter(SYS_futex, (long)word, PMA_FUTEX_WAIT_PRIVATE, (long)value, (long)&time, 0, 0);
}

void pma_os_wake(uint32_t *word) {
    enter(SYS_futex, (long)word, PMA_FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

void pma_os_yield(void) {
    enter(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

void pma_os_write(int descriptor, const char *text, size_t size) {
    while (size > 0) {
        long written = enter(SYS_write, descriptor, (long)text, (long)size, 0, 0, 0);
        if (written > 0) {
            text += written;
            size -= (size_t)written;
        } else if (written != -EINTR) {
            return;
        }
    }
}

void pma_os_exit(int code) {
    for (;;) {
        enter(SYS_exit_group, code, 0, 0, 0, 0, 0);
    }
}

// O_NONBLOCK, lest a pipe in the place of the file hold up the start of every program.
ptrdiff_t pma_os_read_file(const char *path, char *buffer, size_t size) {
    long file = enter(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0, 0, 0);
    if (is_error(file)) {
        return file;
    }
    size_t filled = 0;
    long got = 1;
    while (filled < size && (got > 0 || got == -EINTR)) {
        got = enter(SYS_read, file, (long)(buffer + filled), (long)(size - filled), 0, 0, 0);
        filled += got > 0 ? (size_t)got : 0;
    }
    enter(SYS_close, file, 0, 0, 0, 0, 0);
    return got < 0 ? got : (ptrdiff_t)filled;
}

bool pma_os_is_privileged(void) {
    return auxiliary(AT_SECURE) != 0;
}

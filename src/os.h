// os.h - the only caller of the kernel.
//
// Owns the page size and the test hooks below; takes no lock. Calls go to the kernel directly and
// not through libc's functions, so that no other library can interpose them, and errno is never
// touched. Addresses and sizes are whole pages and not zero. A call that fails changes nothing and
// says so: NULL, or false.
#ifndef PMA_OS_H
#define PMA_OS_H

#include "base.h"

// Reads the page size from the auxiliary vector. Called once by init, before anything else here.
void pma_os_init(void);

// The page's size in bytes, and its logarithm; const after pma_os_init.
extern size_t pma_page_size;
extern unsigned pma_page_shift;

// Address space, PROT_NONE, not charged. With a hint the mapping is at the hint exactly or the call
// fails.
void *pma_os_reserve(void *hint, size_t size);

// Zeroed memory to read and write. With a hint the mapping is at the hint exactly or the call
// fails.
void *pma_os_map(void *hint, size_t size);

// Zeroed memory to read only, not charged: what a sparse table looks like before anything is
// entered in it. With a hint the mapping is at the hint exactly or the call fails.
void *pma_os_map_readonly(void *hint, size_t size);

bool pma_os_unmap(void *start, size_t size);

// Makes reserved pages readable and writable. They are zero if they were never written since
// pma_os_reserve or pma_os_decommit.
bool pma_os_commit(void *start, size_t size);

// Makes pages readable only.
bool pma_os_protect(void *start, size_t size);

// Copies over an object of the library's own data, inside one page, which may be closed to writing
// and then is so again. Nobody may look at it meanwhile.
bool pma_os_overwrite(uint64_t *target, const void *source, size_t size);

// Drops the pages and makes the range PROT_NONE again, not charged.
bool pma_os_decommit(void *start, size_t size);

// What is done about transparent huge pages, in the words and the order of the option thp. Set once
// by init, before anything is mapped that could hold one.
//
//   LEAVE   nothing: the system's setting rules
//   NEVER   all that becomes writable is kept from them. By advice and not by prctl, which would
//           rule over the program's own mappings too, and over what it executes
//   ADVISE  huge blocks invite them: each has a mapping of its own, so all of it goes back at once.
//           The page heap gives back single pages, which would tear huge pages apart, and the kernel
//           would fill the holes again
enum huge_pages { HUGE_PAGES_LEAVE, HUGE_PAGES_NEVER, HUGE_PAGES_ADVISE };
void pma_os_set_huge_pages(enum huge_pages choice);

// A mapping for one block; advice for it, if that is the choice and it can hold a huge page.
void pma_os_invite_huge_pages(void *start, size_t size);

// Drops the pages; they stay readable and writable. True only if they read as zero from now on.
bool pma_os_purge(void *start, size_t size);

// Faults the pages in for writing at once. An optimisation: false changes nothing.
bool pma_os_populate(void *start, size_t size);

// Makes a mapping longer; contents are kept. In place if target is NULL, else it moves to target,
// over what was reserved there. NULL: the mapping is as it was, but the kernel may have unmapped
// the target.
void *pma_os_remap(void *start, size_t old_size, size_t new_size, void *target);

// Pages that a forked child sees as zero. False where the kernel does not know how.
bool pma_os_wipe_on_fork(void *start, size_t size);

// Fills the buffer from the kernel's generator without ever waiting; false if it did not.
bool pma_os_random(void *buffer, size_t size);

// Weak entropy for the case that pma_os_random fails: clocks, the auxiliary vector's bytes,
// addresses.
void pma_os_random_fallback(void *buffer, size_t size);

// Monotonic time in nanoseconds, coarse (some milliseconds): cheap enough for slow paths.
uint64_t pma_os_time(void);

// Usable processors, at least 1, from the affinity mask.
unsigned pma_os_processors(void);

// Sleeps while *word == value; returns on a wake, a signal, or at once. Wakes one sleeper.
void pma_os_wait(uint32_t *word, uint32_t value);
void pma_os_wait_for(uint32_t *word, uint32_t value, uint64_t nanoseconds); // no longer than that
void pma_os_wake(uint32_t *word);

void pma_os_yield(void);

// Writes all of it, as far as the descriptor takes it without an error.
void pma_os_write(int descriptor, const char *text, size_t size);

// The process ends at once: nothing of libc's or of the program's runs any more.
_Noreturn void pma_os_exit(int code);

// A small file's beginning, for options; the number of bytes, or the kernel's error, negative.
ptrdiff_t pma_os_read_file(const char *path, char *buffer, size_t size);

// True when the program runs with more rights than its caller (AT_SECURE).
bool pma_os_is_privileged(void);

#if PMA_TEST
// Test hooks, in the test build only. The n-th call from now that can fail does fail (0: none),
// once or, if forever, from then on; pma_os_calls counts them.
void pma_os_fail_at(uint64_t n, bool forever);
uint64_t pma_os_calls(void);
// Environment, read by pma_os_init in the test build: PMA_TEST_PAGE=16384 acts as if the page were
// that large; PMA_TEST_FAIL=N[+] sets pma_os_fail_at(N, with +: forever).
#endif

#endif

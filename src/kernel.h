// kernel.h - the instruction by which the kernel is entered, and what a sanitizer is told of it.
//
// Owns nothing. libc's wrappers can be interposed, and they write errno, which malloc and free must
// leave alone when they succeed. Only os.c includes it: what is asked of the kernel stands there.
#ifndef PMA_KERNEL_H
#define PMA_KERNEL_H

#include "base.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

// Returns what the kernel returns: for an error its negative number, -4095 at the lowest.
#if defined(__x86_64__) && defined(__LP64__)
static inline long enter(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__) && defined(__LP64__)
static inline long enter(long number, long a, long b, long c, long d, long e, long f) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory", "cc");
    return x0;
}
#elif defined(__riscv) && __riscv_xlen == 64
static inline long enter(long number, long a, long b, long c, long d, long e, long f) {
    register long a7 __asm__("a7") = number;
    register long a0 __asm__("a0") = a;
    register long a1 __asm__("a1") = b;
    register long a2 __asm__("a2") = c;
    register long a3 __asm__("a3") = d;
    register long a4 __asm__("a4") = e;
    register long a5 __asm__("a5") = f;
    __asm__ volatile("ecall"
                     : "+r"(a0)
                     : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5)
                     : "memory");
    return a0;
}
#elif defined(__i386__)
// The sixth argument goes where the frame pointer may be, the first where position independent code
// may keep its table: both are saved on the stack, and all are fetched from memory.
static inline long enter(long number, long a, long b, long c, long d, long e, long f) {
    long arguments[6] = { a, b, c, d, e, f };
    long *from = arguments;
    long result = number;
    __asm__ volatile("pushl %%ebx\n\t"
                     "pushl %%ebp\n\t"
                     "movl 0(%%edi), %%ebx\n\t"
                     "movl 4(%%edi), %%ecx\n\t"
                     "movl 8(%%edi), %%edx\n\t"
                     "movl 12(%%edi), %%esi\n\t"
                     "movl 20(%%edi), %%ebp\n\t"
                     "movl 16(%%edi), %%edi\n\t"
                     "int $0x80\n\t"
                     "popl %%ebp\n\t"
                     "popl %%ebx"
                     : "+a"(result), "+D"(from)
                     :
                     : "ecx", "edx", "esi", "memory", "cc");
    return result;
}
#else
static inline long enter(long number, long a, long b, long c, long d, long e, long f) {
    int saved = errno;
    long result = syscall(number, a, b, c, d, e, f);
    if (result == -1) {
        result = -errno;
        errno = saved;
    }
    return result;
}
#endif

static inline bool is_error(long result) {
    return result < 0 && result >= -4095;
}

// What one thread unmaps another may be given by the kernel, which orders the two. The thread
// sanitizer does not see that, since the kernel is entered behind its back: it is told.
#ifdef __SANITIZE_THREAD__
extern void __tsan_acquire(void *address), __tsan_release(void *address);
static char addresses;
#define addresses_leave() __tsan_release(&addresses)
#define addresses_come() __tsan_acquire(&addresses)
// Stacks of threads that ended are unmapped by the C library, behind its back too: what it knows of
// these addresses is of another time. Its own mmap forgets it.
#define addresses_are_new(start, size, protection) \
    (void)mmap(start, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)
#else
#define addresses_are_new(start, size, protection) (void)0
#define addresses_leave() (void)0
#define addresses_come() (void)0
#endif

#endif

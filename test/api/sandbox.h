// sandbox.h - a kernel that answers chosen calls with an error: a seccomp filter on this process.
#ifndef SANDBOX_H
#define SANDBOX_H

#include "../harness.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { SANDBOX_CALLS = 64 };

static inline void sandbox_install(const struct sock_filter *filter, size_t length) {
    struct sock_fprog program;
    program.len = (unsigned short)length;
    program.filter = (struct sock_filter *)(uintptr_t)filter;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        test_skip("no seccomp filters here");
    }
}

// Listed calls get one answer, all others another.
static inline void sandbox_calls(const int *calls, size_t count, uint32_t listed, uint32_t others) {
    struct sock_filter filter[2 * SANDBOX_CALLS + 2];
    size_t n = 0;
    REQUIRE(count <= SANDBOX_CALLS);
    filter[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < count; i++) {
        filter[n++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], 0, 1);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, listed);
    }
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, others);
    sandbox_install(filter, n);
}

// From now on these calls fail with this error, for this process and its children, for ever. An
// error of 0 is the lie: success, and nothing done.
static inline void refuse_calls(const int *calls, size_t count, int error) {
    sandbox_calls(calls, count, SECCOMP_RET_ERRNO | (uint32_t)error, SECCOMP_RET_ALLOW);
}

// From now on only these calls are allowed; any other one raises SIGSYS.
static inline void allow_only(const int *calls, size_t count) {
    sandbox_calls(calls, count, SECCOMP_RET_ALLOW, SECCOMP_RET_TRAP);
}

#endif

// cxx_alone.c - the operators in a program without a C++ library: nobody can throw.
#include <config.h>

#include "base.h"
#include "cxx.h"
#include "harness.h"
#include "os.h"

// Checkers of memory bring a C++ library of their own.
extern void throw_bad_alloc(void) __asm__("_ZSt17__throw_bad_allocv") __attribute__((weak));

static void demand(void *argument) {
    pma_os_fail_at(1, true);
    if (argument == NULL) {
        (void)pma__Znwm((size_t)64 << 20);
    } else {
        (void)pma__ZnamSt11align_val_t((size_t)64 << 20, 4096);
    }
}

int main(void) {
    static char aligned;
    test_begin(60);
    void *block = pma__Znwm(100);
    CHECK(block != NULL);
    pma__ZdlPv(block);
    pma_os_fail_at(1, true);
    CHECK(pma__ZnwmRKSt9nothrow_t((size_t)64 << 20, NULL) == NULL);
    CHECK(pma__ZnamSt11align_val_tRKSt9nothrow_t((size_t)64 << 20, 4096, NULL) == NULL);
    pma_os_fail_at(0, false);
    if (throw_bad_alloc != NULL) {
        return test_end();
    }
    const char *sentence = "operator new(): no memory, and no C++ library to throw (size 67108864)";
    expect_abort(demand, NULL, sentence);
    expect_abort(demand, &aligned, sentence);
    return test_end();
}

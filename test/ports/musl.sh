#!/bin/sh
# pamalloc for musl: shared and static, with the tests that apply there.
# Packages: musl-tools
. "$(dirname "$0")/lib.sh"
need musl-gcc
# The host's C++ library is the GNU C library's.
build CC=musl-gcc CXX=false

# The kernel's headers, which musl-gcc does not look for; and what the tests expect of the GNU C library's headers.
mkdir "$work/kernel"
ln -s /usr/include/linux /usr/include/asm-generic "/usr/include/$(gcc -print-multiarch)/asm" "$work/kernel"
flags="-g -O2 -D_GNU_SOURCE -idirafter $work/kernel -include $top/test/ports/musl.h"

# A fully static program, with threads, is served by the archive.
cat >"$work/static.c" <<'END'
#include <pthread.h>
#include <stdlib.h>
static void *volatile block;
static void *work(void *unused) { free(malloc(100)); return unused; }
int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) != 0) { return 1; }
    pthread_join(thread, NULL);
    block = malloc(100);
    free(block);
    free(block);
    return 0;
}
END
logged 'a static program' musl-gcc -static "$work/static.c" "$work/.libs/libpamalloc.a" -o "$work/static"
(ulimit -c 0 && "$work/static") >"$work/static.out" 2>&1
grep -q '^pamalloc: free(): double free' "$work/static.out" || {
    cat "$work/static.out"
    say 'a static program is not served'
    say '0 passed, 1 failed, 0 left out'
    exit 1
}

tests=$(units)
# musl ends a second abort() inside a handler for SIGABRT by itself. It does not tell whether a process has one thread, so
# a fork in a signal's handler takes locks there (init), and a process whose own threads have ended does not end while
# the thread of the option background is there (background).
without test/unit/fatal test/unit/init test/unit/background
if [ "$quick" = no ]; then
    chosen=$tests
    tests=$(programs)
    # Calls that musl has not: backtrace (handlers, profiler, libc_blocks), rawmemchr, dlmopen, __cxa_thread_atexit_impl
    # (late); the GNU name of a type (limits_usable); early runs by .preinit_array, which musl does not know. The rest is
    # what other programs of those folders are made of.
    without test/misuse/handlers test/api/profiler test/api/libc_blocks test/api/strings_at_the_end test/api/plugins \
        test/api/late test/api/limits_usable test/api/early test/api/placed
    for test in $tests; do
        chosen="$chosen $test-linked.t $test-preloaded.t"
    done
    tests=$chosen
fi
run CFLAGS="$flags"

#!/bin/sh
# pamalloc for 32-bit x86, on this kernel's 32-bit side.
# Packages: gcc-12-multilib
. "$(dirname "$0")/lib.sh"
for compiler in gcc gcc-12; do
    cc="$compiler -m32"
    echo 'int main(void) { return 0; }' | $cc -x c -o /dev/null - 2>/dev/null && break
    cc=
done
[ -n "$cc" ] || missing "a compiler that links with -m32 (Debian package: gcc-12-multilib)"
# gcc-12-multilib lacks the link to the kernel's headers that gcc-multilib has, which cannot stand beside cross compilers.
headers=
echo '#include <linux/types.h>' | $cc -x c -E - >/dev/null 2>&1 ||
    headers="-idirafter /usr/include/$(gcc -print-multiarch)"
build --host=i686-linux-gnu CC="$cc" CXX=false CFLAGS="-g -O2 $headers"
tests=$(units)
# These have figures that 32 bits do not hold, like blocks of 2^47 bytes and addresses above 4 GiB.
without test/unit/alloc test/unit/fatal test/unit/huge test/unit/large test/unit/malloc test/unit/os test/unit/os_refused \
    test/unit/pagemap test/unit/random test/unit/region test/unit/runlist test/unit/slab test/unit/pageheap
if [ "$quick" = no ]; then
    chosen=$tests
    tests=$(programs)
    # The same, and: names of C++ with m for size_t (errno_kept, pointers, double_frees, handlers, conformance,
    # sized_strict); more than 2 GiB at once (alignment_holds, statistics_tell); 25 copies in as many namespaces
    # (plugins). Below a limit of 64 MiB of address space, all of which was used and freed, two thirds can be had
    # again there in other sizes, less than limits_usable asks for.
    without test/api/addresses_in_range test/api/alignment_holds test/api/errno_kept test/api/overflow_refused \
        test/api/plugins test/api/silent test/api/statistics_tell test/api/conformance test/api/placed \
        test/api/limits_usable test/api/sized_strict \
        test/misuse/double_frees test/misuse/handlers test/misuse/pointers
    for test in $tests; do
        chosen="$chosen $test-linked.t $test-preloaded.t"
    done
    tests=$chosen
fi
run WERROR_CFLAGS=

#!/bin/sh
# Do loops that need no new memory leave the kernel alone, and does a block that grows call it seldom? What is run is told
# in bench/fewcalls.c.
#
# Packages: strace
set -u
bench=${builddir:-.}/bench/fewcalls
library=${PAMALLOC_LIB:-${builddir:-.}/.libs/libpamalloc.so}
wrong=0

command -v strace >/dev/null || {
    echo 'skipped: no strace'
    [ "${CI:-}" != true ] || exit 99
    exit 77
}
[ -x "$bench" ] && [ -f "$library" ] || {
    echo "no $bench or no $library"
    exit 99
}
work=$(mktemp -d "${builddir:-.}/few-calls.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

count() {
    strace -f -q -o "$work/calls" -E LD_PRELOAD="$library" "$bench" "$@" >/dev/null || return 1
    wc -l <"$work/calls"
}

start=$(count none) || {
    echo 'skipped: strace may not trace here'
    [ "${CI:-}" != true ] || exit 99
    exit 77
}

# expect MOST ARGUMENTS...: fewer system calls than that, above those of a start.
expect() {
    most=$1
    shift
    calls=$(count "$@") || calls=1000000
    calls=$((calls - start))
    echo "fewcalls $*: $calls"
    if [ "$calls" -ge "$most" ]; then
        echo "fewcalls $*: $calls system calls above those of a start; they should be below $most"
        wrong=1
    fi
}

expect 20 lone 100 100000
expect 20 lone 200000 100000
expect 20 lone 5000000 100000
expect 2500 grow 1048576 1073741824 1048576
expect 300 grow 1048576 1073741824 4096
exit $wrong

#!/bin/sh
# Does one call of malloc and free take no more instructions than it did? Counted exactly, by valgrind (bench/count).
#
# Packages: valgrind python3
#
# The figures belong to one compiler and one kind of processor, with the flags that configure chooses by itself. After a
# change that makes a call cheaper, lower them: bench/count --record FILE, with the file that this test names.

set -u

say() {
    printf 'instructions: %s\n' "$*"
}

# No skip for want of a program where the machine is ours; but a build that has no figures is skipped anywhere.
missing() {
    say "missing: $*"
    [ "${CI:-}" = true ] && exit 99
    exit 77
}

no_figures() {
    say "no figures for $*"
    exit 77
}

command -v valgrind >/dev/null || missing valgrind
command -v python3 >/dev/null || missing python3

[ "$PMA_DEBUG" = 0 ] || no_figures 'a build with assertions'
case $("$builddir/config.status" --config) in
*enable-valgrind* | *enable-tls-model*) no_figures 'a build with other options' ;;
esac
flags=$(sed -n 's/^CFLAGS = //p' "$builddir/Makefile")
[ "$flags" = '-g -O2' ] || no_figures "CFLAGS of '$flags'"

# CC may be a command with arguments.
case $($CC --version | head -n 1) in
*clang*) compiler=clang ;;
*) compiler=gcc ;;
esac
version=$($CC -dumpversion | cut -d. -f1)
machine=$($CC -dumpmachine | cut -d- -f1)
figures=$srcdir/test/stress/instructions/$compiler-$version-$machine
[ -f "$figures" ] || no_figures "$compiler $version on $machine"

say "$figures"
exec timeout -k 10 $((120 * ${PMA_TEST_SLOW:-1})) "$srcdir/bench/count" --limits "$figures" --bin "$builddir/bench" \
    "pamalloc=$PAMALLOC_LIB"

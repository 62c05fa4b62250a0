#!/bin/sh
# Does the static archive link into dynamic, static and static-pie programs, first and last on the
# line, whichever name of the family is the only one used, and is it then the heap in use?
set -u
. "${srcdir:-.}/test/api/lib.sh"
archive=${PAMALLOC_ARCHIVE:-$build/.libs/libpamalloc.a}
[ -f "$archive" ] || missing "$archive"

# Each program uses one way into the family, and with an argument frees a block twice.
program() {
    cat >"$work/$1.c" <<END
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *volatile block;
static int arena_init(void) { return 1; }
int lock_init, rng_next, bitmap_set, page_alloc, size_class, run_take, slab_take;
int main(int count, char **arguments) {
    block = $2;
    if (block == NULL || !arena_init()) { return 1; }
    if (count > 1) { free(block); free(block); }
    return arguments[0] == NULL;
}
END
}
program only_malloc 'malloc(100)'
program only_strdup 'strdup("text")'
program only_pvalloc 'pvalloc(100)'
program only_mallinfo '(mallinfo2().arena > (size_t)1 << 40 ? NULL : strdup("text"))'
cat >"$work/only_new.cc" <<'END'
int main(int count, char **) {
    int *volatile block = new int[100];
    if (count > 1) { delete[] block; delete[] block; }
    return 0;
}
END

# A warning of the linker is a failure too: it is a double definition in the making.
try() {
    name=$1
    source=$2
    shift 2
    case $source in
    *.cc) compiler=${CXX:-g++} ;;
    *) compiler=${CC:-cc} ;;
    esac
    # shellcheck disable=SC2086 # the compiler may come with options
    $compiler -O2 "$@" -o "$work/program" >"$work/output" 2>&1 || {
        cat "$work/output"
        fail "$name does not link"
        return
    }
    [ ! -s "$work/output" ] || {
        cat "$work/output"
        fail "$name links with warnings"
    }
    check "$name" "$work/program"
    check "$name, with options" env PAMALLOC_OPTIONS= "$work/program"
    aborts "$name" 'pamalloc: ' "$work/program" twice
}

for source in only_malloc.c only_strdup.c only_pvalloc.c only_mallinfo.c only_new.cc; do
    try "$source" "$source" "$work/$source" "$archive" -pthread
    try "$source, archive first" "$source" -Wl,--whole-archive "$archive" -Wl,--no-whole-archive \
        "$work/$source" -pthread
    try "$source -static" "$source" -static "$work/$source" "$archive" -pthread
    try "$source -static-pie" "$source" -static-pie -fPIE "$work/$source" "$archive" -pthread
    try "$source -static, sections collected" "$source" -static -Wl,--gc-sections \
        -ffunction-sections "$work/$source" "$archive" -pthread
    # What the compiler takes for its own built-in functions it hides from the linker until after the
    # archives were searched: with -flto the user has to name one of them.
    try "$source -static -flto" "$source" -static -flto -Wl,-u,malloc "$work/$source" "$archive" \
        -pthread
done
finish

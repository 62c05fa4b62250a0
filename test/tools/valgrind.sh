#!/bin/sh
# Does valgrind's memcheck see the blocks, leaks and overruns of a program on this heap exactly, linked, preloaded or
# with the archive in it, without an option; do names that it does not replace serve from the heap that it sees; and do
# its other tools run?
# Packages: valgrind libc6-dbg gcc g++ libc6-dev
set -u
. "${srcdir:-.}/test/ways/lib.sh"
command -v valgrind >/dev/null || missing valgrind
grep -q '^#define PMA_VALGRIND 1' "$build/config.h" || missing 'a build that found valgrind/valgrind.h'
source=${srcdir:-.}/test/tools
archive=${PAMALLOC_ARCHIVE:-$build/.libs/libpamalloc.a}
there="-L$work/lib -Wl,-rpath,$work/lib"
cxx=${CXX:-g++}
plain_flags="-g -O0 -fno-builtin -std=c++17"
# shellcheck disable=SC2086 # flags, split into words
{
    build plain $cxx $plain_flags "$source/planted.cc" || finish
    build linked $cxx $plain_flags "$source/planted.cc" $there -lpamalloc || finish
    build inside $cxx $plain_flags "$source/planted.cc" "$archive" -pthread || finish
    build names $cc -g -O0 -fno-builtin "$source/names.c" || finish
    build names-linked $cc -g -O0 -fno-builtin "$source/names.c" $there -lpamalloc || finish
}

# sees WHAT MISTAKE FINDING PROGRAM...: one error, and it is the planted one. "none": not a word, and nothing is left.
sees() {
    sees_of="$1, $2"
    mistake=$2
    finding=$3
    shift 3
    valgrind --leak-check=full --error-exitcode=9 --log-file="$work/log" "$@" "$mistake" >"$work/output" 2>&1
    status=$?
    if [ "$mistake" = none ]; then
        [ "$status" -eq 0 ] && grep -q 'All heap blocks were freed' "$work/log" &&
            grep -q 'total heap usage: [1-9]' "$work/log" || {
            cat "$work/log" "$work/output"
            fail "$sees_of: exit code $status"
        }
    elif [ "$status" -ne 9 ] || ! grep -q "ERROR SUMMARY: 1 errors" "$work/log" || ! grep -q "$finding" "$work/log"; then
        cat "$work/log" "$work/output"
        fail "$sees_of: exit code $status, want one error: $finding"
    fi
}
for way in preloaded linked inside; do
    program=$work/$way
    LD_PRELOAD=
    if [ "$way" = preloaded ]; then
        program=$work/plain
        LD_PRELOAD=$library
    fi
    export LD_PRELOAD
    sees "$way" overrun 'is 0 bytes after a block of size 40 alloc' "$program"
    sees "$way" leak '123 bytes in 1 blocks are definitely lost' "$program"
    [ "$way" = preloaded ] || continue
    sees "$way" none '' "$program"
    sees "$way" underrun 'is 1 bytes before a block of size 40 alloc' "$program"
    sees "$way" late 'is 0 bytes inside a block of size 10 free' "$program"
    sees "$way" twice 'Invalid free()' "$program"
    sees "$way" unset 'depends on uninitialised value' "$program"
    sees "$way" mismatch 'Mismatched free()' "$program"
done

# With the option for an allocator that valgrind has to be told of, it is the same.
LD_PRELOAD=$library
export LD_PRELOAD
sees 'told by --soname-synonyms' overrun 'is 0 bytes after a block of size 40 alloc' \
    '--soname-synonyms=somalloc=*pamalloc*' "$work/plain"
sees 'all names, preloaded' none '' "$work/names"
LD_PRELOAD=
sees 'all names, linked' none '' "$work/names-linked"
LD_PRELOAD=$library

for tool in helgrind dhat; do
    # shellcheck disable=SC2086
    case $tool in
    dhat) option=--$tool-out-file=/dev/null ;;
    *) option=--error-exitcode=9 ;;
    esac
    check "$tool" valgrind --tool=$tool --log-file="$work/log" "$option" "$work/plain"
done
finish

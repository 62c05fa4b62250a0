#!/bin/sh
# Does gdb work on a program that has the library preloaded: breakpoints in malloc with the right count, a backtrace
# from the line of a wrong free to the program's own function, calls into the program?
# Packages: gdb gcc libc6-dev
set -u
. "${srcdir:-.}/test/ways/lib.sh"
command -v gdb >/dev/null || missing gdb
build known $cc -g -O0 -fno-builtin "${srcdir:-.}/test/tools/known.c" || finish
debug() {
    timeout 100 gdb -nx -batch -ex 'set startup-with-shell off' -ex 'set debuginfod enabled off' \
        -ex "set environment LD_PRELOAD $library" -ex 'set breakpoint pending on' "$@" </dev/null >"$work/output" 2>&1
}
prints() {
    grep -q "$2" "$work/output" || {
        cat "$work/output"
        fail "$1: no '$2'"
    }
}
# Every call meets the breakpoint: none is inlined past its entry. The loader has a malloc of its own, so the address is
# asked for.
line=$(grep -n 'With a word more' "${srcdir:-.}/test/tools/known.c" | cut -d : -f 1)
debug -ex 'break main' -ex run -ex 'print (void *) dlsym((void *) 0, "malloc")' -ex 'break *$' -ex 'ignore 2 1000000' \
    -ex "break $line" -ex continue -ex 'info breakpoints' -ex 'info symbol $1' -ex 'print $_strlen("four")' \
    -ex 'call (void *) malloc(10)' -ex 'call (void) free($)' -ex delete -ex continue --args "$work/known" 1
prints 'a breakpoint in malloc' 'already hit 1000 times'
prints 'whose malloc it is' 'malloc in section .text of .*libpamalloc'
prints 'a call into the program' '= (void \*) 0x'
prints 'the end' 'exited normally'

# The line, then the program's own function in the story.
debug -ex run -ex backtrace --args "$work/known" 1 twice
prints 'a double free' '^pamalloc: free(): double free: '
prints 'a double free' 'received signal SIGABRT'
prints 'a backtrace' 'in free ()\|in free (\|pma_fatal'
prints 'a backtrace to the mistake' 'in main (.*known.c:'
finish

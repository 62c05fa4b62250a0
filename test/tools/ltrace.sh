#!/bin/sh
# Does ltrace see each call of a program that links with the library or has it preloaded?
# Packages: ltrace gcc libc6-dev
set -u
. "${srcdir:-.}/test/ways/lib.sh"
command -v ltrace >/dev/null || missing ltrace
# ltrace puts its breakpoints into the table of late binding.
build known $cc -g -O0 -fno-builtin -no-pie -Wl,-z,lazy "${srcdir:-.}/test/tools/known.c" || finish
counts() {
    check "$1" timeout 100 ltrace -c -o "$work/counts" "$2" 1
    for call in malloc free; do
        seen=$(awk -v call=$call '$NF == call { print $4 }' "$work/counts")
        [ "${seen:-0}" = 1000 ] || fail "$1: ${seen:-0} calls of $call, not 1000"
    done
}
LD_PRELOAD=$library
export LD_PRELOAD
counts 'preloaded' "$work/known"
# It is our heap that the calls lead to.
timeout 100 ltrace -o "$work/calls" "$work/known" 1 twice >"$work/output" 2>&1
grep -q '^pamalloc: free(): double free' "$work/output" || fail "a double free under ltrace: $(cat "$work/output")"
grep -q '^free(.*<no return \.\.\.>\|SIGABRT' "$work/calls" || fail "ltrace does not show the end: $(tail -n 3 "$work/calls")"
finish

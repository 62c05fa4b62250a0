#!/bin/sh
# Does heaptrack count the calls and find the leak of a program that has the library preloaded?
# Packages: heaptrack gcc libc6-dev
set -u
. "${srcdir:-.}/test/ways/lib.sh"
command -v heaptrack >/dev/null || missing heaptrack
build known $cc -g -O0 -fno-builtin "${srcdir:-.}/test/tools/known.c" || finish
HOME=$work
export HOME
# Its own library is preloaded by the script, before what was there; the calls pass through it to ours.
cd "$work" || exit 99
LD_PRELOAD=$library timeout 100 heaptrack -o "$work/track" "$work/known" 5 leak >"$work/output" 2>&1 ||
    fail "heaptrack: exit code $?: $(cat "$work/output")"
data=$(ls "$work"/track*.gz "$work"/track*.zst 2>/dev/null | head -n 1)
heaptrack_print -l 1 "$data" >"$work/report" 2>"$work/output" || fail "heaptrack_print: $(cat "$work/output")"
calls=$(sed -n 's/^calls to allocation functions: \([0-9]*\).*/\1/p' "$work/report")
[ "${calls:-0}" -ge 5007 ] && [ "${calls:-0}" -lt 5100 ] || fail "${calls:-0} calls of 5007 are counted"
# Seven blocks of 4321 bytes: 30.25 thousands.
grep -q '^30\.25K leaked over 7 calls from' "$work/report" || {
    grep -i leak "$work/report"
    fail 'the leak is not found'
}
finish

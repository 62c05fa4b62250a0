#!/bin/sh
# Does perf find the functions of a preloaded library, and the way that led to them?
# Packages: linux-perf gcc libc6-dev
set -u
. "${srcdir:-.}/test/ways/lib.sh"
command -v perf >/dev/null || missing perf
build known $cc -g -O1 -fno-omit-frame-pointer -fno-builtin "${srcdir:-.}/test/tools/known.c" || finish
# Containers and careful kernels refuse the call itself, to everybody.
if ! perf record -q -e cpu-clock:u -o "$work/none" true >"$work/output" 2>&1; then
    echo "not tested: the kernel refuses perf_event_open: $(head -n 1 "$work/output")"
    exit 0
fi
LD_PRELOAD=$library timeout 60 perf record -q -e cpu-clock:u -F 2000 --call-graph dwarf,4096 -o "$work/data" \
    "$work/known" 200000 >"$work/output" 2>&1 || fail "perf record: exit code $?: $(cat "$work/output")"
perf report -i "$work/data" --stdio --no-children -g none --percent-limit 1 >"$work/report" 2>"$work/output" ||
    fail "perf report: $(cat "$work/output")"
grep -q 'libpamalloc.*malloc\|libpamalloc.*free' "$work/report" || {
    head -n 40 "$work/report"
    fail 'perf shows neither malloc nor free of the library'
}
perf script -i "$work/data" >"$work/script" 2>/dev/null
# Of the samples in the library at least nine in ten lead to the program's function.
awk '
    /^[^ \t]/ { if (inside) { all++; led += leads }; inside = leads = 0; first = 1; next }
    NF && first { inside = /libpamalloc/; first = 0 }
    /blocks_come_and_go/ { leads = 1 }
    END { if (inside) { all++; led += leads }; print all + 0, led + 0; exit !(all > 20 && led >= all * 0.9) }' \
    "$work/script" >"$work/output" || fail "samples in the library, and those that lead to the program: $(cat "$work/output")"
finish

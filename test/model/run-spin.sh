#!/bin/sh
# Searches the models of this folder with spin: every state that can be reached, in small instances that differ in what
# they leave out. A variant with one step made wrong must fail, and at the assertion that names what the step is for: so
# the models are known to be able to fail. Without arguments in a minute or two; with --long larger instances too, which
# take five minutes and 1.2 GiB. To see how a variant fails:
#     spin -DWRONG=NO_RETRY -a remote.pml && cc -DSAFETY -o pan pan.c && ./pan && spin -DWRONG=NO_RETRY -t -p remote.pml
set -u

here=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}/test/model
build=${builddir:-.}
failed=0
number=0
memory=1500

missing() {
    echo "run-spin.sh: missing: $1"
    [ "${CI:-}" = true ] && exit 99
    exit 77
}

compiler=${CC:-cc}
command -v spin >/dev/null || missing spin
command -v "${compiler%% *}" >/dev/null || missing "$compiler"
dir=$(mktemp -d "$build/model.XXXXXX") || exit 99
dir=$(cd "$dir" && pwd) || exit 99
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

tell() {
    echo "$result $number - $model $* ($(awk '/states, stored/ { print $1 }' "$dir/out") states)"
}

# search SECONDS MODEL FLAGS: what the search printed is in $dir/out then. Reversing the order of processes finds the
# wrong variants sooner and changes nothing else.
search() {
    seconds=$1
    model=$2
    shift 2
    number=$((number + 1))
    result=ok
    rm -rf "$dir/work" && mkdir "$dir/work" && cd "$dir/work" || exit 99
    : >"$dir/out"
    if ! spin "$@" -a "$here/$model.pml" >"$dir/log" 2>&1 ||
        ! $compiler "$optimize" -w -DSAFETY -DCOLLAPSE -DREVERSE -DMEMLIM="$memory" -o pan pan.c >>"$dir/log" 2>&1; then
        cat "$dir/log"
        exit 99
    fi
    timeout "$seconds" ./pan -m100000 >"$dir/out" 2>/dev/null
}

refuse() {
    result='not ok'
    failed=$((failed + 1))
    cat "$dir/out"
}

# Complete, and without an error.
holds() {
    search 900 "$@"
    if ! grep -q 'errors: 0$' "$dir/out" ||
        grep -qE 'not completed|too small|out of memory|pan: reached' "$dir/out"; then
        refuse
    fi
    shift
    tell "$@"
}

# fails MODEL PATTERN FLAGS: at an assertion that the pattern matches.
fails() {
    model=$1
    pattern=$2
    shift 2
    search 300 "$model" "$@"
    grep -qE "assertion violated.*($pattern)" "$dir/out" || refuse
    tell "$*, which must fail"
}

# To compile well takes as long as to search through three million states.
optimize=-O1
holds remote
optimize=-O0
holds remote -DWORDS=1 -DSLOTS=2
holds remote -DWORDS=1 -DRUNS=2
holds remote -DWORDS=1 -DRUNS=2 -DSLABS=2 -DMALLOCS=2
holds remote -DMALLOCS=2 -DSESSIONS=1 -DENDS=1
holds remote -DWORDS=1 -DMALLOCS=2 -DENDS=1
holds remote -DWORDS=1 -DMALLOCS=2 -DFORK=1
holds remote -DMALLOCS=2 -DSESSIONS=1 -DCLAIM_FIRST=1
holds misuse

# A run given back with slots in use, or twice; a slab kept for nothing; the inbox or the page map broken; a bit lost.
fails remote 'used\[' -DWRONG=NO_VERSION
fails remote 'used\[' -DWRONG=STATE_LATE
fails remote alive -DWRONG=STALE_LIVE -DWORDS=1 -DSLOTS=2
fails remote alive -DWRONG=NO_RETRY
fails remote alive -DWRONG=NO_LOOK_LEAVING
fails remote alive -DWRONG=NO_LOOK_DRAINED
fails remote queued -DWRONG=QUEUED_LATE
fails remote mask -DWRONG=NEXT_LATE -DRUNS=2 -DSLABS=2 -DOWNER_FREES=0
fails remote mask -DWRONG=REUSE_CLEARS_QUEUED
fails remote pagemap -DWRONG=MAP_LATE
fails remote taken -DWRONG=PAGES_LATE -DWORDS=1 -DRUNS=2 -DMALLOCS=2
fails remote taken -DWRONG=NO_INCARNATION -DWORDS=1 -DRUNS=2 -DMALLOCS=2
fails remote taken -DWRONG=CLAIM_CURRENT
fails remote live -DWRONG=LIVE_FIRST
fails remote idle -DWRONG=NO_VISIT -DMALLOCS=2 -DSESSIONS=1 -DENDS=1
fails remote idle -DWRONG=NO_SECOND_VISIT -DMALLOCS=2 -DSESSIONS=1 -DENDS=1
fails remote alive -DWRONG=CURRENT_STAYS -DWORDS=1 -DMALLOCS=1 -DSESSIONS=1 -DENDS=1
fails remote attached -DWRONG=HUSK_UNNOTICED
fails remote queued -DWRONG=FORK_FORGETS -DMALLOCS=2 -DSESSIONS=1 -DFORK=1
fails remote mask -DWRONG=FORK_CLEARS_LATE -DMALLOCS=2 -DSESSIONS=1 -DFORK=1

fails misuse frees -DWRONG=NO_LOOK
fails misuse frees -DWRONG=NO_OLD
fails misuse frees -DWRONG=NO_COMPARISON
fails misuse frees -DWRONG=NO_REFUSAL
fails misuse frees -DLIMIT=1

if [ "${1:-}" = --long ]; then
    memory=4000
    optimize=-O1
    holds remote -DMALLOCS=4
    holds remote -DMALLOCS=2 -DENDS=1
    holds remote -DWORDS=1 -DRUNS=2 -DSLABS=2 -DMALLOCS=2 -DENDS=1 -DOWNER_FREES=0
    holds remote -DMALLOCS=2 -DSESSIONS=1 -DFORK=1
    holds remote -DCLAIM_FIRST=1
    holds remote -DWORDS=1 -DSLOTS=2 -DMALLOCS=4 -DSESSIONS=3
fi

echo "$number searches, $failed wrong"
[ "$failed" -eq 0 ]

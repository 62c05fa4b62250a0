#!/bin/sh
# Do options act, replay a run, tell when they are misspelt, and lie still in programs that run with
# more rights than their caller?
set -u
. "${srcdir:-.}/test/api/lib.sh"
placed=$build/test/api/placed

# run OPTIONS ARGS...: what placed tells under the options.
run() {
    options=$1
    shift
    env LD_PRELOAD="$library" PAMALLOC_OPTIONS="$options" "$placed" "$@"
}

ulimit -c 0
[ "$(run seed=77)" = "$(run seed=77)" ] || fail 'one seed, two placements'
[ "$(run seed=77)" != "$(run seed=78)" ] || fail 'two seeds, one placement'
[ "$(run '')" != "$(run '')" ] || fail 'no seed, one placement'

# A bug that depends on the layout is met again with the seed that the message tells.
first=$(run '' wrong 2>"$work/message")
seed=$(sed -n 's/^pamalloc: .*\[seed \(0x[0-9a-f]*\)\]$/\1/p' "$work/message")
case $seed in
*[1-9a-f]*) [ "$first" = "$(run "seed=$seed")" ] || fail "seed $seed does not replay the run" ;;
*) fail "the message tells no seed to replay: $(cat "$work/message")" ;;
esac

# One line for what is not understood, and the program runs.
check 'an unknown option' env LD_PRELOAD="$library" PAMALLOC_OPTIONS=sead=1 "$placed"
env LD_PRELOAD="$library" PAMALLOC_OPTIONS=sead=1 "$placed" >"$work/output" 2>"$work/error"
[ "$(grep -c '^pamalloc: ' "$work/error")" -eq 1 ] && [ "$(wc -l <"$work/error")" -eq 1 ] ||
    fail "an unknown option: not one line: $(cat "$work/error")"
env LD_PRELOAD="$library" PAMALLOC_OPTIONS=help "$placed" >"$work/output" 2>"$work/error"
grep -q seed "$work/error" || fail 'help does not tell the option seed'

# Started by another user, a program with the set-group-id bit ignores the environment.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    chmod 755 "$work"
    cp "$build/test/api/placed-linked" "$work/privileged" &&
        chgrp 1 "$work/privileged" && chmod 2755 "$work/privileged" || exit 99
    as_nobody() {
        PAMALLOC_OPTIONS=$1 setpriv --reuid 65534 --regid 65534 --clear-groups "$work/privileged"
    }
    if first=$(as_nobody seed=77 2>"$work/error"); then
        [ "$first" != "$(as_nobody seed=77)" ] || fail 'a privileged program obeys the environment'
        chmod 755 "$work/privileged"
        [ "$(as_nobody seed=77)" = "$(as_nobody seed=77)" ] || fail 'an unprivileged one does not'
    else
        echo "not tested with privileges: $(cat "$work/error")"
    fi
else
    echo 'not tested with privileges: needs root and setpriv'
fi
finish

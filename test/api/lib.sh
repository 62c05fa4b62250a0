# lib.sh - what the scripts of this folder share. It is sourced, never run.

build=${builddir:-$(pwd)}
library=${PAMALLOC_LIB:-$build/.libs/libpamalloc.so}
[ -f "$library" ] || {
    echo "no library: $library"
    exit 99
}
failed=0
work=$(mktemp -d "$build/test-api.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

fail() {
    printf 'failed: %s\n' "$*"
    failed=$((failed + 1))
}

# check WHAT COMMAND...: the command ends with 0.
check() {
    what=$1
    shift
    "$@" >"$work/output" 2>&1
    status=$?
    if [ "$status" -ne 0 ]; then
        cat "$work/output"
        fail "$what: exit code $status"
    fi
}

# quiet WHAT COMMAND...: the command writes nothing to standard error.
quiet() {
    what=$1
    shift
    "$@" 2>"$work/error" >"$work/output"
    if [ -s "$work/error" ]; then
        cat "$work/error"
        fail "$what: standard error is not empty"
    fi
}

# aborts WHAT TEXT COMMAND...: the command dies of SIGABRT, and standard error begins with the text.
aborts() {
    what=$1
    text=$2
    shift 2
    # A shell of its own reports the signal, not this one.
    sh -c 'ulimit -c 0; "$@"; exit $?' sh "$@" >"$work/output" 2>"$work/error"
    status=$?
    if [ "$status" -ne 134 ]; then
        fail "$what: exit code $status, not 134"
    fi
    case $(cat "$work/error") in
    "$text"*) ;;
    *) fail "$what: $(cat "$work/error")" ;;
    esac
}

missing() {
    echo "missing: $*"
    if [ "${CI:-}" = true ]; then
        exit 99
    fi
    exit 77
}

finish() {
    [ "$failed" -eq 0 ]
    exit
}

# lib.sh - what the checks share. It is sourced, never run.
#
# A check looks at the tree or at the built libraries. It tells everything that is wrong, each on a line of its own, and
# then ends with `finish`: 0 for nothing, 1 otherwise.

set -u

name=$(basename "$0")
top=${srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${builddir:-$top/build}
wrong=0

say() {
    printf '%s: %s\n' "$name" "$*"
}

wrong() {
    say "$*" >&2
    wrong=$((wrong + 1))
}

# A missing prerequisite is a skip on a user's machine and an error where the machine is ours.
missing() {
    say "missing: $*"
    if [ "${CI:-}" = true ]; then
        exit 99
    fi
    exit 77
}

finish() {
    if [ "$wrong" -ne 0 ]; then
        say "$wrong wrong"
        exit 1
    fi
    exit 0
}

need() {
    command -v "$1" >/dev/null || missing "$1"
}

# The checkout's own git: a folder inside another repository is not a checkout.
is_checkout() {
    [ -e "$top/.git" ] && command -v git >/dev/null
}

# A folder of our own in the build tree, gone when the check ends.
scratch() {
    dir=$(mktemp -d "$build/check-$name.XXXXXX") || exit 99
    trap 'rm -rf "$dir"' EXIT
    trap 'exit 1' HUP INT TERM
}

# C and C++ files of the tree, relative to the top; in a checkout those that git tracks.
c_files() {
    (
        cd "$top" || exit 99
        if is_checkout; then
            git ls-files '*.c' '*.h' '*.cc' '*.def'
        else
            find src include test bench tools -name '*.[ch]' -o -name '*.cc' -o -name '*.def' 2>/dev/null
        fi
    ) | sort
}

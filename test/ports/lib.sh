# lib.sh - what the scripts of this folder share. It is sourced, never run.
#
# A stage builds pamalloc for a port in a folder of its own, runs those tests that apply, and ends with one line:
#
#     NAME: 40 passed, 0 failed, 3 left out
#
# With the argument "quick" it runs some units and one program; .ci/run does that. Tests that are left out stand in the
# stage's script with the reason.

set -u
top=$(cd "$(dirname "$0")/../.." && pwd -P) || exit 1
name=$(basename "$0" .sh)
work=${PORTS_DIR:-$PWD}/ports/$name
jobs=${PORTS_JOBS:-$(nproc 2>/dev/null || echo 1)}
quick=no
[ "${1:-}" != quick ] || quick=yes
# What a calling make exports is not for this build.
unset MAKEFLAGS MFLAGS MAKELEVEL CC CXX NM VALGRIND TESTS srcdir builddir LD_PRELOAD
unset PAMALLOC_LIB PAMALLOC_TEST_LIB PAMALLOC_ARCHIVE PMA_DEBUG SANITIZERS CLANG_FORMAT

say() {
    printf '%s: %s\n' "$name" "$*"
}

missing() {
    say "missing: $*"
    if [ "${CI:-}" = true ]; then
        exit 99
    fi
    exit 77
}

need() {
    command -v "$1" >/dev/null 2>&1 || missing "$1 (Debian packages: $(sed -n 's/^# Packages: //p' "$0"))"
}

logged() {
    what=$1
    shift
    "$@" >>"$work/log" 2>&1 && return
    tail -n 30 "$work/log"
    say "$what failed; all of it is in $work/log"
    say '0 passed, 1 failed, 0 left out'
    exit 1
}

# build CONFIGURE-ARGUMENTS...: the libraries, as the port's own compiler makes them.
build() {
    [ -x "$top/configure" ] || missing "$top/configure: run ./bootstrap"
    rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 99
    logged configure "$top/configure" --quiet --enable-werror "$@"
    logged make make -j"$jobs" all libpamcoretest.la libpamprivate.la libpamtest.la
}

# without LIST: filters standard input, names of tests a line, by the words of the list, and counts those left out.
left_out=0
without() {
    rest=
    for test in $tests; do
        case " $(printf '%s ' "$@")" in
        *" $test "*) left_out=$((left_out + 1)) ;;
        *) rest="$rest $test" ;;
        esac
    done
    tests=$rest
}

# The tests there are, by what is in the folders.
units() {
    for source in "$top"/test/unit/*.c; do
        source=${source%.c}
        echo "test/unit/${source##*/}"
    done
}
programs() {
    for source in "$top"/test/api/*.c "$top"/test/misuse/*.c; do
        source=${source%.c}
        folder=${source%/*}
        echo "test/${folder##*/}/${source##*/}"
    done
}

# run MAKE-ARGUMENTS...: the tests of $tests, and the line that ends a stage. A test that does not build fails.
run() {
    # shellcheck disable=SC2086 # names without spaces
    make -k -j"$jobs" check-TESTS check_PROGRAMS= check_DATA= TESTS="$(echo $tests)" "$@" >"$work/run" 2>&1
    status=$?
    passed=$(awk '/^# PASS: / { n += $3 } END { print n + 0 }' "$work/run")
    failed=$(awk '/^# (FAIL|ERROR|XPASS): / { n += $3 } END { print n + 0 }' "$work/run")
    skipped=$(awk '/^# SKIP: / { n += $3 } END { print n + 0 }' "$work/run")
    if [ "$failed" -ne 0 ]; then
        cat "$work/test-suite.log"
    elif [ "$status" -ne 0 ] || [ "$passed" -eq 0 ]; then
        tail -n 30 "$work/run"
        failed=1
    fi
    say "$passed passed, $failed failed, $((left_out + skipped)) left out"
    [ "$failed" -eq 0 ]
    exit
}

# emulated CPU: a whole stage for a cross compiler and qemu's user mode.
emulated() {
    need "$1-linux-gnu-gcc"
    need "qemu-$1"
    build --host="$1-linux-gnu" CXX=false
    PMA_EMULATOR="qemu-$1 -L /usr/$1-linux-gnu"
    PMA_TEST_SLOW=20
    export PMA_EMULATOR PMA_TEST_SLOW
    if [ "$quick" = yes ]; then
        # One of each floor, and one of the whole.
        tests='test/unit/lock test/unit/os test/unit/random test/unit/pagemap test/unit/slab test/unit/remote
            test/unit/arena test/unit/thread test/unit/init test/unit/malloc test/api/zero_sizes-linked.t'
    else
        tests=$(units)
        # qemu has no seccomp (os_refused), and does not bring other threads through fork as a kernel does (background).
        without test/unit/os_refused test/unit/background
        # Of the programs those that start no other program and ask the kernel for nothing rare.
        programs_chosen='calloc_is_zero realloc_keeps zero_sizes usable_size_holds bsd_calls errno_kept'
        for test in $programs_chosen; do
            tests="$tests test/api/$test-linked.t test/api/$test-preloaded.t test/api/$test-page16.t"
        done
    fi
    run LOG_COMPILER="$PMA_EMULATOR"
}

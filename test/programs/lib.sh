# lib.sh: how a script of this folder runs one workload twice, without and with the library, and finds any difference.
#
# It is sourced, never run. A script declares itself, says what it needs, proves that the library would be at work in
# the program, and compares:
#
#     # Packages: sqlite3             Debian's packages that have what it needs
#     . "$(dirname "$0")/lib.sh"
#     begin 120                       the seconds after which the whole script is stopped
#     need sqlite3
#     version "$(sqlite3 --version)"  what the table of `make check-programs` shows
#     prove sqlite3 sqlite3 :memory: 'select 1'
#     compare work                    work: a function, or a command with its arguments
#
# PAMALLOC_LIB names the library. PAMALLOC_OPTIONS and everything else that the caller set reaches the program as it is.
# PROGRAMS_KEEP=1 keeps the directory of the run, PROGRAMS_TIMEOUT=N replaces the script's own limit.

set -u

name=$(basename "$0" .sh)
here=$(cd "$(dirname "$0")" && pwd)

say() {
    printf '%s: %s\n' "$name" "$*"
}

fail() {
    say "FAIL: $*" >&2
    exit 1
}

# A missing prerequisite is a skip on a user's machine and an error where the machine is ours.
skip() {
    say "SKIP: $*"
    if [ "${CI:-}" = true ]; then
        exit 99
    fi
    exit 77
}

begin() {
    if [ -z "${PROGRAMS_GUARDED:-}" ]; then
        PROGRAMS_GUARDED=1
        export PROGRAMS_GUARDED
        exec timeout -k 10 "${PROGRAMS_TIMEOUT:-$1}" sh "$0"
    fi
    unset PROGRAMS_GUARDED
    if [ ! -f "${PAMALLOC_LIB:-}" ]; then
        say "PAMALLOC_LIB does not name a library: '${PAMALLOC_LIB:-}'"
        exit 99
    fi
    # The resolved name is the one that both /proc/PID/maps and the dynamic linker's record of bindings show.
    lib=$(readlink -f "$PAMALLOC_LIB")
    dir=$(mktemp -d "${PROGRAMS_DIR:-$PWD}/programs-$name.XXXXXX") || exit 99
    chmod 755 "$dir"
    trap finish EXIT
    trap 'say "FAIL: stopped by a signal: the time limit?" >&2; exit 1' HUP INT TERM
    mkdir "$dir/plain" "$dir/preloaded" "$dir/data" "$dir/home" "$dir/tmp"
    : >"$dir/servers"
    cd "$dir" || exit 99
    ulimit -c 0
    # What make exports is not the user's, and programs listen to such names: LibreOffice, for one, starts itself under
    # valgrind when VALGRIND is set.
    unset LD_PRELOAD MAKEFLAGS MFLAGS MAKELEVEL VALGRIND CLANG_FORMAT NM CXX PMA_DEBUG SANITIZERS srcdir builddir
    HOME=$dir/home TMPDIR=$dir/tmp LC_ALL=C TZ=UTC
    export HOME TMPDIR LC_ALL TZ
}

# Process ids of what this script started and what still runs: the mark in the environment finds everything but the
# programs that overwrite their environment with a title; those still stand in our directory.
processes_left() {
    ls -l /proc/[0-9]*/cwd 2>/dev/null |
        awk -v dir="$dir" '{ at = index($0, " -> ") } at && index(substr($0, at + 4), dir) == 1 {
            split(substr($0, index($0, "/proc/")), part, "/"); print part[3] }'
    grep -lasF "PROGRAMS_MARK=$dir" /proc/[0-9]*/environ | cut -d/ -f3
}

finish() {
    finish_code=$?
    trap - EXIT
    trap '' HUP INT TERM
    cd /
    while read -r finish_pid; do
        kill -TERM "$finish_pid" 2>/dev/null
    done <"$dir/servers"
    finish_turns=0
    while finish_left=$(processes_left) && [ -n "$finish_left" ] && [ "$finish_turns" -lt 50 ]; do
        finish_turns=$((finish_turns + 1))
        sleep 0.1
    done
    if [ -n "$finish_left" ]; then
        for finish_pid in $finish_left; do
            say "left behind: $finish_pid $(tr '\0' ' ' <"/proc/$finish_pid/cmdline" 2>/dev/null)" >&2
            kill -KILL "$finish_pid" 2>/dev/null
        done
        if [ "$finish_code" -eq 0 ]; then
            finish_code=1
        fi
    fi
    if [ -n "${PROGRAMS_KEEP:-}" ]; then
        say "kept: $dir"
    else
        rm -rf "$dir"
    fi
    exit "$finish_code"
}

need() {
    command -v "$1" >/dev/null 2>&1 ||
        skip "$1 is not installed (Debian packages: $(sed -n 's/^# Packages: //p' "$0"))"
}

version() {
    say "version: $(printf '%s\n' "$1" | sed -n 1p)"
}

# The distribution's interpreter if there is one: what else is first in PATH may be a wrapper script.
find_python() {
    if [ -x /usr/bin/python3 ]; then
        python=/usr/bin/python3
    else
        need python3
        python=$(command -v python3)
    fi
}

# lines COUNT: so many lines of numbers and words, always the same ones (the minimal standard generator of Park and
# Miller, whose products a double holds exactly in every awk).
lines() {
    awk -v count="$1" 'BEGIN {
        x = 20240229
        for (i = 0; i < count; i++) {
            x = (x * 16807) % 2147483647
            word = sprintf("%c%c%c", 97 + x % 26, 97 + int(x / 26) % 26, 97 + int(x / 676) % 26)
            printf "%d %s %s%d\n", x, word, word, i % 977
        }
    }'
}

# run MODE COMMAND...: in the directory MODE, with the library when MODE is preloaded. The first command that fails
# ends it. The mode's name is left in $mode for what COMMAND calls.
run() {
    mode=$1
    shift
    run_began=$(date +%s)
    (
        cd "$dir/$mode" || exit 99
        PROGRAMS_MARK=$dir
        export PROGRAMS_MARK
        if [ "$mode" = preloaded ]; then
            LD_PRELOAD=$lib
            export LD_PRELOAD
        fi
        set -e
        "$@"
    ) >"$dir/$mode.out" 2>"$dir/$mode.err" </dev/null
    echo $? >"$dir/$mode.code"
    say "$mode: $* took $(($(date +%s) - run_began)) s"
}

show() {
    for show_file; do
        printf -- '--- %s\n' "$(basename "$show_file")"
        tail -n 30 "$show_file"
    done >&2
}

# compare COMMAND...: plain and preloaded must agree in standard output, standard error and exit code. A workload that
# fails by itself or prints nothing shows nothing, so it fails too. $noise is a sed script that takes out of both
# streams what differs from run to run (a duration, a process id).
noise=
compare() {
    run plain "$@"
    if [ "$(cat "$dir/plain.code")" != 0 ]; then
        show "$dir/plain.out" "$dir/plain.err"
        fail "the plain run of '$*' ended with $(cat "$dir/plain.code")"
    fi
    if [ ! -s "$dir/plain.out" ]; then
        fail "the plain run of '$*' printed nothing"
    fi
    run preloaded "$@"
    for compare_stream in out err code; do
        for compare_mode in plain preloaded; do
            sed -e "$noise" "$dir/$compare_mode.$compare_stream" >"$dir/$compare_mode.seen"
        done
        if ! cmp -s "$dir/plain.seen" "$dir/preloaded.seen"; then
            diff -a "$dir/plain.seen" "$dir/preloaded.seen" | head -n 40 >&2
            show "$dir/preloaded.err"
            fail "'$*' differs under the library: $compare_stream"
        fi
    done
}

# same_files FILE...: what both runs wrote must be equal byte for byte.
same_files() {
    for same_file; do
        if [ ! -s "$dir/plain/$same_file" ]; then
            fail "the plain run did not write $same_file"
        fi
        cmp "$dir/plain/$same_file" "$dir/preloaded/$same_file" >&2 || fail "$same_file differs under the library"
    done
}

# record_of NAME FILE: the part of a record that a program called NAME wrote. Programs that replace one another by exec
# share a process id, so a file; each starts with the libraries that it needs.
record_of() {
    awk -v name="$1" '
        function ends_in(text) {
            return text == name || substr(text, length(text) - length(name)) == "/" name
        }
        / needed by .* \[0\]$/ {
            needs = $0; sub(/.* needed by /, "", needs); sub(/ \[0\]$/, "", needs); sub(/ \[0\].*/, "", needs)
            if (ends_in(needs)) { inside = 1 }
        }
        inside { print }' "$2"
}

# bound_elsewhere: reads a record and prints the bindings of malloc and its kin to an object other than the library. An
# object that itself takes the same call from the library is no heap: a program at a fixed address gives the address of
# its jump slot as the function's. What the library takes from the C library is its own affair.
bound_elsewhere() {
    awk -v lib="$lib" '
        function call_of(line) { sub(/.*normal symbol `/, "", line); sub(/\047.*/, "", line); return line }
        / normal symbol `(malloc|free|calloc|realloc|posix_memalign|aligned_alloc)\047/ {
            at = index($0, "binding file "); rest = substr($0, at + 13)
            from = substr(rest, 1, index(rest, " [0] to ") - 1)
            rest = substr(rest, index(rest, " [0] to ") + 8); to = substr(rest, 1, index(rest, " [0]: ") - 1)
            call = call_of($0)
            if (to == lib) {
                passes[from, call] = 1
            } else if (from != lib) {
                seen++; line[seen] = $0; target[seen] = to; called[seen] = call
            }
        }
        END {
            for (i = 1; i <= seen; i++) {
                if (!((target[i], called[i]) in passes)) {
                    print line[i]
                }
            }
        }'
}

# prove NAME COMMAND...: start COMMAND once with the dynamic linker's record of bindings. A process whose program is
# called NAME must have taken malloc and free from the library, and nothing in it may have taken them elsewhere: two
# heaps in one process are a crash that waits. $foreign is a pattern of bindings that may (a program's own allocator).
foreign='^$'
prove() {
    prove_name=$1
    shift
    (
        cd "$dir/preloaded" || exit 99
        PROGRAMS_MARK=$dir LD_DEBUG=bindings,files LD_DEBUG_OUTPUT=$dir/bindings LD_BIND_NOW=1 LD_PRELOAD=$lib
        export PROGRAMS_MARK LD_DEBUG LD_DEBUG_OUTPUT LD_BIND_NOW LD_PRELOAD
        "$@"
    ) >"$dir/prove.out" 2>&1 </dev/null || {
        show "$dir/prove.out"
        fail "the start of '$*' failed under the library"
    }
    prove_found=0
    for prove_file in "$dir"/bindings.*; do
        record_of "$prove_name" "$prove_file" >"$dir/prove.record"
        if [ ! -s "$dir/prove.record" ]; then
            continue
        fi
        prove_found=$((prove_found + 1))
        # With LD_BIND_NOW all that the program links with is bound before it runs.
        sed '/transferring control: /q' "$dir/prove.record" >"$dir/prove.start"
        for prove_call in malloc free; do
            grep -qF "to $lib [0]: normal symbol \`$prove_call'" "$dir/prove.start" ||
                fail "$prove_name did not take $prove_call from $lib"
        done
        bound_elsewhere <"$dir/prove.record" | grep -vE "$foreign" >"$dir/prove.elsewhere"
        if [ -s "$dir/prove.elsewhere" ]; then
            show "$dir/prove.elsewhere"
            fail "$prove_name has a second heap"
        fi
    done
    if [ "$prove_found" -eq 0 ]; then
        fail "'$*' started no process of the name $prove_name"
    fi
    rm -f "$dir"/bindings.*
}

# mapped PID...: inside a run, the library must be in the process when the mode is preloaded, and must not be otherwise.
mapped() {
    for mapped_pid; do
        if grep -qF "$lib" "/proc/$mapped_pid/maps"; then
            [ "$mode" = preloaded ] || fail "the library is in the plain process $mapped_pid"
        else
            [ "$mode" = plain ] || fail "the library is not in the process $mapped_pid"
        fi
    done
}

# mapped_children PID: the same for its children. Some are gone before they can be looked at; one must stay.
mapped_children() {
    mapped_seen=0
    mapped_turns=0
    while [ "$mapped_seen" -eq 0 ]; do
        for mapped_child in $(children "$1"); do
            mapped_maps=$(cat "/proc/$mapped_child/maps" 2>/dev/null || true)
            case $mapped_maps in
            '') continue ;;
            *"$lib"*) [ "$mode" = preloaded ] || fail "the library is in the plain process $mapped_child" ;;
            *) [ "$mode" = plain ] || fail "the library is not in the process $mapped_child" ;;
            esac
            mapped_seen=$((mapped_seen + 1))
        done
        mapped_turns=$((mapped_turns + 1))
        [ "$mapped_turns" -lt 1000 ] || fail "the process $1 has no children"
    done
}

# children PID: the process ids of its living children.
children() {
    cat "/proc/$1/task/"*/children 2>/dev/null || true
}

# free_port: a port of 127.0.0.1 that nobody listens on at this moment.
free_port() {
    perl -MIO::Socket::INET -e '
        my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1", LocalPort => 0) or exit 1;
        print $s->sockport, "\n";'
}

# await SECONDS COMMAND...: until COMMAND succeeds.
await() {
    await_turns=$(($1 * 10))
    shift
    while ! "$@" >/dev/null 2>&1; do
        await_turns=$((await_turns - 1))
        if [ "$await_turns" -le 0 ]; then
            return 1
        fi
        sleep 0.1
    done
}

# serve LOG COMMAND...: start a server in the background; its process id is left in $server.
serve() {
    serve_log=$1
    shift
    "$@" >"$serve_log" 2>&1 &
    server=$!
    echo "$server" >>"$dir/servers"
}

gone() {
    ! kill -0 "$1" 2>/dev/null
}

# stop PID SIGNAL: the server must end by itself, with code 0, within 20 seconds.
stop() {
    kill "-$2" "$1" || fail "the server $1 was gone before it was stopped"
    stop_turns=0
    while [ "$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null)" != Z ] && ! gone "$1"; do
        stop_turns=$((stop_turns + 1))
        if [ "$stop_turns" -ge 200 ]; then
            kill -KILL "$1"
            fail "the server $1 did not end on $2"
        fi
        sleep 0.1
    done
    wait "$1" || fail "the server $1 ended with $?"
}

# quiet LOG: neither the library nor the dynamic linker said anything in a server's log.
quiet() {
    if grep -aE 'pamalloc: |ld\.so: ' "$1" >&2; then
        fail "$(basename "$1") has a message of the library or the dynamic linker"
    fi
}

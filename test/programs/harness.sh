#!/bin/sh
# The scripts of this folder can fail: lib.sh finds each kind of difference, a preload that did nothing, a second heap,
# a process left behind, a server that crashed, a hang.
# Packages: gcc libc6-dev

. "$(dirname "$0")/lib.sh"
begin 120
version "lib.sh"

# expect CODE PATTERN TITLE <<SCRIPT: a script of that text must end with CODE and print PATTERN.
expect() {
    {
        echo ". \"$dir/data/lib.sh\""
        cat
    } >"$dir/data/inner.sh"
    expect_code=0
    (cd "$dir/tmp" && sh "$dir/data/inner.sh") >"$dir/inner.out" 2>&1 </dev/null || expect_code=$?
    if [ "$expect_code" -ne "$1" ] || ! grep -qE "$2" "$dir/inner.out"; then
        cat "$dir/inner.out"
        fail "$3: ended with $expect_code, wanted $1 and '$2'"
    fi
    if [ -n "$(ls "$dir/tmp")" ]; then
        fail "$3: files were left: $(ls "$dir/tmp")"
    fi
    say "$3: ended with $1, as it must"
}

cp "$here/lib.sh" "$dir/data/lib.sh"
CI=
export CI

expect 0 'preloaded: sort' 'equal runs' <<'INNER'
begin 20
prove sort sort --version
compare sort --version
INNER

expect 1 'differs under the library: out' 'another output' <<'INNER'
begin 20
work() { if [ -n "${LD_PRELOAD:-}" ]; then echo two; else echo one; fi; }
compare work
INNER

expect 1 'differs under the library: err' 'one more line on standard error' <<'INNER'
begin 20
work() { echo out; if [ -n "${LD_PRELOAD:-}" ]; then echo more >&2; fi; }
compare work
INNER

expect 1 'differs under the library: (err|code)' 'another exit code' <<'INNER'
begin 20
work() { echo out; if [ -n "${LD_PRELOAD:-}" ]; then return 3; fi; }
compare work
INNER

expect 1 'differs under the library' 'a crash in the middle' <<'INNER'
begin 20
work() { echo out; if [ -n "${LD_PRELOAD:-}" ]; then sh -c 'kill -SEGV $$'; fi; echo end; }
compare work
INNER

expect 1 'the plain run of .* ended with 3' 'a workload that fails by itself' <<'INNER'
begin 20
work() { echo out; return 3; }
compare work
INNER

expect 1 'printed nothing' 'a workload that shows nothing' <<'INNER'
begin 20
compare true
INNER

expect 1 'piece differs' 'another file' <<'INNER'
begin 20
work() { echo out; echo "${LD_PRELOAD:-}x" >piece; }
compare work
same_files piece
INNER

expect 1 'did not take malloc from' 'a preload that did nothing' <<'INNER'
begin 20
prove sort env LD_PRELOAD= sort --version
INNER

expect 1 'started no process of the name sort' 'a proof by the wrong program' <<'INNER'
begin 20
prove sort wc --version
INNER

expect 1 'cannot be preloaded|did not take malloc' 'a library that cannot be loaded' <<'INNER'
begin 20
echo nonsense >"$dir/data/no.so"
lib=$dir/data/no.so
prove sort sort --version
INNER

expect 1 'the library is not in the process' 'a server without the library' <<'INNER'
begin 20
work() { serve log env LD_PRELOAD= sleep 60; sleep 0.5; mapped "$server"; echo out; }
work_both() { if [ "$mode" = preloaded ]; then work; else echo out; fi; }
compare work_both
INNER

expect 1 'left behind: [0-9]+ sleep' 'a process left behind' <<'INNER'
begin 20
work() { setsid sleep 60 >/dev/null 2>&1 & echo out; }
compare work
INNER

expect 1 'the server [0-9]+ ended with 9' 'a server that ends badly' <<'INNER'
begin 20
work() { serve log sh -c 'trap "exit 9" TERM; while :; do sleep 0.1; done'; sleep 0.5; stop "$server" TERM; echo out; }
compare work
INNER

expect 1 'was gone before it was stopped' 'a server that crashed' <<'INNER'
begin 20
work() { serve log true; wait "$server"; stop "$server" TERM; echo out; }
compare work
INNER

expect 77 'SKIP: no-such-program is not installed' 'a missing program' <<'INNER'
begin 20
need no-such-program
INNER

CI=true
expect 99 'SKIP: no-such-program is not installed' 'a missing program where none may be missing' <<'INNER'
begin 20
need no-such-program
INNER
CI=

# The limit ends the script and what it started; timeout itself then answers 124.
expect 124 'stopped by a signal' 'a hang' <<'INNER'
begin 4
compare sleep 60
INNER

PAMALLOC_LIB=/nonexistent/library.so
expect 99 'does not name a library' 'no library at all' <<'INNER'
begin 20
INNER
PAMALLOC_LIB=$lib

compiler=$(command -v "${CC:-cc}" || command -v gcc) || skip "no C compiler for the program with a second heap"
cat >"$dir/data/own.c" <<'C'
#include <stdlib.h>
static char heap[1 << 16];
void *calloc(size_t count, size_t size)
{
    static size_t used;
    used += (count * size + 15) & ~(size_t) 15;
    return used > sizeof heap ? NULL : heap + used - ((count * size + 15) & ~(size_t) 15);
}
int main(void)
{
    void *volatile block = malloc(10);
    free(block);
    return 0;
}
C
"$compiler" -fno-builtin -rdynamic -o "$dir/data/own" "$dir/data/own.c" || fail 'the program does not compile'
OWN=$dir/data/own
export OWN
expect 1 'has a second heap' 'a second heap' <<'INNER'
begin 20
prove own "$OWN"
INNER

#!/bin/sh
# What does a program get that a sanitizer's compiler made, when the library is preloaded before it: either the
# sanitizer as ever, or one clear line, and never a crash; and is the sanitizer's malloc the heap when it comes first?
# Packages: gcc g++ libc6-dev clang libclang-rt-14-dev
set -u
. "${srcdir:-.}/test/ways/lib.sh"
cat >"$work/program.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
static int shared;
static void *race(void *unused) { shared++; return unused; }
int main(int count, char **arguments) {
    char *volatile block = malloc(40);
    memset(block, 1, 39);
    for (int i = 0; i < 1000; i++) { free(malloc(i)); }
    const char *mistake = count > 1 ? arguments[1] : "none";
    if (strcmp(mistake, "overrun") == 0) { block[40] = 1; }
    if (strcmp(mistake, "leak") == 0) { block = malloc(7); block = NULL; }
    if (strcmp(mistake, "unset") == 0 && block[39] != 0) { puts("unset"); }
    if (strcmp(mistake, "race") == 0) {
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) { pthread_create(&threads[i], NULL, race, NULL); }
        for (int i = 0; i < 2; i++) { pthread_join(threads[i], NULL); }
    }
    if (strcmp(mistake, "shift") == 0) { count <<= 31 + count; }
    free(block);
    puts("done");
    return 0;
}
END
# Some containers do not let a process look at itself, which leaks are found by.
export ASAN_OPTIONS=detect_leaks=0

# The thread sanitizer of gcc 12 knows fewer places of programs and libraries than a kernel draws from.
fixed=
setarch "$(uname -m)" -R true 2>/dev/null && fixed="setarch $(uname -m) -R"

# run LIBRARIES PROGRAM MISTAKE: the exit code is left in $status, both streams in $work/output.
run() {
    # shellcheck disable=SC2086
    timeout 60 $fixed env LD_PRELOAD="$1" "$work/$2" "$3" >"$work/output" 2>&1
    status=$?
    if [ "$status" -ge 126 ]; then
        cat "$work/output"
        fail "$2 with '$1' and $3: exit code $status"
    fi
}
says() {
    grep -q "$2" "$work/output" || {
        cat "$work/output"
        fail "$1: no '$2'"
    }
}
lines() {
    [ "$(wc -l <"$work/output")" -le "$2" ] || {
        cat "$work/output"
        fail "$1: more than $2 lines"
    }
}
sanitized() {
    # shellcheck disable=SC2086
    build "$1" "$2" -g -fno-builtin -fsanitize="$3" "$work/program.c" -pthread
}

# clang puts the runtime into the program, where its malloc comes first: nothing is lost, nothing is said.
if command -v clang >/dev/null; then
    while read -r kind mistake finding; do
        sanitized "clang-$kind" clang "$kind" || continue
        run "$library" "clang-$kind" none
        [ "$status" -eq 0 ] && says "clang, $kind" '^done$' && lines "clang, $kind" 1
        run "$library" "clang-$kind" "$mistake"
        says "clang, $kind, preloaded" "$finding"
    done <<'END'
address overrun heap-buffer-overflow
thread race data race
memory unset use-of-uninitialized-value
undefined shift runtime error
END
else
    echo 'not tested: clang is not there'
fi

# gcc's are libraries. The undefined-behaviour sanitizer needs no malloc.
sanitized gcc-undefined gcc undefined && run "$library" gcc-undefined shift && says 'gcc, undefined' 'runtime error'
if sanitized gcc-address gcc address; then
    run "$library" gcc-address none
    [ "$status" -ne 0 ] || fail 'gcc, address: the sanitizer does not end what it cannot check'
    says 'gcc, address' 'ASan runtime does not come first'
    lines 'gcc, address' 1
    run "$(gcc -print-file-name=libasan.so) $library" gcc-address overrun
    says 'gcc, address, its library first' heap-buffer-overflow
fi
if sanitized gcc-thread gcc thread; then
    run "$library" gcc-thread none
    [ "$status" -eq 1 ] || fail "gcc, thread: exit code $status, not 1"
    says 'gcc, thread' "^pamalloc: comes before the thread sanitizer's library"
    lines 'gcc, thread' 1
    run "$(gcc -print-file-name=libtsan.so) $library" gcc-thread race
    says 'gcc, thread, its library first' 'data race'
fi
if sanitized gcc-leak gcc leak; then
    run "$library" gcc-leak leak
    [ "$status" -eq 0 ] || fail "gcc, leak: exit code $status"
    says 'gcc, leak' "^pamalloc: comes before the leak sanitizer's library"
    lines 'gcc, leak' 2
fi
finish

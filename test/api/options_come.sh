#!/bin/sh
# Do options come from the machine's file, the program's string and the environment, the later one
# winning, in every way in which a program meets the library, and are they closed to writing then?
#
# Packages: strace util-linux
set -u
. "${srcdir:-.}/test/api/lib.sh"
placed=$build/test/api/placed
test_library=${PAMALLOC_TEST_LIB:-$build/.libs/libpamtest.so}
archive=${PAMALLOC_ARCHIVE:-$build/.libs/libpamalloc.a}
compiler=${CC:-cc}
conf=$(sed -n 's/^sysconfdir = //p' "$build/Makefile")/pamalloc.conf
command -v strace >/dev/null || missing strace
command -v unshare >/dev/null || missing unshare
[ ! -e "$conf" ] || missing "a machine without $conf"
ulimit -c 0
unset PAMALLOC_OPTIONS PMA_TEST_CONF

# says WHAT TEXT COMMAND...: the command ends with 0, and standard error is exactly the text.
says() {
    what=$1
    text=$2
    shift 2
    "$@" >"$work/output" 2>"$work/error"
    status=$?
    [ "$status" -eq 0 ] || fail "$what: exit code $status"
    [ "$(cat "$work/error")" = "$text" ] || fail "$what: $(cat "$work/error")"
}

version=$(sed -n 's/^VERSION = //p' "$build/Makefile")
tells="pamalloc: version $version"

# ---- the file

printf '# of a test\nverbose\nseed = 7, sized=strict # both\n' >"$work/conf"
says 'a file' "$tells verbose=1 seed=7 sized=strict" \
    env LD_PRELOAD="$test_library" PMA_TEST_CONF="$work/conf" "$placed"
says 'a file and the environment' "$tells verbose=1 seed=8 sized=strict" \
    env LD_PRELOAD="$test_library" PMA_TEST_CONF="$work/conf" PAMALLOC_OPTIONS=seed=8 "$placed"
says 'a directory in its place' "pamalloc: $work: not read: a directory" \
    env LD_PRELOAD="$test_library" PMA_TEST_CONF="$work" "$placed"
says 'no file' '' env LD_PRELOAD="$test_library" PMA_TEST_CONF="$work/none" "$placed"

# calls OPTIONS: how often the kernel is called by a program that allocates nothing, with these options.
calls() {
    strace -o "$work/trace" -E LD_PRELOAD="$library" -E PAMALLOC_OPTIONS="$1" true >"$work/output" 2>&1
    grep -c . "$work/trace"
}
plain=$(calls '')
asked=$(grep -cF "\"$conf\"" "$work/trace")
if [ "$asked" -eq 0 ]; then
    if grep -q . "$work/trace"; then
        fail "$conf is not looked for"
    else
        echo "not tested: strace does not work here"
    fi
else
    [ "$asked" -eq 1 ] || fail "$conf is looked for $asked times"
    # The page is opened and closed if there is something to write, and else left alone: three calls.
    [ "$(calls seed=0)" -eq "$plain" ] || fail "an option's default costs calls: $(calls seed=0), $plain"
    [ "$(calls stats=0,sized=strict)" -eq $((plain + 3)) ] ||
        fail "an option costs calls: $(calls sized=strict) instead of $plain and three"
fi

# The machine's own file: in a name space of mounts of its own, where that is allowed.
mkdir "$work/etc"
echo 'verbose,seed=5,realloc_zero=keep' >"$work/etc/pamalloc.conf"
with_file() {
    unshare -m sh -c 'mount --bind "$1" "$2" && shift 2 && exec "$@"' sh "$work/etc" "${conf%/*}" "$@"
}
if with_file true 2>"$work/error"; then
    says "$conf" "$tells verbose=1 seed=5 realloc_zero=keep" with_file env LD_PRELOAD="$library" "$placed"
    says "$conf and the environment" "$tells verbose=1 seed=6 realloc_zero=keep" \
        with_file env LD_PRELOAD="$library" PAMALLOC_OPTIONS=seed=6 "$placed"
else
    echo "not tested with $conf: $(cat "$work/error")"
fi

# ---- the program's string

cat >"$work/chooses.c" <<'END'
#include <pamalloc.h>
#include <stdlib.h>
#include <string.h>
const char *pamalloc_options = "verbose,seed=3";
static void *volatile block;
int main(void) {
    block = strdup("text");
    free(block);
    return block == NULL;
}
END

# way NAME ARGUMENTS...: linked like this, the program's choice acts, and the environment's before it.
way() {
    name=$1
    shift
    # shellcheck disable=SC2086 # the compiler may come with options
    $compiler -O2 -I"${srcdir:-.}/include" -o "$work/chooses" "$work/chooses.c" "$@" 2>"$work/error" || {
        cat "$work/error"
        fail "$name does not link"
        return
    }
    says "$name" "$tells verbose=1 seed=3" $preload "$work/chooses"
    says "$name, and the environment" "$tells verbose=1 seed=4" \
        env PAMALLOC_OPTIONS=seed=4 $preload "$work/chooses"
}

preload=env
way 'linked' -L"$build/.libs" -lpamalloc -Wl,-rpath,"$build/.libs"
way 'linked, names hidden' -fvisibility=hidden -L"$build/.libs" -lpamalloc -Wl,-rpath,"$build/.libs"
way 'linked, not position independent' -no-pie -fno-pie -L"$build/.libs" -lpamalloc \
    -Wl,-rpath,"$build/.libs"
way 'linked, no closed relocations' -Wl,-z,norelro -L"$build/.libs" -lpamalloc \
    -Wl,-rpath,"$build/.libs"
if [ -f "$archive" ]; then
    way 'the archive' "$archive" -pthread
    way 'the archive, no closed relocations' -Wl,-z,norelro -no-pie -fno-pie "$archive" -pthread
    way 'static' -static "$archive" -pthread
    way 'static, position independent' -static-pie -fPIE "$archive" -pthread
    way 'static, no closed relocations' -static -Wl,-z,norelro "$archive" -pthread
fi
preload="env LD_PRELOAD=$library"
way 'preloaded, names exported' -rdynamic
way 'preloaded, one name exported' -Wl,--export-dynamic-symbol=pamalloc_options
# Where the name is not exported nobody can know of it.
$compiler -O2 -I"${srcdir:-.}/include" -o "$work/chooses" "$work/chooses.c" || exit 99
says 'preloaded, no name exported' '' $preload "$work/chooses"

# ---- a program with more rights than its caller: its string acts, its caller's environment does not

if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    chmod 755 "$work"
    $compiler -O2 -I"${srcdir:-.}/include" -o "$work/chooses" "$work/chooses.c" -L"$build/.libs" \
        -lpamalloc -Wl,-rpath,"$build/.libs" || exit 99
    chgrp 1 "$work/chooses" && chmod 2755 "$work/chooses" || exit 99
    as_nobody() {
        env "$1" setpriv --reuid 65534 --regid 65534 --clear-groups "$work/chooses"
    }
    if as_nobody NONE= >/dev/null 2>&1; then
        says 'a privileged program' "$tells verbose=1 seed=3" as_nobody PAMALLOC_OPTIONS=seed=4,bad
        # The machine's file is trusted.
        if with_file true 2>/dev/null; then
            says "a privileged program, and $conf" "$tells verbose=1 seed=3 realloc_zero=keep" \
                with_file env PAMALLOC_OPTIONS=seed=4,bad setpriv --reuid 65534 --regid 65534 --clear-groups "$work/chooses"
        fi
    else
        echo 'not tested with privileges: nobody cannot run programs here'
    fi
else
    echo 'not tested with privileges: needs root and setpriv'
fi

# ---- a sandbox, or a process without descriptors, in which nothing can be opened

cat >"$work/shut.c" <<'END'
#include "api/sandbox.h"
int main(int count, char **arguments) {
    static const int calls[] = { SYS_openat, SYS_open };
    int error = atoi(arguments[1]);
    struct rlimit none = { 3, 3 };
    REQUIRE(count > 2);
    if (error == EMFILE) {
        REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
    } else {
        refuse_calls(calls, 2, error);
    }
    execv(arguments[2], arguments + 2);
    return 99;
}
END
if [ -f "$archive" ] && [ "$(uname -m)" = x86_64 ]; then
    $compiler -D_GNU_SOURCE -iquote "${srcdir:-.}/test" -o "$work/shut" "$work/shut.c" || exit 99
    $compiler -O2 -static -I"${srcdir:-.}/include" -o "$work/chooses" "$work/chooses.c" "$archive" \
        -pthread || exit 99
    for error in 1 38 24 23 12; do # EPERM ENOSYS EMFILE ENFILE ENOMEM
        says "opening fails with $error" "$tells verbose=1 seed=4" \
            env PAMALLOC_OPTIONS=seed=4 "$work/shut" "$error" "$work/chooses"
    done
fi

# ---- help, statistics

says 'no option' '' env LD_PRELOAD="$library" "$placed"
env LD_PRELOAD="$library" PAMALLOC_OPTIONS=help "$placed" >"$work/output" 2>"$work/error"
rows=$(grep -c '^OPTION(' "${srcdir:-.}/src/options.def")
[ "$(wc -l <"$work/error")" -eq $((rows + 1)) ] || fail "help is not a head and $rows rows"
[ "$(wc -l <"$work/output")" -eq 1 ] || fail 'help ends the program'

cat >"$work/ends.c" <<'END'
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *volatile block;
static void say_last(void) { fputs("last\n", stderr); }
int main(int count, char **arguments) {
    atexit(say_last);
    block = malloc(5000);
    if (count > 1) { _exit(arguments[0] == NULL); }
    return 0;
}
END
$compiler -O2 -o "$work/ends" "$work/ends.c" || exit 99
env LD_PRELOAD="$library" PAMALLOC_OPTIONS=stats "$work/ends" 2>"$work/error" || fail 'statistics end with an error'
[ "$(sed -n '1p;2s/ .*//p' "$work/error" | tr '\n' ' ')" = 'last pamalloc ' ] ||
    fail "no statistics behind the program's last word: $(cat "$work/error")"
grep -q '^slots in use  *[1-9]' "$work/error" || fail "statistics tell of no slot: $(cat "$work/error")"
says 'statistics of a program that ends at once' '' env LD_PRELOAD="$library" PAMALLOC_OPTIONS=stats "$work/ends" now
says 'statistics that nobody asked for' last env LD_PRELOAD="$library" "$work/ends"

# ---- the options are closed to writing, whether there are any or none

cat >"$work/writes.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char **arguments) {
    Dl_info info;
    if (count != 3 || dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info) == 0) { return 2; }
    char *start = (char *)info.dli_fbase;
    volatile uint64_t *options = (volatile uint64_t *)(start + strtoul(arguments[1], NULL, 16));
    size_t words = strtoul(arguments[2], NULL, 16) / 8;
    uint64_t sum = 0;
    for (size_t i = 0; i < words; i++) { sum += options[i]; }
    printf("%llu\n", (unsigned long long)sum);
    fflush(stdout);
    options[0] = 1;
    puts("written");
    return 0;
}
END
$compiler -O2 -o "$work/writes" "$work/writes.c" || exit 99
place=$(${NM:-nm} -S "$library" | sed -n 's/^\([0-9a-f]*\) \([0-9a-f]*\) . pma_options$/\1 \2/p')
if [ -n "$place" ]; then
    for options in '' seed=41; do
        # A shell of its own reports the signal. Two words: an address and a size.
        # shellcheck disable=SC2086
        sh -c '"$@"; exit $?' sh env LD_PRELOAD="$library" PAMALLOC_OPTIONS="$options" "$work/writes" $place \
            >"$work/output" 2>"$work/error"
        status=$?
        [ "$status" -eq 139 ] || fail "options '$options' can be written: exit code $status, $(cat "$work/output")"
        [ "$(cat "$work/output")" = "${options#seed=}" ] || [ -z "$options" ] ||
            fail "not what was chosen: $(cat "$work/output")"
    done
else
    fail 'pma_options is not in the library'
fi
finish

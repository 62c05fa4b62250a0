#!/bin/sh
# Does tools/pamalloc-preload put the library under every program, set-user-id ones too, only after a trial, keep the
# lines of others, refuse what does not work or others can change, undo what fails late, and take the library out again?
# All of it happens on a copy of /etc in a mount namespace.
# Packages: gcc libc6-dev util-linux sudo
set -u
. "${srcdir:-.}/test/ways/lib.sh"
if [ "$has_namespace" != yes ]; then
    echo 'not tested: no mount namespace, or not root'
    exit 77
fi
tool=${srcdir:-.}/tools/pamalloc-preload
build twice $cc "$work/twice.c" || finish
# The system's library lies where only root can write: the build folder may be anybody's.
home=$(mktemp -d /var/lib/pamalloc-test.XXXXXX) || exit 99
trap 'rm -rf "$work" "$home"' EXIT
chmod 755 "$home"
cp "$library" "$home/libpamalloc.so" || exit 99

broken() {
    cat >"$work/$1.c"
    build "$1.so" "$cc" -shared -fPIC "$work/$1.c" && cp "$work/$1.so" "$home/$1.so"
}
# Ends every program; speaks in every program; works but for one; is none at all.
broken ends <<'END'
#include <unistd.h>
__attribute__((constructor)) static void start(void) { _exit(0); }
END
broken speaks <<'END'
#include <unistd.h>
__attribute__((constructor)) static void start(void) { if (write(2, "hello\n", 6) < 0) { _exit(1); } }
END
broken picky <<'END'
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void start(void) {
    if (strcmp(program_invocation_short_name, "sort") == 0) { __builtin_trap(); }
}
END
# Behaves during the trial, which it knows by the namespace's file, and not after.
broken late <<'END'
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void start(void) {
    if (access("/etc/ld.so.preload.lock", F_OK) == 0 && access("/etc/late", F_OK) == 0) { _exit(9); }
}
END
echo text >"$home/text.so"
cp "$library" "$home/open.so" && chmod 666 "$home/open.so"
export work home tool

cat >"$work/inside" <<'END'
#!/bin/sh
# Everything here happens in the namespace.
cp -a /etc "$work/etc" && mount --bind "$work/etc" /etc || exit 99
file=/etc/ld.so.preload
wrong=0
tell() {
    printf 'failed: %s\n' "$*"
    wrong=$((wrong + 1))
}
refused() {
    "$tool" add "$2" >"$work/output" 2>&1 && tell "$1: not refused"
    [ "$(cat "$file" 2>/dev/null)" = "$lines" ] || tell "$1: the file has changed: $(cat "$file")"
    [ -z "$lines" ] && [ -e "$file" ] && tell "$1: the file has come to be"
    [ ! -e "$file.new" ] && [ ! -e "$file.lock" ] || tell "$1: something is left behind"
    /bin/true || tell "$1: /bin/true ends with $?"
}
all_refused() {
    refused 'a library that ends programs' "$home/ends.so"
    refused 'a library that speaks' "$home/speaks.so"
    refused 'a library that one program does not bear' "$home/picky.so"
    refused 'a text' "$home/text.so"
    refused 'no file' "$home/none.so"
    refused 'a name without a folder' libpamalloc.so
    refused 'a file that others can write' "$home/open.so"
    refused 'a name with a space' "$home/lib pamalloc.so"
}
rm -f "$file"
lines=
all_refused
"$tool" check "$home/libpamalloc.so" >"$work/output" 2>&1 || tell "check: $(cat "$work/output")"
[ ! -e "$file" ] || tell 'check has written the file'
"$tool" remove "$home/libpamalloc.so" >"$work/output" 2>&1 && tell 'what is not there was removed'

# Beside the line of another.
lines=/lib/x86_64-linux-gnu/libm.so.6
[ -e "$lines" ] || lines=$(ldd /bin/sh | sed -n 's/.*=> \(.*libc[^ ]*\) .*/\1/p')
echo "$lines" >"$file"
refused 'a library that ends programs' "$home/ends.so"
refused 'a text' "$home/text.so"
"$tool" add "$home/libpamalloc.so" >"$work/output" 2>&1 || tell "add: $(cat "$work/output")"
[ "$(cat "$file")" = "$lines
$home/libpamalloc.so" ] || tell "add: the file is $(cat "$file")"
[ "$(stat -c '%a %u' "$file")" = '644 0' ] || tell "add: the file is $(stat -c '%a %u' "$file")"
[ ! -e "$file.new" ] && [ ! -e "$file.lock" ] || tell 'add: something is left behind'
(ulimit -c 0; "$work/twice" twice) 2>"$work/error"
grep -q '^pamalloc: free(): double free' "$work/error" || tell "a program is not served: $(cat "$work/error")"
grep -q libpamalloc /proc/self/maps || tell 'grep is not served'
"$tool" add "$home/libpamalloc.so" >"$work/output" 2>&1 || tell "add again: $(cat "$work/output")"
[ "$(grep -c libpamalloc "$file")" = 1 ] || tell 'add again: another line'
"$tool" remove "$home/libpamalloc.so" >"$work/output" 2>&1 || tell "remove: $(cat "$work/output")"
[ "$(cat "$file")" = "$lines" ] || tell "remove: the file is $(cat "$file")"
! grep -q libpamalloc /proc/self/maps || tell 'remove: grep is served'

# The only line: the file goes with it.
rm -f "$file"
"$tool" add "$home/libpamalloc.so" >"$work/output" 2>&1 || tell "add alone: $(cat "$work/output")"
"$tool" remove "$home/libpamalloc.so" >"$work/output" 2>&1 || tell "remove alone: $(cat "$work/output")"
[ ! -e "$file" ] || tell 'remove alone: the file is still there'

# Fails only when the file is written: then nothing but the shell works, and it undoes it.
lines=
: >/etc/late
sed 's|^    trial$|    rm -f /etc/late; trial; : >/etc/late|' "$tool" >"$work/tool" && chmod +x "$work/tool"
tool=$work/tool
refused 'a library that ends programs when it is written' "$home/late.so"
exit "$wrong"
END
env -u LD_PRELOAD timeout 300 unshare -m sh "$work/inside" || fail "see above"
finish

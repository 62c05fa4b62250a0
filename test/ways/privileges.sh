#!/bin/sh
# Does a program that runs with more rights than its caller ignore the options of the environment, linked or preloaded
# by the system, and is a preload by its caller refused by the loader?
# Packages: gcc libc6-dev util-linux
set -u
. "${srcdir:-.}/test/ways/lib.sh"
if [ "$(id -u)" != 0 ]; then
    echo 'not tested: only root can make a program that changes its user'
    exit 77
fi
there="-L$work/lib -Wl,-rpath,$work/lib"
# The other user must reach the program and the library.
chmod 755 "$work" "$work/lib" || exit 99
# shellcheck disable=SC2086
build program $cc "$work/twice.c" $there -lpamalloc || finish
cp "$work/program" "$work/other" && chown 65534:65534 "$work/other" && chmod 6755 "$work/other" || exit 99

# tells WHAT COMMAND...: the command's standard error begins with the table of options. tells_not: is empty.
tells() {
    tells_of=$1
    shift
    env PAMALLOC_OPTIONS=help "$@" >"$work/output" 2>"$work/error" || fail "$tells_of: exit code $?"
    grep -q '^pamalloc: \|^ *seed' "$work/error" || fail "$tells_of: help is not printed"
}
tells_not() {
    tells_of=$1
    shift
    env PAMALLOC_OPTIONS=help,nonsense=1 "$@" >"$work/output" 2>"$work/error" || fail "$tells_of: exit code $?"
    [ ! -s "$work/error" ] || fail "$tells_of: $(cat "$work/error")"
}
tells 'without more rights' "$work/program"
# On a file system that knows no such programs it would prove nothing.
cat >"$work/secure.c" <<'END'
#include <sys/auxv.h>
int main(void) { return getauxval(AT_SECURE) != 0 ? 0 : 1; }
END
build secure $cc "$work/secure.c" && chown 65534:65534 "$work/secure" && chmod 6755 "$work/secure"
if ! "$work/secure"; then
    echo 'not tested: set-user-id programs do not change their user here'
    [ "$failed" -eq 0 ] || exit 1
    exit 77
fi
tells_not 'linked, with more rights' "$work/other"
aborts 'linked, with more rights' 'pamalloc: free(): double free' "$work/other" twice

# The caller's preload has no effect there; the system's has, and takes no options either.
build plain $cc "$work/twice.c" && chown 65534:65534 "$work/plain" && chmod 6755 "$work/plain"
unserved "preloaded by the caller" env LD_PRELOAD="$library" "$work/plain"
if [ "$has_namespace" = yes ]; then
    cat >"$work/system" <<'END'
#!/bin/sh
folder=$1
shift
mkdir "$folder/etc.$$" && cp -a /etc/. "$folder/etc.$$" && mount --bind "$folder/etc.$$" /etc || exit 4
echo "$folder/lib/libpamalloc.so" >/etc/ld.so.preload
exec "$@"
END
    tells_not 'preloaded by the system, with more rights' unshare -m sh "$work/system" "$work" "$work/plain"
    aborts 'preloaded by the system, with more rights' 'pamalloc: free(): double free' \
        unshare -m sh "$work/system" "$work" "$work/plain" twice
else
    echo 'not tested: preloaded by the system (no mount namespace)'
fi
finish

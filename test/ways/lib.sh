# lib.sh - what the scripts of this folder share. It is sourced, never run.
#
# A way to use the library is proved by a program that frees a block twice: on this heap it ends with our line.

. "${srcdir:-.}/test/api/lib.sh"
cc=${CC:-cc}
folder=$(dirname "$library")

# The name by which the loader knows the library, and a folder that holds nothing else.
soname=$(readelf -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
[ -n "$soname" ] || missing 'readelf, for the name of the library'
mkdir "$work/lib" && cp "$library" "$work/lib/$soname" && ln -s "$soname" "$work/lib/libpamalloc.so" || exit 99

cat >"$work/twice.c" <<'END'
#include <stdlib.h>
#include <string.h>
static void *volatile block;
int main(int count, char **arguments) {
    block = malloc(100);
    if (block == NULL || arguments[0] == NULL) { return 1; }
    if (count > 1) { free(block); free(block); }
    return 0;
}
END

# Names no call of the family itself: the C library calls it.
cat >"$work/unnamed.c" <<'END'
#include <string.h>
#include <stdio.h>
static char *volatile text;
int main(void) {
    text = strdup("text");
    return text == NULL || puts(text) < 0;
}
END

# build NAME COMMAND...: compiles NAME; a warning of the linker is a failure too.
build() {
    name=$1
    shift
    # shellcheck disable=SC2086 # the compiler may come with options
    "$@" -o "$work/$name" >"$work/output" 2>&1 && [ ! -s "$work/output" ] && return
    cat "$work/output"
    fail "$name does not build: $*"
    return 1
}

# served WHAT COMMAND...: the command, told to free twice, ends by us; unserved: by somebody else's heap, or not at all.
served() {
    what=$1
    shift
    check "$what" "$@"
    aborts "$what" 'pamalloc: free(): double free' "$@" twice
}

unserved() {
    what=$1
    shift
    sh -c 'ulimit -c 0; "$@"; exit $?' sh "$@" twice >"$work/output" 2>&1
    if grep -q '^pamalloc: ' "$work/output"; then
        fail "$what: served by pamalloc"
    fi
}

# In a mount namespace of its own; where the system allows none, what needs one is told and left out.
has_namespace=no
if [ "$(id -u)" = 0 ] && unshare -m true 2>"$work/output"; then
    has_namespace=yes
fi

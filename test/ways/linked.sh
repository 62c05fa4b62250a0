#!/bin/sh
# Does -lpamalloc work for C and C++ behind the program's objects, and with the flags of pamalloc.pc wherever it stands
# on the line of a link; and do the lines that cannot work stay those that README tells?
# Packages: gcc g++ libc6-dev
set -u
. "${srcdir:-.}/test/ways/lib.sh"
cat >"$work/new.cc" <<'END'
int main(int count, char **) {
    int *volatile block = new int[100];
    delete[] block;
    if (count > 1) { delete[] block; }
    return 0;
}
END
there="-L$work/lib -Wl,-rpath,$work/lib"
twice=$work/twice.c
# What pkg-config gives: kept by --as-needed, which some compilers pass by themselves.
kept=$(sed -n 's/^Libs: -L[^ ]* //p' "$build/pamalloc.pc")
[ -n "$kept" ] || fail 'pamalloc.pc has no Libs'

# line WHAT WORDS...: a program linked by these words is served.
line() {
    line_of=$1
    shift
    # shellcheck disable=SC2086 # the folder's flags are two
    build linked "$cc" "$@" $there && served "$line_of" "$work/linked"
}
line 'last' "$twice" -lpamalloc
line 'last, --as-needed' -Wl,--as-needed "$twice" -lpamalloc
line 'last, --no-as-needed' -Wl,--no-as-needed "$twice" -lpamalloc
line 'among others' "$twice" -lm -lpamalloc -ldl -lpthread
line 'before -lc' "$twice" -lpamalloc -lc
line 'into a program at a fixed address' -no-pie "$twice" -lpamalloc
line 'bound at once' "$twice" -lpamalloc -Wl,-z,now,-z,relro
# shellcheck disable=SC2086 # flags, split into words
{
    line 'kept, last' "$twice" $kept
    line 'kept, first' $kept "$twice"
    line 'kept, first, --as-needed' -Wl,--as-needed $kept "$twice"
    line 'kept, -flto' -O2 -flto "$twice" $kept
    line 'kept, -flto, first' $kept -O2 -flto "$twice"
}

# new_line WHAT MESSAGE WORDS...: the same for C++.
new_line() {
    new_of=$1
    message=$2
    shift 2
    # shellcheck disable=SC2086
    build new "${CXX:-g++}" "$@" $there || return
    check "$new_of" "$work/new"
    aborts "$new_of" "pamalloc: $message: double free" "$work/new" twice
}
if command -v "${CXX:-g++}" >/dev/null; then
    new_line 'new' 'operator delete[]()' "$work/new.cc" -lpamalloc
    new_line 'new, before -lstdc++' 'operator delete[]()' "$work/new.cc" -lpamalloc -lstdc++
    new_line 'new, static libstdc++' 'operator delete[]()' -static-libstdc++ "$work/new.cc" -lpamalloc
    # Behind it, its operators call our malloc and free.
    # shellcheck disable=SC2086
    new_line 'new, kept behind -lstdc++' 'free()' "$work/new.cc" -lstdc++ $kept
fi

# A program that only the C library's calls lead to the heap: the linker sees no need of ours, unless it is told.
needs() {
    readelf -d "$work/linked" | grep -qF "[$soname]"
}
# shellcheck disable=SC2086
{
    build linked "$cc" "$work/unnamed.c" $kept $there && check 'kept, no name' "$work/linked"
    needs || fail 'the flags of pamalloc.pc do not keep a library that no name leads to'
    build linked "$cc" -Wl,--as-needed "$work/unnamed.c" -lpamalloc $there && check 'no name' "$work/linked"
    ! needs || fail '--as-needed keeps what no name leads to: README says that it does not'
    # The first library that has a name gives it: behind the C library nothing is left to give.
    build linked "$cc" "$twice" -lc $kept $there && unserved 'behind -lc' "$work/linked"
}
finish

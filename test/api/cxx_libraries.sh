#!/bin/sh
# Does operator new throw, loop and give up as it should, whichever C++ library a program has and however it came by it:
# shared, static, another one than g++'s, thrown across libraries, or loaded late by a program in C?
# Packages: libc++-14-dev libc++abi-14-dev
set -u
. "${srcdir:-.}/test/api/lib.sh"
source=${srcdir:-.}/test/api/modules/throws.cc
folder=$(dirname "$library")
archive=${PAMALLOC_ARCHIVE:-$build/.libs/libpamalloc.a}
cxx=${CXX:-g++}

# compiled COMPILER ARGUMENTS...: the program, or a failure that is told.
compiled() {
    # shellcheck disable=SC2086 # the compiler may come with options
    "$@" -o "$work/program" >"$work/output" 2>&1 && return
    cat "$work/output"
    fail "does not build: $*"
    return 1
}

# ours WHAT ENVIRONMENT...: the program works, and on this heap.
ours() {
    case_name=$1
    shift
    check "$case_name" env "$@" "$work/program"
    aborts "$case_name, freed twice" 'pamalloc: ' env "$@" "$work/program" twice
    echo "tested: $case_name"
}

build_program() {
    # shellcheck disable=SC2086
    compiled $cxx -std=c++17 -O2 -DPROGRAM "$@"
}

for standard in 17 20; do
    build_program "-std=c++$standard" "$source" && ours "C++$standard, preloaded" LD_PRELOAD="$library"
    build_program "-std=c++$standard" "$source" -L"$folder" -Wl,--no-as-needed -lpamalloc &&
        ours "C++$standard, linked" LD_LIBRARY_PATH="$folder"
done

# A static C++ library brings operators of its own, which call malloc.
build_program -static-libstdc++ -static-libgcc "$source" &&
    ours 'static libstdc++, preloaded' LD_PRELOAD="$library"
build_program -static-libstdc++ -static-libgcc "$source" -L"$folder" -Wl,--no-as-needed -lpamalloc &&
    ours 'static libstdc++, linked' LD_LIBRARY_PATH="$folder"
if [ -f "$archive" ]; then
    build_program -static-libstdc++ -static-libgcc "$source" "$archive" -pthread &&
        ours 'static libstdc++ and the archive' LD_LIBRARY_PATH=
    build_program -static "$source" "$archive" -pthread && ours 'a static program' LD_LIBRARY_PATH=
fi

# The other C++ library.
echo 'int main() {}' >"$work/empty.cc"
if clang++ -stdlib=libc++ "$work/empty.cc" -include vector -o "$work/empty" >"$work/output" 2>&1; then
    compiled clang++ -stdlib=libc++ -std=c++17 -O2 -DPROGRAM "$source" &&
        ours 'libc++, preloaded' LD_PRELOAD="$library"
    compiled clang++ -stdlib=libc++ -std=c++17 -O2 -DPROGRAM "$source" -L"$folder" -Wl,--no-as-needed \
        -lpamalloc && ours 'libc++, linked' LD_LIBRARY_PATH="$folder"
elif [ "${CI:-}" = true ]; then
    cat "$work/output"
    missing 'libc++'
else
    echo 'not tested: libc++, which is not installed'
fi

# Thrown in one library, caught in another; with and without a C++ library in the program itself.
build_module() {
    # shellcheck disable=SC2086
    $cxx -O2 -std=c++17 -shared -fPIC "$source" -o "$work/libthrows.so" "$@" >"$work/output" 2>&1 || {
        cat "$work/output"
        fail 'the module does not build'
    }
}
cat >"$work/catches.cc" <<'END'
#include <cstddef>
#include <new>
extern "C" void *throws_demand(size_t size);
int main(int count, char **) {
    for (int i = 0; i < 100; i++) {
        try {
            throws_demand(~static_cast<size_t>(0) / 4);
            return 1;
        } catch (const std::bad_alloc &) {
        }
    }
    char *volatile block = new char[100];
    delete[] block;
    if (count > 1) { delete[] block; }
    return 0;
}
END
cat >"$work/late.c" <<'END'
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **arguments) {
    void *module = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    int (*work)(void) = (int (*)(void))(uintptr_t)(module == NULL ? NULL : dlsym(module, "throws_work"));
    void *volatile block = malloc(10);
    if (work == NULL) { (void)puts(dlerror()); return 1; }
    free(block);
    if (count > 1) { free(block); }
    for (int i = 0; i < 100; i++) { if (work() != 0) { return 2; } }
    return arguments == NULL;
}
END
build_module
# shellcheck disable=SC2086
compiled $cxx -O2 "$work/catches.cc" -L"$work" -lthrows &&
    ours 'thrown across libraries' LD_PRELOAD="$library" LD_LIBRARY_PATH="$work"
compiled "${CC:-gcc}" -O2 -DLIBRARY="\"$work/libthrows.so\"" "$work/late.c" &&
    ours 'a C++ library that a program in C loads late' LD_PRELOAD="$library"
build_module -static-libstdc++ -static-libgcc
ours 'a module with a C++ library of its own inside' LD_PRELOAD="$library"
compiled "${CC:-gcc}" -O2 -DLIBRARY="\"$work/libthrows.so\"" "$work/late.c" -L"$folder" \
    -Wl,--no-as-needed -lpamalloc && ours 'the same, linked' LD_LIBRARY_PATH="$folder"
finish

#!/bin/sh
# Does the static archive serve programs with threads, children and exceptions, in C and C++: in a dynamic program, a
# fully static one, a static one at any address; and is it told that it does not go into a shared library?
# Packages: gcc g++ libc6-dev
set -u
. "${srcdir:-.}/test/ways/lib.sh"
archive=${PAMALLOC_ARCHIVE:-$build/.libs/libpamalloc.a}
[ -f "$archive" ] || missing "$archive"

cat >"$work/threads.c" <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *last) {
    for (int i = 1; i < 20000; i++) {
        char *block = malloc(i % 5000);
        if (block == NULL) { abort(); }
        memset(block, 1, i % 5000);
        free(i % 16 == 0 ? *(void **)last : block);
        if (i % 16 == 0) { *(void **)last = block; }
    }
    return NULL;
}
int main(int count, char **arguments) {
    pthread_t threads[4];
    void *last[4] = { NULL, NULL, NULL, NULL };
    for (int i = 0; i < 4; i++) { pthread_create(&threads[i], NULL, work, &last[i]); }
    for (int i = 0; i < 4; i++) { pthread_join(threads[i], NULL); free(last[i]); }
    last[0] = NULL;
    if (fork() == 0) { work(&last[0]); _exit(arguments[0] == NULL); }
    int status = 1;
    if (wait(&status) < 0 || status != 0) { return 1; }
    char *volatile block = malloc(100);
    if (count > 1) { free(block); free(block); }
    return 0;
}
END
cat >"$work/exceptions.cc" <<'END'
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
static void work() {
    std::map<int, std::string> map;
    for (int i = 0; i < 2000; i++) { map[i] = std::string(i % 300, 'x'); }
    for (int i = 0; i < 300; i++) {
        try { throw std::runtime_error("thrown"); } catch (const std::exception &) { map.erase(i); }
    }
}
int main(int count, char **) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) { threads.emplace_back(work); }
    for (auto &thread : threads) { thread.join(); }
    volatile std::size_t most = static_cast<std::size_t>(-1) / 4;
    char *volatile block = nullptr;
    try { block = new char[most]; return 1; } catch (const std::bad_alloc &) { }
    block = new char[100];
    delete[] block;
    if (count > 1) { delete[] block; }
    return 0;
}
END
for way in '' -no-pie -static '-static-pie -fPIE'; do
    # shellcheck disable=SC2086 # the flags are words
    build program "$cc" -O2 "$work/threads.c" $way "$archive" -pthread &&
        served "threads in C, ${way:-dynamic}" "$work/program"
    command -v "${CXX:-g++}" >/dev/null || continue
    # The parts of pthreads that the C++ library looks for by weak names are in the C library itself since glibc 2.34.
    # shellcheck disable=SC2086
    build program "${CXX:-g++}" -O2 "$work/exceptions.cc" $way "$archive" -pthread || continue
    check "threads and exceptions in C++, ${way:-dynamic}" "$work/program"
    aborts "threads and exceptions in C++, ${way:-dynamic}" 'pamalloc: operator delete[](): double free' \
        "$work/program" twice
done

# Its objects are for programs; a plugin links with the shared library.
if $cc -shared -fPIC "$work/twice.c" "$archive" -o "$work/plugin.so" >"$work/output" 2>&1; then
    fail 'the archive goes into a shared library: README says that it does not'
fi
finish

#!/bin/sh
# clang compiles the same file, analyses a small one and optimises a generated one.
# Packages: clang g++

. "$(dirname "$0")/lib.sh"
begin 240
need clang
version "$(clang --version)"

cp "$here/everything.cc" "$dir/data/everything.cc"
echo 'int main(void) { return 0; }' >"$dir/data/small.c"
awk 'BEGIN {
    for (i = 0; i < 500; i++) {
        printf "int f%d(int a, int b) { int s = a; for (int i = 0; i < b; i++) s += i * %d ^ a; return s; }\n", i, i
    }
    print "int main(void) {\n    int s = 0;"
    for (i = 0; i < 500; i++) {
        printf "    s ^= f%d(s, %d);\n", i, i % 50
    }
    print "    __builtin_printf(\"%d\\n\", s);\n    return 0;\n}"
}' >"$dir/data/many.c"

prove clang clang -c -o small.o "$dir/data/small.c"

work() {
    clang++ -std=c++17 -O0 -fsyntax-only -Wno-everything "$dir/data/plain.cc"
    clang -O2 -o many "$dir/data/many.c"
    ./many
    clang --analyze -o report "$dir/data/small.c"
}

# The newest standard headers need the newest mode, which an older clang may not have: a subset is enough here.
grep -vE '<(barrier|latch|ranges|span|regex|future)>' "$dir/data/everything.cc" |
    awk '/^namespace/ { exit } { print }' >"$dir/data/plain.cc"
echo 'int main() { std::map<std::string, std::vector<int>> m; m["a"].push_back(1); return m.size() - 1; }' \
    >>"$dir/data/plain.cc"

compare work
same_files many

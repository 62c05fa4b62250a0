#!/bin/sh
# clang builds a generated project of twenty-five files with make, a static library and link-time optimisation.
# Packages: clang llvm lld make

. "$(dirname "$0")/../lib.sh"
begin 300
need clang
need make
need ld.lld
need llvm-ar
version "$(clang --version)"

mkdir "$dir/data/project"
n=0
while [ "$n" -lt 25 ]; do
    cat >"$dir/data/project/part$n.cc" <<CC
#include <algorithm>
#include <map>
#include <string>
#include <vector>
long part$n(long seed)
{
    std::map<std::string, std::vector<long>> table;
    for (long i = 0; i < 200; i++) {
        table[std::to_string((seed * $n + i * 7919) % 50)].push_back(i);
    }
    long sum = $n;
    for (auto &[key, list] : table) {
        std::sort(list.rbegin(), list.rend());
        sum = sum * 31 + static_cast<long>(key.size()) + list.front();
    }
    return sum % 1000003;
}
CC
    n=$((n + 1))
done
{
    echo '#include <cstdio>'
    awk 'BEGIN { for (i = 0; i < 25; i++) { printf "long part%d(long);\n", i }
        print "int main()\n{\n    long sum = 1;"
        for (i = 0; i < 25; i++) { printf "    sum = part%d(sum);\n", i }
        print "    std::printf(\"%ld\\n\", sum);\n}" }'
} >"$dir/data/project/main.cc"
cat >"$dir/data/project/Makefile" <<'MAKE'
CXXFLAGS = -std=c++17 -O1 -flto=thin
objects = $(patsubst %.cc,%.o,$(sort $(wildcard part*.cc)))
program: main.o libparts.a
	@clang++ $(CXXFLAGS) -fuse-ld=lld -Wl,--threads=2 -o $@ main.o libparts.a
libparts.a: $(objects)
	@llvm-ar rcsD $@ $^
%.o: %.cc
	@clang++ $(CXXFLAGS) -c -o $@ $<
MAKE

work() {
    cp -r "$dir/data/project" project
    cd project
    make -j2 program
    ./program
    nm program | sort -k3 | awk '{ print $3 }' | sha256sum
}

prove ld.lld ld.lld --version
compare work
same_files project/program

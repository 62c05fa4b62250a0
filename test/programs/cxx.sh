#!/bin/sh
# g++ compiles a file that includes most of the standard library: the objects must be equal byte for byte. The program
# that it made runs too.
# Packages: g++

. "$(dirname "$0")/lib.sh"
begin 240
need g++
version "$(g++ --version)"

cp "$here/everything.cc" "$dir/data/everything.cc"
echo 'int main() { return 0; }' >"$dir/data/small.cc"

prove cc1plus g++ -o small "$dir/data/small.cc"
prove g++ g++ -o small "$dir/data/small.cc"

work() {
    g++ -std=c++20 -O1 -Wall -c -o everything.o "$dir/data/everything.cc"
    g++ -o everything everything.o -pthread
    ./everything
}

compare work
same_files everything.o everything

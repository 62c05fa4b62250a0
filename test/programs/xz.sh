#!/bin/sh
# xz with two threads: compressed, tested, unpacked.
# Packages: xz-utils

. "$(dirname "$0")/lib.sh"
begin 120
need xz
version "$(xz --version)"

prove xz xz --version

lines 100000 >"$dir/data/lines"

work() {
    xz -T2 -2 --block-size=1MiB -c "$dir/data/lines" >lines.xz
    xz -t lines.xz
    xz -T2 -dc lines.xz | sha256sum
    head -n 20000 "$dir/data/lines" | xz -9e | sha256sum
    xz -lvv lines.xz | sha256sum
}

compare work
same_files lines.xz

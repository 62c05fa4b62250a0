#!/bin/sh
# tar and gzip of a tree of some thousand files: pack, list, compare, unpack.
# Packages: tar gzip

. "$(dirname "$0")/lib.sh"
begin 120
need tar
need gzip
version "$(tar --version)"

mkdir "$dir/data/tree"
awk -v root="$dir/data/tree" 'BEGIN {
    for (d = 0; d < 40; d++) {
        folder = root "/folder" d; system("mkdir " folder)
        for (f = 0; f < 60; f++) {
            file = folder "/a name of some length " f
            for (k = 0; k < f * 5; k++) { print d, f, k * d * 7919 > file }
            printf "" > file
            close(file)
        }
    }
}'
ln -s folder1 "$dir/data/tree/symbolic"
ln "$dir/data/tree/folder2/a name of some length 3" "$dir/data/tree/hard"

prove tar tar --version
prove gzip gzip --version

work() {
    tar -C "$dir/data" --sort=name --mtime=@1700000000 --owner=0 --group=0 --numeric-owner -cf tree.tar tree
    sha256sum <tree.tar
    tar -tvf tree.tar | sha256sum
    gzip -9nk tree.tar
    gzip -t tree.tar.gz
    tar -xzf tree.tar.gz
    diff -r tree "$dir/data/tree"
    tar -C "$dir/data" --format=pax --exclude='*5' --sort=name --mtime=@0 -I 'gzip -1n' -cf less.tgz tree
    tar -tzf less.tgz | wc -l
    find tree -type f -newermt 2020-01-01 -print0 | sort -z | xargs -0 -n 50 cat | sha256sum
    rm -rf tree
}

compare work
same_files tree.tar.gz less.tgz

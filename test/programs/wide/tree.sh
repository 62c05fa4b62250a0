#!/bin/sh
# tar of a large tree, the system's own headers and documents: packed, listed, found again; and cpio, find and du.
# Packages: tar gzip zstd cpio findutils

. "$(dirname "$0")/../lib.sh"
begin 300
need tar
need zstd
need cpio
version "$(tar --version)"

work() {
    for folder in usr/include usr/share/doc usr/share/perl usr/lib/python3; do
        if [ -d "/$folder" ]; then
            echo "$folder"
        fi
    done >folders
    tar -C / --sort=name -cf - -T folders | sha256sum
    tar -C / --sort=name -I 'zstd -T2 -3' -cf tree.tar.zst -T folders
    zstd -dc tree.tar.zst | tar -tf - | tee names | wc -l
    tar -C / -I zstd -df tree.tar.zst
    mkdir half
    tar -I zstd -xf tree.tar.zst -C half usr/include
    diff -r --no-dereference half/usr/include /usr/include
    (cd half && find . -depth -print | LC_ALL=C sort | cpio -o --quiet -H newc --reproducible 2>/dev/null) | wc -c
    find half -type f -name '*.h' -size +1k -printf '%P %s %m\n' | sort | sha256sum
    find half -type f -print0 | xargs -0 grep -lI 'define.*malloc' | sort | sha256sum
    du -s --apparent-size --inodes half
    wc -l <names
    rm -r half
}

prove tar tar --version
prove zstd zstd --version
compare work

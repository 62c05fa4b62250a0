#!/bin/sh
# coreutils: sort with several threads and with temporary files, and the tools that people put around it.
# Packages: coreutils gzip

. "$(dirname "$0")/lib.sh"
begin 120
need sort
version "$(sort --version)"

prove sort sort /dev/null

lines 300000 >"$dir/data/lines"

work() {
    sort --parallel=4 -S 40M -k2,2 -k1,1n "$dir/data/lines" >sorted
    sort -S 1M -T . --compress-program=gzip -k3 "$dir/data/lines" | sha256sum
    sort -u -k2,2 "$dir/data/lines" | wc
    cut -d' ' -f2 "$dir/data/lines" | sort | uniq -c | sort -rn | head -n 5
    shuf --random-source="$dir/data/lines" "$dir/data/lines" | sha256sum
    tac "$dir/data/lines" | sha256sum
    split -l 50000 "$dir/data/lines" piece.
    cat piece.* | cmp - "$dir/data/lines"
    join -1 2 -2 2 piece.aa piece.ab 2>/dev/null | head -n 3 | wc -l
    comm -12 sorted sorted | wc -l
    paste piece.aa piece.ab | fmt -w 60 | fold -w 40 | expand | nl | pr -D date -3 | sha256sum
    cksum piece.aa
    sha512sum piece.*
    b2sum piece.ab
    base64 piece.ac | base64 -d | md5sum
    tr a-z A-Z <piece.aa | od -A n -t x1 | tail -n 2
    factor 1000000016000000063 99999999999999999999
    seq -w 1 50000 | numfmt --to=iec --invalid=ignore | sha256sum
    tsort <<'PAIRS'
a b
b c
d c
PAIRS
    mkdir -p deep/er/and/deeper
    cp -a piece.* deep/er
    ls -lR --time-style=+ deep | sed 's/ root root//' | sha256sum
    du -a --apparent-size deep/er | sort -k2 | grep -v '/and' | grep piece
    stat -c '%s %F' deep/er/piece.aa
    expr "$(date -u -d @1700000000 +%s)" + 1
    rm -r deep
}

compare work
same_files sorted

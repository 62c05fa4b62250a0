#!/bin/sh
# awk, whichever this system has: arrays, strings, regular expressions, pipes.
# Packages: mawk

. "$(dirname "$0")/lib.sh"
begin 120
need awk
tool=$(basename "$(readlink -f "$(command -v awk)")")
version "$tool $("$tool" -W version 2>/dev/null || "$tool" --version)"

prove awk awk 'BEGIN { exit 0 }'

lines 200000 >"$dir/data/lines"
cat >"$dir/data/work.awk" <<'AWK'
{
    count[$2]++
    sum[$3] += $1 % 1000
    if (length(tail[$1 % 500]) < 4000) {
        tail[$1 % 500] = tail[$1 % 500] $2
    } else {
        delete tail[$1 % 500]
    }
    if (NR % 1000 == 0) {
        gsub(/[aeiou]/, "<&>"); kept[NR] = toupper($0) substr($0, 3, 20)
    }
    parts += split($0, part, /[^0-9]+/)
}
END {
    for (word in count) { print "count", word, count[word] | "sort | sha256sum" }
    close("sort | sha256sum")
    for (word in sum) { total += sum[word]; words++ }
    for (key in tail) { long += length(tail[key]) }
    for (i = 1000; i <= NR; i += 1000) { text = text kept[i] "\n" }
    print words, total, long, parts, length(text)
    while (("seq 1 20000" | getline line) > 0) { joined = joined "," line }
    print length(joined), index(joined, ",19999,"), match(joined, /,7{4},/)
    printf "%s", text
}
AWK

compare awk -f "$dir/data/work.awk" "$dir/data/lines"

#!/bin/sh
# Can most of what a limit allows be allocated, and again after it was freed, and again by another size? What is measured
# is told in bench/limits.c: address space, writable memory, the charge of strict overcommit, the table of mappings.
#
# The bounds stand a few percent below what was measured when they were written. Blocks of 100 bytes have slots of 112:
# 89 % is all that there can be.
set -u
limits=${builddir:-.}/bench/limits
library=${PAMALLOC_LIB:-${builddir:-.}/.libs/libpamalloc.so}
wrong=0

# figure NAME LINE: a number of the line of JSON, whole.
figure() {
    echo "$2" | sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p"
}

# expect FIRST AGAIN OTHER ARGUMENTS...: at least so many percent.
expect() {
    first=$1 again=$2 other=$3
    shift 3
    line=$(env LD_PRELOAD="$library" timeout 60 "$limits" "$@")
    echo "$line"
    for pair in "percent $first" "again_percent $again" "other_percent $other"; do
        value=$(figure "${pair% *}" "$line")
        if [ "${value:-0}" -lt "${pair#* }" ]; then
            echo "limits $*: ${pair% *} is ${value:-missing}, and should be at least ${pair#* }"
            wrong=1
        fi
    done
}

[ -x "$limits" ] && [ -f "$library" ] || {
    echo "no $limits or no $library"
    exit 99
}
# After the mix, 76 percent in most runs, 108 in some and 66 in one of 20: what is free then is in pieces.
expect 82 97 60 space 64 0
expect 82 97 95 space 64 100
expect 90 97 90 space 64 40000
expect 87 97 95 data 64 0
expect 85 97 95 data 64 100
expect 92 97 90 data 64 4096
expect 86 90 75 charge 64 0
expect 94 97 90 charge 64 4096
expect 99 99 99 maps 1000 0
expect 99 99 99 maps 1000 300000
exit $wrong

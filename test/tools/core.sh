#!/bin/sh
# Is the core of a program on this heap small: reserved address space and what was given back stay out of it? On the
# disk it may take 1 MiB more than on the C library's heap. Its length counts pages that were never touched as well, and
# among them is the first level of the page map, 1 MiB: 1.5 MiB more.
# Packages: gcc libc6-dev
set -u
. "${srcdir:-.}/test/ways/lib.sh"
build known $cc -g -O0 -fno-builtin "${srcdir:-.}/test/tools/known.c" || finish
pattern=$(cat /proc/sys/kernel/core_pattern)
case $pattern in
'|'* | */*)
    # The kernel gives it to somebody, or puts it elsewhere: gdb writes the same mappings.
    by=gdb
    command -v gdb >/dev/null || missing gdb
    ;;
*) by=kernel ;;
esac

# core_of NAME LIBRARY: how many KiB the core that the crash leaves takes on the disk, and its length.
core_of() {
    mkdir "$work/$1" || exit 99
    (
        cd "$work/$1" || exit 99
        ulimit -c unlimited
        if [ "$by" = kernel ]; then
            # A variable that is empty preloads nothing.
            LD_PRELOAD=$2 "$work/known" 100 crash
        else
            gdb -nx -batch -ex 'set startup-with-shell off' -ex 'set debuginfod enabled off' \
                -ex "set environment LD_PRELOAD $2" -ex run -ex 'generate-core-file core' \
                --args "$work/known" 100 crash </dev/null
        fi
    ) >"$work/output" 2>&1
    core=$(ls "$work/$1"/core* 2>/dev/null | head -n 1)
    [ -n "$core" ] || {
        cat "$work/output"
        fail "$1: no core (by $by)"
        return
    }
    disk=$(du -k "$core" | cut -f 1)
    length=$(du -k --apparent-size "$core" | cut -f 1)
}
disk=0 length=0
core_of plain ''
plain_disk=$disk plain_length=$length
core_of ours "$library"
echo "core on the C library's heap: $plain_disk KiB, length $plain_length; on ours: $disk KiB, length $length (by $by)"
[ "$plain_disk" -gt 0 ] && [ "$disk" -gt 0 ] || fail 'no core'
[ "$disk" -le $((plain_disk + 1024)) ] || fail 'it takes more of the disk'
[ "$length" -le $((plain_length + 1536)) ] || fail 'it is longer'
finish

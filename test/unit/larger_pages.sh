#!/bin/sh
# The unit tests again, as if the machine's page were 16 KiB and 64 KiB: nothing may assume 4 KiB.
set -u
: "${srcdir:=.}" "${builddir:=.}"
page=$(getconf PAGESIZE)
log=$builddir/test/unit/larger_pages.out
failed=0
ran=0
for size in 16384 65536; do
    [ "$size" -gt "$page" ] || continue
    for source in "$srcdir"/test/unit/*.c; do
        name=$(basename "$source" .c)
        program=$builddir/test/unit/$name
        if [ ! -x "$program" ]; then
            echo "$program is not built"
            exit 99
        fi
        ran=$((ran + 1))
        if ! PMA_TEST_PAGE=$size "$program" >"$log" 2>&1; then
            failed=$((failed + 1))
            echo "$name, page of $size:"
            cat "$log"
        fi
    done
done
rm -f "$log"
echo "$ran runs, $failed failed"
[ "$failed" -eq 0 ] || exit 1
[ "$ran" -gt 0 ] || exit 77

#!/bin/sh
# Does the library start and work beside others that are loaded with it: one that hooks kernel calls
# and allocates in each hook, in either order; an auditor; plugins in their own ways?
set -u
. "${srcdir:-.}/test/api/lib.sh"
modules=$build/test/api/modules

# Both orders: the hooks see our calls, or ours come first.
for order in "$modules/hooks.so $library" "$library $modules/hooks.so"; do
    check "ls, preloading $order" env LD_PRELOAD="$order" timeout 20 ls -l /
    check "python3, preloading $order" env LD_PRELOAD="$order" timeout 20 python3 -c pass
    check "threads, preloading $order" \
        env LD_PRELOAD="$order" timeout 60 "$build/test/api/processors_change"
done

check 'an auditor' env LD_AUDIT="$modules/audit.so" LD_PRELOAD="$library" timeout 20 ls -l /
quiet 'an auditor' env LD_AUDIT="$modules/audit.so" LD_PRELOAD="$library" timeout 20 ls /
check 'plugins in a host on this heap' \
    env LD_PRELOAD="$library" "$build/test/api/plugins" "$work" "$modules"
check 'a plugin that brings the heap to its host' \
    "$build/test/api/plugins" "$work" "$modules" plugin-only

# A name of the family that the loader cannot give: nothing of what starts first may need it.
check 'nothing is preloaded by a wrong name' env LD_PRELOAD="$library" true
quiet 'nothing is printed' env LD_PRELOAD="$library" true
finish

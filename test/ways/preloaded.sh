#!/bin/sh
# Is the library preloaded by its path, by its name in LD_LIBRARY_PATH, by its name in the loader's cache, beside
# others; and is a program of another width only told that it cannot be?
# Packages: gcc libc6-dev util-linux
set -u
. "${srcdir:-.}/test/ways/lib.sh"
build twice $cc "$work/twice.c" || finish
twice=$work/twice

unserved 'nothing preloaded' "$twice"
served 'by path' env LD_PRELOAD="$library" "$twice"
served 'by name' env LD_LIBRARY_PATH="$work/lib" LD_PRELOAD=libpamalloc.so "$twice"
served 'by soname' env LD_LIBRARY_PATH="$work/lib" LD_PRELOAD="$soname" "$twice"
served 'beside another, first' env LD_PRELOAD="$library:libm.so.6" "$twice"
served 'beside another, last' env LD_PRELOAD="libm.so.6 $library" "$twice"
quiet 'by name' env LD_LIBRARY_PATH="$work/lib" LD_PRELOAD=libpamalloc.so "$twice"

# The loader's cache as `make install && ldconfig` leaves it, laid over the system's own in this one namespace.
if [ "$has_namespace" = yes ]; then
    printf '%s\n' "$work/lib" >"$work/conf"
    cat >"$work/in_cache" <<'END'
#!/bin/sh
folder=$1
shift
PATH=$PATH:/sbin:/usr/sbin
ldconfig -X -f "$folder/conf" -C "$folder/cache" 2>/dev/null || exit 3
mount --bind "$folder/cache" /etc/ld.so.cache || exit 4
LD_PRELOAD=libpamalloc.so exec "$@"
END
    served 'by name, from the cache' unshare -m sh "$work/in_cache" "$work" "$twice"
else
    echo 'not tested: by name from the cache (no mount namespace)'
fi

# One word for programs of all widths: the loader takes $LIB for the folder of libraries of the program's own width.
for lib in lib lib64 "lib/$($cc -print-multiarch 2>/dev/null)"; do
    mkdir -p "$work/root/$lib" && cp "$library" "$work/root/$lib/libpamalloc.so"
done
served 'by $LIB' env LD_PRELOAD="$work/root/\$LIB/libpamalloc.so" "$twice"
finish

#!/bin/sh
# rsync: a tree by itself, changes by delta, and through a daemon on the loopback.
# Packages: rsync

. "$(dirname "$0")/../lib.sh"
begin 120
need rsync
version "$(rsync --version)"

mkdir -p "$dir/data/tree"
for folder in 1 2 3 4 5 6 7 8 9 10; do
    mkdir "$dir/data/tree/$folder"
    lines 4000 | split -l 20 -a 4 - "$dir/data/tree/$folder/file "
done
ln -s 1 "$dir/data/tree/link"
lines 200000 >"$dir/data/tree/big"
find "$dir/data/tree" -exec touch -h -d 2024-01-01 {} +

listing() {
    (cd "$1" && find . -type f -exec sha256sum {} + | sort -k2 | sha256sum; find . | wc -l)
}

start_daemon() {
    for try in 1 2 3; do
        port=$(free_port)
        cat >daemon.conf <<CONF
use chroot = no
port = $port
address = 127.0.0.1
pid file = $PWD/daemon.$try.pid
[tree]
path = $PWD/copy
read only = no
uid = $(id -u)
gid = $(id -g)
CONF
        serve "$dir/$mode.log" rsync --daemon --no-detach --config="$PWD/daemon.conf" --log-file="$PWD/daemon.log"
        if await 10 rsync "rsync://127.0.0.1:$port/"; then
            return 0
        fi
        kill -TERM "$server"
    done
    fail "no server after $try tries"
}

work() {
    rsync -a --stats "$dir/data/tree/" copy/ | grep -E '^(Number of|Total file size|Literal|Matched)'
    listing copy
    for folder in 1 2 3; do
        rm -r "copy/$folder"
    done
    sed -i 's/77/seventy seven/' copy/big
    rsync -a --delete --no-whole-file --stats "$dir/data/tree/" copy/ | grep -E '^(Number of|Literal|Matched)'
    listing copy
    start_daemon
    mapped "$server"
    rsync -az --out-format=%n "rsync://127.0.0.1:$port/tree/" fetched/ | sort | sha256sum
    listing fetched
    echo more >>fetched/big
    rsync -az --checksum --out-format=%n fetched/ "rsync://127.0.0.1:$port/tree/"
    rsync -rn --list-only "rsync://127.0.0.1:$port/tree/2/" | wc -l
    listing copy
    kill -TERM "$server"
    # A daemon that was told to end says so by its own exit code.
    wait "$server" || echo "the daemon ended with $?"
    quiet "$dir/$mode.log"
    quiet daemon.log
}

prove rsync rsync --version
compare work

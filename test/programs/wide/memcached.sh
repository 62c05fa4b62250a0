#!/bin/sh
# memcached with four threads under eight clients: sets, gets, counters, deletes and evictions.
# Packages: memcached python3

. "$(dirname "$0")/../lib.sh"
begin 180
need memcached
find_python
version "$(memcached -V)"

cat >"$dir/data/load.py" <<'PY'
"""load.py PORT: eight clients, each with keys of its own, so that the answers do not depend on who comes first."""
import collections
import hashlib
import random
import socket
import sys
import threading


def client(index, port, answers):
    draw = random.Random(index)
    stream = socket.create_connection(("127.0.0.1", port), timeout=60).makefile("rwb")
    digest = hashlib.sha256()

    def ask(line, body=None):
        stream.write(line.encode() + b"\r\n" + (body + b"\r\n" if body is not None else b""))
        stream.flush()
        answer = stream.readline()
        if answer.startswith(b"VALUE"):
            answer += stream.read(int(answer.split()[3]) + 2) + stream.readline()
        digest.update(answer)

    for step in range(4000):
        key = "c%d:%d" % (index, draw.randrange(300))
        what = draw.randrange(10)
        if what < 4:
            body = bytes(draw.randrange(256) for _ in range(8)) * draw.randrange(1, 1 << draw.randrange(1, 10))
            ask("set %s 0 0 %d" % (key, len(body)), body)
        elif what < 8:
            ask("get " + key)
        elif what == 8:
            ask("append %s 0 0 3" % key, b"end")
        else:
            ask("delete " + key)
    ask("set n%d 0 0 1" % index, b"0")
    for step in range(500):
        ask("incr n%d %d" % (index, step))
    answers[index] = digest.hexdigest()[:16]


port = int(sys.argv[1])
answers = {}
threads = [threading.Thread(target=client, args=(i, port, answers)) for i in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for index in range(8):
    print(index, answers[index])

# More than the limit of memory: the server has to evict.
stream = socket.create_connection(("127.0.0.1", port), timeout=60).makefile("rwb")
for number in range(3000):
    stream.write(b"set big%d 0 0 40000 noreply\r\n" % number + b"x" * 40000 + b"\r\n")
stream.write(b"get big2999\r\nstats\r\n")
stream.flush()
print(len(stream.readline() + stream.read(40002) + stream.readline()))
seen = collections.OrderedDict()
while True:
    words = stream.readline().split()
    if words == [b"END"]:
        break
    seen[words[1].decode()] = words[2].decode()
print("evicted", int(seen["evictions"]) > 0, "sets", seen["cmd_set"])
PY

start_memcached() {
    user=
    if [ "$(id -u)" -eq 0 ]; then
        user='-u root'
    fi
    for try in 1 2 3; do
        port=$(free_port)
        # shellcheck disable=SC2086
        serve "$dir/$mode.log" memcached $user -l 127.0.0.1 -p "$port" -U 0 -t 4 -m 64
        if await 10 perl -MIO::Socket::INET -e 'exit !IO::Socket::INET->new("127.0.0.1:" . shift)' "$port"; then
            return 0
        fi
        stop "$server" TERM
    done
    fail "no server after $try tries"
}

work() {
    start_memcached
    mapped "$server"
    "$python" "$dir/data/load.py" "$port"
    stop "$server" TERM
    quiet "$dir/$mode.log"
}

prove memcached memcached -V
compare work

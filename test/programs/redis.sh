#!/bin/sh
# redis-server under redis-benchmark; then a data set whose digest must be the same in memory, after a save by a forked
# child and a start from that file, and without the library.
# Packages: redis-server redis-tools

. "$(dirname "$0")/lib.sh"
begin 240
need redis-server
need redis-benchmark
version "$(redis-server --version)"

# The data set, in the commands that redis-cli --pipe takes.
lines 20000 | awk '{
    printf "SET string:%s %s%s%s\n", $1, $2, $3, $1
    printf "HSET hash:%d field:%s %s\n", NR % 500, $3, $1
    printf "RPUSH list:%d %s\n", NR % 300, $2
    printf "ZADD zset:%d %s %s\n", NR % 100, $1, $3
    printf "SADD set:%d %s\n", NR % 200, $2
    printf "XADD stream:%d %d-1 word %s\n", NR % 50, NR, $2
    if (NR % 3 == 0) { printf "DEL string:%s\n", $1 }
    if (NR % 7 == 0) { printf "APPEND string:%s %0200d\n", $1, NR }
}' >"$dir/data/commands"

redis() {
    redis-cli -h 127.0.0.1 -p "$port" "$@"
}

# start_redis LOG: on a free port; another one if somebody took it in between.
start_redis() {
    for try in 1 2 3; do
        port=$(free_port)
        serve "$1" redis-server --port "$port" --bind 127.0.0.1 --dir "$dir/$mode" --save '' --daemonize no \
            --appendonly no --enable-debug-command yes --lazyfree-lazy-user-del yes
        if await 10 redis PING; then
            return 0
        fi
        stop "$server" TERM
    done
    fail "no server after $try tries"
}

saved() {
    redis INFO persistence | grep -q 'rdb_bgsave_in_progress:0'
}

work() {
    start_redis "$dir/$mode.first.log"
    mapped "$server"
    redis-benchmark -h 127.0.0.1 -p "$port" -q -n 2500 -c 20 -d 300 -r 5000 --csv |
        tr -d '"' | awk -F, 'NR > 1 { print $1, ($2 > 0 ? "ran" : "did not run") }'
    redis FLUSHALL SYNC
    redis --pipe <"$dir/data/commands" | tail -n 1
    redis DBSIZE
    digest=$(redis DEBUG DIGEST)
    echo "$digest"
    redis BGSAVE
    # The parent goes on to change what its child is saving.
    redis-benchmark -h 127.0.0.1 -p "$port" -q -n 2000 -r 1000 -t set,lpush >benchmark
    await 30 saved
    redis INFO persistence | tr -d '\r' | grep rdb_last_bgsave_status
    stop "$server" TERM

    start_redis "$dir/$mode.second.log"
    mapped "$server"
    again=$(redis DEBUG DIGEST)
    if [ "$again" != "$digest" ]; then
        fail "the saved data set has the digest $again, it was $digest"
    fi
    redis DEBUG RELOAD
    redis DEBUG DIGEST
    redis EVAL 'local n = 0 for _, k in ipairs(redis.call("KEYS", "list:*")) do n = n + redis.call("LLEN", k) end
        return n' 0
    redis FLUSHALL ASYNC
    redis DBSIZE
    stop "$server" INT
    quiet "$dir/$mode.first.log"
    quiet "$dir/$mode.second.log"
}

prove redis-server redis-server --version
compare work

#!/bin/sh
# PostgreSQL: initdb, then pgbench with eight clients, each served by a process that the postmaster forks; then the
# sums that its transactions must leave equal, and queries with sorts, hashes, JSON and parallel workers.
# Packages: postgresql

. "$(dirname "$0")/lib.sh"

# The server refuses to run as root, so it runs as the user that its package made; that user must reach its data and
# the library, wherever the build folder is.
PROGRAMS_DIR=${TMPDIR:-/tmp}
begin 300
for bin in /usr/lib/postgresql/*/bin /usr/local/pgsql/bin; do
    if [ -x "$bin/postgres" ]; then
        PATH=$bin:$PATH
        break
    fi
done
need postgres
need pgbench
version "$(postgres --version)"

cp "$lib" "$dir/libpreload.so"
chmod 755 "$dir/libpreload.so"
lib=$dir/libpreload.so
if [ "$(id -u)" -eq 0 ]; then
    id postgres >/dev/null 2>&1 || skip "there is no user postgres to run the server as"
    need setpriv
    chown -R postgres "$dir"
    as_user='setpriv --reuid=postgres --regid=postgres --init-groups'
else
    as_user=
fi

query() {
    $as_user psql -X -q -A -t -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$port" -U tester -d postgres "$@"
}

start_postgres() {
    for try in 1 2 3; do
        port=$(free_port)
        # shellcheck disable=SC2086
        serve "$dir/$mode.log" $as_user postgres -D "$PWD/data" -p "$port" -c listen_addresses=127.0.0.1 \
            -c unix_socket_directories= -c fsync=off -c shared_buffers=32MB -c autovacuum_naptime=1s \
            -c max_parallel_workers_per_gather=2 -c min_parallel_table_scan_size=0 -c parallel_setup_cost=0
        if await 20 query -c 'select 1'; then
            return 0
        fi
        stop "$server" INT
    done
    fail "no server after $try tries"
}

cat >"$dir/data/queries.sql" <<'SQL'
select 'balances agree', (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history),
    (select sum(bbalance) from pgbench_branches) = (select sum(delta) from pgbench_history),
    (select sum(tbalance) from pgbench_tellers) = (select sum(delta) from pgbench_history),
    (select count(*) from pgbench_history);
create table rows as select i, md5(i::text) as word, (i * 48271::bigint) % 2147483647 as x
    from generate_series(1, 200000) as i;
analyze rows;
select md5(string_agg(word, ',' order by word, i)) from rows where i % 5 = 0;
select count(*), sum(a.x % 1000) from rows a join rows b on a.x = b.x and a.word = b.word;
select left(word, 1), count(*), max(word) from rows group by 1 order by 1;
select md5(jsonb_object_agg(word, jsonb_build_array(i, x, word))::text) from rows where i <= 20000;
create index on rows (word);
create index on rows using gin (string_to_array(word, 'a'));
select count(*) from rows where string_to_array(word, 'a') @> array['b1'];
do $$ declare s text := ''; begin for k in 1 .. 20000 loop s := s || k; end loop;
    if md5(s) is null then raise exception 'no digest'; end if; end $$;
update rows set word = repeat(word, 3) where i % 4 = 0;
vacuum rows;
select sum(length(word)), sum(regexp_count(word, '[a-f]+')) from rows where i % 3 = 0;
SQL

work() {
    $as_user initdb -D data -U tester -A trust -N --locale=C --no-instructions >initdb.log
    grep -c ok initdb.log
    start_postgres
    query -c 'select 1'
    mapped "$server"
    mapped_children "$server"
    $as_user pgbench -q -i -s 1 -h 127.0.0.1 -p "$port" -U tester postgres >pgbench.log 2>&1
    $as_user pgbench -n -c 8 -j 2 -t 150 -h 127.0.0.1 -p "$port" -U tester postgres >>pgbench.log
    grep -E '^number of (transactions|failed)' pgbench.log
    # A connection for each transaction: some hundred short-lived processes.
    $as_user pgbench -n -S -C -c 8 -j 2 -t 25 -h 127.0.0.1 -p "$port" -U tester postgres >>pgbench.log
    query -f "$dir/data/queries.sql"
    stop "$server" INT
    quiet "$dir/$mode.log"
    if grep -aE '(FATAL|PANIC|terminated by signal)' "$dir/$mode.log" | grep -avE 'starting up|terminating'; then
        fail "the server's log has an error"
    fi
}

prove postgres postgres --version
compare work

#!/bin/sh
# MariaDB: a new data directory, eight clients at a time, then checksums of the tables and queries whose answers do not
# depend on the order of the load.
# Packages: mariadb-server

. "$(dirname "$0")/../lib.sh"

# As root the server runs as the user that its package made; that user must reach the data and the library.
PROGRAMS_DIR=${TMPDIR:-/tmp}
begin 300
PATH=$PATH:/usr/sbin
need mariadbd
need mariadb-install-db
need mariadb-slap
version "$(mariadbd --no-defaults --version)"

cp "$lib" "$dir/libpreload.so"
chmod 755 "$dir/libpreload.so"
lib=$dir/libpreload.so
if [ "$(id -u)" -eq 0 ]; then
    id mysql >/dev/null 2>&1 || skip "there is no user mysql to run the server as"
    need setpriv
    chown -R mysql "$dir"
    as_user='setpriv --reuid=mysql --regid=mysql --init-groups'
else
    as_user=
fi

query() {
    mariadb --no-defaults --protocol=tcp -h 127.0.0.1 -P "$port" -u root -N -B "$@"
}

start_mariadb() {
    for try in 1 2 3; do
        port=$(free_port)
        # shellcheck disable=SC2086
        serve "$dir/$mode.log" $as_user mariadbd --no-defaults --datadir="$PWD/data" --port="$port" \
            --bind-address=127.0.0.1 --socket="$PWD/socket" --pid-file="$PWD/pid" --skip-name-resolve \
            --innodb-buffer-pool-size=32M --innodb-flush-log-at-trx-commit=0 --innodb-flush-method=nosync \
            --sync-binlog=0 --log-bin=log --server-id=1
        if await 30 query -e 'select 1'; then
            return 0
        fi
        stop "$server" TERM
    done
    fail "no server after $try tries"
}

cat >"$dir/data/schema.sql" <<'SQL'
create database work;
use work;
create table account (id int primary key, balance bigint not null, filler varchar(100)) engine=InnoDB;
create table history (id bigint auto_increment primary key, account int, delta int) engine=InnoDB;
create table words (id int primary key, word varchar(40), x bigint, key (word)) engine=Aria;
insert into account select seq, 0, repeat('f', seq % 100) from seq_1_to_2000;
insert into words select seq, md5(seq), (seq * 48271) % 2147483647 from seq_1_to_60000;
delimiter //
create procedure step() begin
    declare a int default 1 + floor(rand() * 1999);
    declare d int default floor(rand() * 1000) - 500;
    start transaction;
    update account set balance = balance + d where id = a;
    insert into history (account, delta) values (a, d);
    commit;
end //
SQL
cat >"$dir/data/queries.sql" <<'SQL'
select 'balances agree', (select sum(balance) from account) = (select sum(delta) from history), count(*) from history;
checksum table words;
select md5(group_concat(word order by word separator '')) from (select word from words order by word limit 20000) as w;
select left(word, 1), count(*), max(word), sum(x % 100) from words group by 1 order by 1;
select count(*), sum(a.x % 10) from words a join words b on a.word = b.word where a.id % 3 = 0;
with recursive f (n, a) as (select 1, 7 union all select n + 1, a * 7919 % 100003 from f where n < 900) select sum(a) from f;
select json_length(json_arrayagg(json_object('w', word, 'x', x))) from words where id < 3000;
select count(*) from words where word regexp '^[0-9]+[a-f]{3}';
select row_number() over (order by word) as r, word from words order by r desc limit 3;
alter table words engine=InnoDB;
checksum table words;
check table words extended;
SQL

work() {
    # shellcheck disable=SC2086
    $as_user mariadb-install-db --no-defaults --datadir="$PWD/data" --auth-root-authentication-method=normal \
        --skip-test-db --force >install.log 2>&1
    start_mariadb
    mapped "$server"
    query <"$dir/data/schema.sql"
    query -e 'set global group_concat_max_len = 10000000'
    mariadb-slap --no-defaults --protocol=tcp -h 127.0.0.1 -P "$port" -u root --create-schema=work --no-drop \
        --query='call step()' --concurrency=8 --number-of-queries=2000 >slap.log
    query work <"$dir/data/queries.sql"
    query -e 'select 1' >>many.log
    for turn in 1 2 3 4 5 6 7 8 9 10; do
        query -e "select count(*), $turn from words" work
    done
    stop "$server" TERM
    quiet "$dir/$mode.log"
    if grep -E 'got signal|\[ERROR\]' "$dir/$mode.log" >&2; then
        fail "the server's log has an error"
    fi
}

prove mariadbd mariadbd --no-defaults --version
compare work

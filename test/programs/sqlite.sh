#!/bin/sh
# sqlite3 sorts a million rows, in memory and through a file, and builds an index over them.
# Packages: sqlite3

. "$(dirname "$0")/lib.sh"
begin 180
need sqlite3
version "$(sqlite3 --version)"

prove sqlite3 sqlite3 :memory: 'select 1'

work() {
    sqlite3 :memory: <"$dir/data/sort.sql"
    sqlite3 rows.db <"$dir/data/index.sql"
}

cat >"$dir/data/sort.sql" <<'SQL'
create table rows (key integer, word text);
with recursive step (i, x) as (
    select 1, 20240229 union all select i + 1, (x * 16807) % 2147483647 from step where i < 1000000)
insert into rows select x, printf('%x-%d', x, i % 1000) from step;
select count(*), sum(key), min(word), max(word) from rows;
select sum(key * (place % 7)) from (select key, row_number() over (order by word, key) as place from rows);
SQL
cat >"$dir/data/index.sql" <<'SQL'
create table rows (key integer, word text, bytes blob);
with recursive step (i, x) as (
    select 1, 20240229 union all select i + 1, (x * 16807) % 2147483647 from step where i < 60000)
insert into rows select x, printf('%x', x), zeroblob(x % 300) from step;
create index by_word on rows (word);
delete from rows where key % 3 = 0;
select substr(word, 1, 1) as first, count(*), sum(length(bytes)), group_concat(key % 10, '') from
    (select * from rows where word < '1' order by word limit 500) group by first;
select count(distinct substr(word, 1, 3)) from rows;
vacuum;
pragma integrity_check;
SQL

compare work
same_files rows.db

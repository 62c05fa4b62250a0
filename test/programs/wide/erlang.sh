#!/bin/sh
# Erlang: thousands of processes, binaries that they share, tables; then once more with the virtual machine's own
# allocators switched off, so that every block is malloc's.
# Packages: erlang-base

. "$(dirname "$0")/../lib.sh"
begin 240
need erl
need erlc
version "$(erl -noshell -eval 'io:format("Erlang/OTP ~s, ERTS ~s~n",
    [erlang:system_info(otp_release), erlang:system_info(version)]), halt().')"

cat >"$dir/data/work.erl" <<'ERL'
-module(work).
-export([main/0, worker/3]).

draw(X) -> X * 16807 rem 2147483647.

worker(Parent, Index, Seed) ->
    {_, Parts} = lists:foldl(
        fun(_, {X, Acc}) -> {draw(X), [binary:copy(<<X:32>>, 1 + X rem 200) | Acc]} end,
        {Seed, []}, lists:seq(1, 20)),
    Parent ! {Index, erlang:md5(iolist_to_binary(Parts)), hd(Parts)}.

main() ->
    Self = self(),
    Count = 8000,
    [spawn(?MODULE, worker, [Self, I, I * 7919 rem 100003 + 1]) || I <- lists:seq(1, Count)],
    Answers = lists:sort([receive {I, D, P} -> {I, D, byte_size(P)} end || _ <- lists:seq(1, Count)]),
    io:format("processes ~s~n", [hex(erlang:md5(term_to_binary(Answers)))]),

    Table = ets:new(table, [ordered_set, public]),
    [ets:insert(Table, {N * 48271 rem 65537, binary:copy(<<"x">>, N rem 300), [N, {N}]}) || N <- lists:seq(1, 60000)],
    [ets:delete(Table, N) || N <- lists:seq(0, 65536, 3)],
    Sum = ets:foldl(fun({K, B, _}, S) -> (S * 31 + K + byte_size(B)) rem 1000003 end, 0, Table),
    io:format("table ~p ~p~n", [ets:info(Table, size), Sum]),

    Text = iolist_to_binary([integer_to_list(N * 7919 rem 9973) ++ " " || N <- lists:seq(1, 60000)]),
    Packed = zlib:gzip(Text),
    Words = binary:split(zlib:gunzip(Packed), <<" ">>, [global]),
    Sorted = lists:usort(Words),
    io:format("words ~p ~p ~s~n", [length(Words), length(Sorted), hex(erlang:md5(Sorted))]),
    {match, Found} = re:run(Text, "\\b77\\d\\b", [global]),
    io:format("regex ~p~n", [length(Found)]),
    io:format("big ~p~n", [lists:foldl(fun(N, A) -> A * N end, 1, lists:seq(1, 2000)) rem 1000000007]),
    erlang:garbage_collect(),
    halt(0).

hex(Binary) -> [io_lib:format("~2.16.0b", [B]) || <<B>> <= Binary].
ERL

work() {
    erlc +deterministic -o . "$dir/data/work.erl"
    for flags in '' '+Mea min'; do
        # shellcheck disable=SC2086
        erl $flags +S 4:4 -noshell -pa . -s work main
    done
}

ERL_CRASH_DUMP=/dev/null
export ERL_CRASH_DUMP
prove beam.smp erl -noshell -eval 'halt().'
compare work
same_files work.beam

#!/bin/sh
# bash: arrays, associative arrays, strings, functions, subshells, pipelines, traps and here-documents.
# Packages: bash

. "$(dirname "$0")/lib.sh"
begin 120
need bash
version "$(bash --version)"

prove bash bash -c :

cat >"$dir/data/work.bash" <<'BASH'
set -e
declare -A table
declare -a list
x=20240229
for ((i = 0; i < 20000; i++)); do
    ((x = x * 16807 % 2147483647, 1))
    table[key$((x % 3000))]+=$((x % 10))
    list+=("item $x")
    if ((x % 5 == 0)); then
        unset "table[key$((x % 2999))]"
    fi
done
echo "${#table[@]} ${#list[@]}"
for key in "${!table[@]}"; do echo "$key ${table[$key]}"; done | sort | sha256sum
text=${list[*]}
text=${text//item/thing}
echo "${#text} ${text:1000:60}"
[[ $text =~ thing\ ([0-9]+)\ thing ]] && echo "${BASH_REMATCH[1]}"
fibonacci() {
    local n=$1
    if ((n < 2)); then echo "$n"; else echo $(($(fibonacci $((n - 1))) + $(fibonacci $((n - 2))))); fi
}
fibonacci 9
mapfile -t sorted < <(printf '%s\n' "${list[@]:0:5000}" | sort -u)
echo "${#sorted[@]} ${sorted[0]}"
coproc upper { tr a-z A-Z; }
echo "through a coprocess" >&"${upper[1]}"
eval "exec ${upper[1]}>&-"
cat <&"${upper[0]}"
for i in {1..20}; do (echo "$i" >"part.$i") & done
wait
cat part.{1..20} | paste -sd+
trap 'echo "trapped"' USR1
kill -USR1 $$
printf -v padded '%0500d' 7
echo "${#padded}" "$(printf '%q' "a b'c")" "${padded@Q}" | sha256sum
cat <<<"$(for i in {1..3000}; do echo "$i $padded"; done)" | sha256sum
BASH

compare bash "$dir/data/work.bash"

#!/bin/sh
# python3 with threads, with processes forked while threads run, and with spawned processes; then once more with every
# object of the interpreter in malloc instead of in its own arenas.
# Packages: python3

. "$(dirname "$0")/lib.sh"
begin 240
find_python
version "$("$python" --version)"

prove "$(basename "$python")" "$python" -c pass

PYTHONHASHSEED=0
PYTHONDONTWRITEBYTECODE=1
export PYTHONHASHSEED PYTHONDONTWRITEBYTECODE

compare "$python" "$here/python.py"

PYTHONMALLOC=malloc
export PYTHONMALLOC
compare "$python" "$here/python.py"

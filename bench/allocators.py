"""Which allocators there are to compare, and one run of a program on one of them.

Shared by run, compare and count. An allocator is a pair of a name and a library to preload; the C library's own is
the one whose library is empty.
"""

import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

# Where Debian 12 puts the peers. A pattern, because the folder's name depends on the machine and on the version.
DEBIAN = [
    ("jemalloc", "/usr/lib/*-linux-gnu/libjemalloc.so.2"),
    ("mimalloc", "/usr/lib/*-linux-gnu/libmimalloc.so.2.*"),
    ("tcmalloc", "/usr/lib/*-linux-gnu/libtcmalloc_minimal.so.4"),
    ("scudo", "/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.scudo_standalone-%s.so" % os.uname().machine),
]


def fail(text):
    sys.stderr.write("%s: %s\n" % (os.path.basename(sys.argv[0]), text))
    sys.exit(1)


def parser(text):
    """A parser of options whose help is the script's own head: a sentence, the usage, the rest."""
    sentence, usage, rest = text.split("\n\n", 2)
    return argparse.ArgumentParser(usage=usage.strip(), description=sentence, epilog=rest,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)


def parse(words):
    """NAME=LIB words into a list of pairs; NAME= is the C library's own malloc."""
    found = []
    for word in words:
        name, equals, library = word.partition("=")
        if not equals or not name:
            fail("%s: not of the form NAME=LIBRARY" % word)
        if library and not os.path.exists(library):
            fail("%s: there is no such library" % library)
        if name in (known for known, _ in found):
            fail("%s is named twice" % name)
        found.append((name, os.path.abspath(library) if library else ""))
    return found


def installed():
    """The C library's malloc and those peers that are installed."""
    found = [("glibc", "")]
    for name, pattern in DEBIAN:
        matches = sorted(glob.glob(pattern))
        if matches:
            found.append((name, matches[-1]))
    return found


def ours():
    """pamalloc, if PAMALLOC_LIB names it or it is built in build/."""
    library = os.environ.get("PAMALLOC_LIB") or os.path.join(HERE, "..", "build", ".libs", "libpamalloc.so")
    return [("pamalloc", os.path.abspath(library))] if os.path.exists(library) else []


def folder_of_programs(given=None):
    """The folder where the bench programs were built."""
    for folder in [given, os.environ.get("BENCH_BIN"), "bench", "build/bench",
                   os.path.join(HERE, "..", "build", "bench"), HERE]:
        if folder and os.access(os.path.join(folder, "measure"), os.X_OK):
            return os.path.abspath(folder)
    fail("the bench programs are not built: run make bench, or name their folder with --bin")


def execute(programs, library, command, stdin=None, stdout=subprocess.PIPE, stderr=None, preparation=()):
    """One run. Returns what `measure` wrote, with the standard output as "out".

    `preparation` is put before `measure`, for limits and the like.
    """
    with tempfile.NamedTemporaryFile(prefix="measure-") as result:
        measure = [os.path.join(programs, "measure"), "-l", library, "-o", result.name]
        done = subprocess.run(list(preparation) + measure + list(command), stdin=stdin, stdout=stdout, stderr=stderr,
                              check=False)
        text = result.read()
    if not text:
        fail("%s could not be started" % command[0])
    figures = json.loads(text)
    figures["out"] = done.stdout.decode(errors="replace") if done.stdout is not None else ""
    return figures


def calls(library, command):
    """The system calls of a run, by name. Includes those by which the program and its libraries are loaded."""
    with tempfile.NamedTemporaryFile(prefix="calls-") as result:
        strace = ["strace", "-f", "-c", "-q", "-o", result.name]
        strace += ["-E", "LD_PRELOAD=" + library if library else "LD_PRELOAD"]
        subprocess.run(strace + list(command), stdout=subprocess.DEVNULL, check=False)
        lines = result.read().decode().splitlines()
    counted = {}
    for line in lines:
        words = line.split()
        # % time, seconds, usecs/call, calls, errors (may be missing), name
        if len(words) >= 5 and words[3].isdigit() and words[-1] != "total":
            counted[words[-1]] = int(words[3])
    return counted


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2

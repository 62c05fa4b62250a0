#!/bin/sh
# pamalloc for riscv64: built by Debian's cross compiler, run by qemu in user mode.
# Packages: gcc-riscv64-linux-gnu qemu-user
. "$(dirname "$0")/lib.sh"
emulated riscv64

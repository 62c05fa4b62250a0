#!/bin/sh
# pamalloc for aarch64: built by Debian's cross compiler, run by qemu in user mode.
# Packages: gcc-aarch64-linux-gnu qemu-user
. "$(dirname "$0")/lib.sh"
emulated aarch64

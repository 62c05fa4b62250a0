#!/bin/sh
# perl: hashes, strings, regular expressions, interpreter threads, forked children.
# Packages: perl

. "$(dirname "$0")/lib.sh"
begin 180
need perl
version "$(perl -e 'print "$^V\n"')"

prove perl perl -e 1

PERL_HASH_SEED=0
export PERL_HASH_SEED

compare perl "$here/perl.pl"

#!/bin/sh
# node: worker threads, buffers that change their thread, JSON, compression in its thread pool.
# Packages: nodejs

. "$(dirname "$0")/lib.sh"
begin 180
need node
version "$(node --version)"

prove node node -e 0

compare node "$here/node.js"

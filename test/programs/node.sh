#!/bin/sh
# node: worker threads, buffers that change their thread, JSON, compression in its thread pool.

. "$(dirname "$0")/lib.sh"
begin 180
need node nodejs
version "$(node --version)"

prove node node -e 0

compare node "$here/node.js"

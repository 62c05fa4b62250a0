#!/bin/sh
# OpenJDK compiles and runs a threaded program: the classes must be equal byte for byte. Then each other collector that
# a small heap allows.
# Packages: openjdk-17-jdk-headless

. "$(dirname "$0")/lib.sh"
begin 240
need javac
need java
version "$(java -version 2>&1)"

cp "$here/Threads.java" "$dir/data/Threads.java"

prove java java -Xmx64m -version

work() {
    javac -J-Xmx200m -d . "$dir/data/Threads.java"
    for collector in Serial Parallel G1; do
        echo "$collector"
        java -Xmx200m "-XX:+Use${collector}GC" -cp . Threads
    done
}

compare work
same_files Threads.class

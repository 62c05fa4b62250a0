#!/bin/sh
# cargo and rustc build, test and run a generated project of two crates without a network.
# Packages: cargo rustc

. "$(dirname "$0")/../lib.sh"
begin 300
# The distribution's own: what comes first in PATH may be a wrapper.
if [ -x /usr/bin/cargo ]; then
    PATH=/usr/bin:$PATH
fi
need cargo
need rustc
version "$(cargo --version), $(rustc --version)"

mkdir -p "$dir/data/project/src" "$dir/data/project/engine/src"
cat >"$dir/data/project/Cargo.toml" <<'TOML'
[package]
name = "driver"
version = "0.1.0"
edition = "2021"

[dependencies]
engine = { path = "engine" }
TOML
cat >"$dir/data/project/engine/Cargo.toml" <<'TOML'
[package]
name = "engine"
version = "0.1.0"
edition = "2021"
TOML
{
    echo 'use std::collections::BTreeMap;'
    awk 'BEGIN { for (i = 0; i < 120; i++) {
        printf "#[derive(Clone, Debug, Default, PartialEq)]\npub struct Part%d { pub key: u64, pub list: Vec<String> }\n", i
        printf "impl Part%d {\n    pub fn grow(&mut self, n: u64) -> usize {\n", i
        printf "        for k in 0..n { self.list.push(format!(\"{}-{}\", k, self.key)); }\n"
        printf "        self.list.iter().map(|s| s.len()).sum()\n    }\n}\n" } }'
    echo 'pub fn total() -> BTreeMap<String, usize> {'
    echo '    let mut map = BTreeMap::new();'
    awk 'BEGIN { for (i = 0; i < 120; i++) {
        printf "    map.insert(\"part%d\".to_string(), Part%d { key: %d, ..Default::default() }.grow(%d));\n", i, i, i, i } }'
    echo '    map'
    echo '}'
    echo '#[test]'
    echo 'fn grows() { assert_eq!(total().len(), 120); }'
} >"$dir/data/project/engine/src/lib.rs"
cat >"$dir/data/project/src/main.rs" <<'RUST'
use std::sync::mpsc;
use std::thread;

fn main() {
    let (sender, receiver) = mpsc::channel();
    for index in 0..8 {
        let sender = sender.clone();
        thread::spawn(move || {
            let lines: Vec<String> = (0..20000).map(|n| format!("{}", n * index)).collect();
            sender.send((index, lines)).unwrap();
        });
    }
    drop(sender);
    let mut sums: Vec<(usize, usize)> =
        receiver.iter().map(|(index, lines)| (index, lines.iter().map(String::len).sum())).collect();
    sums.sort();
    println!("{:?} {}", sums, engine::total().values().sum::<usize>());
}
RUST

work() {
    cp -r "$dir/data/project" project
    cd project
    CARGO_HOME=$PWD/../home
    CARGO_INCREMENTAL=0
    export CARGO_HOME CARGO_INCREMENTAL
    cargo build --offline --quiet
    target/debug/driver
    cargo build --offline --quiet --release
    target/release/driver
    cargo test --offline --quiet --workspace 2>&1 | grep -E '^test result' | sed 's/; finished.*//'
    cargo metadata --offline --format-version 1 | wc -l
}

prove rustc rustc --version
prove cargo cargo --version
compare work

#!/bin/sh
# git on a history of some thousand objects: import, log, gc, blame, fsck, clone.
# Packages: git

. "$(dirname "$0")/lib.sh"
begin 180
need git
version "$(git --version)"

GIT_CONFIG_NOSYSTEM=1
GIT_AUTHOR_DATE='1700000000 +0000'
GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE
export GIT_CONFIG_NOSYSTEM GIT_AUTHOR_DATE GIT_COMMITTER_DATE
git config --global user.name 'A. Nother'
git config --global user.email nobody@example.org
git config --global init.defaultBranch main
git config --global gc.autoDetach false
git config --global protocol.file.allow always
git config --global advice.detachedHead false

# 600 commits, each of which changes a few of 80 files in ten folders: some 4,000 objects.
awk 'function draw(n) { x = (x * 16807) % 2147483647; return x % n }
BEGIN {
    x = 20240229
    for (c = 1; c <= 600; c++) {
        printf "commit refs/heads/main\ncommitter A. Nother <nobody@example.org> %d +0000\n", 1700000000 + c * 60
        message = "change " c; printf "data %d\n%s\n", length(message), message
        for (t = 0; t < 4; t++) {
            f = draw(80); body = ""
            for (k = 0; k < 4; k++) {
                grown[f] = grown[f] "line " c " " draw(1000000) "\n"
            }
            body = grown[f]
            printf "M 100644 inline folder%d/file%d.txt\ndata %d\n%s\n", f % 10, f, length(body), body
        }
    }
}' >"$dir/data/history"

prove git git --version

work() {
    git init -q -b main repository
    git -C repository fast-import --quiet --force <"$dir/data/history"
    git -C repository reset -q --hard main
    git -C repository rev-parse HEAD
    git -C repository log --stat -p | sha256sum
    git -C repository log --format='%h %s' --follow -- folder1/file1.txt
    git -C repository blame folder1/file1.txt | sha256sum
    git -C repository grep -c 'line 5' | sort | sha256sum
    git -C repository checkout -q -b side HEAD~100
    echo side >repository/side.txt
    git -C repository add side.txt
    git -C repository commit -q -m 'a side change'
    git -C repository merge -q -m merged main
    git -C repository rev-parse HEAD
    git -C repository gc --quiet --aggressive
    git -C repository fsck --full --strict
    git -C repository count-objects -v | grep -E '^(count|in-pack|packs|garbage):'
    git clone -q --no-local repository copy
    git -C copy rev-parse HEAD
    git -C copy fsck --full
    git -C copy archive HEAD | sha256sum
    git -C copy log --oneline | wc -l
    git -C copy diff --stat HEAD~50
}

compare work

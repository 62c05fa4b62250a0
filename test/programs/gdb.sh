#!/bin/sh
# gdb itself under the library, with a program under it that has the library too: breakpoints, a backtrace, expressions,
# a call into the program (which allocates), a watchpoint.
# Packages: gdb gcc libc6-dev

. "$(dirname "$0")/lib.sh"
begin 120
need gdb
need gcc
version "$(gdb --version)"

cat >"$dir/data/tree.c" <<'C'
#include <stdio.h>
#include <stdlib.h>

struct node {
    struct node *left, *right;
    int key;
};

static int made;

struct node *grow_tree(int key)
{
    struct node *node = malloc(sizeof *node);
    node->key = key;
    node->left = key > 1 ? grow_tree(key / 2) : NULL;
    node->right = key > 1 ? grow_tree(key / 3) : NULL;
    made++;
    return node;
}

int main(void)
{
    struct node *root = grow_tree(50);
    printf("%d of %d\n", root->key, made);
    return 0;
}
C
gcc -g -O0 -o "$dir/data/tree" "$dir/data/tree.c" || fail "the program under the debugger does not compile"

prove gdb gdb -nx -batch -ex 'print 1'

work() {
    gdb -nx -batch -ex 'set startup-with-shell off' -ex 'set debuginfod enabled off' -ex 'break grow_tree if key == 6' \
        -ex run -ex backtrace -ex 'info args' -ex 'up 2' -ex 'info args' -ex delete \
        -ex 'watch made if made == 5' -ex continue -ex 'print made' \
        -ex delete -ex 'break tree.c:25' -ex continue -ex 'print *root->left' -ex 'print grow_tree(9)->right->key' \
        -ex 'print $_strlen("four")' -ex 'python print(sum(len(s.name) for s in gdb.selected_frame().block()))' \
        -ex continue "$dir/data/tree" </dev/null
    gdb -nx -batch -ex 'info functions grow_tree' -ex 'info types node' -ex 'ptype struct node' -ex 'disassemble main' \
        "$dir/data/tree"
}

# Addresses of blocks are the library's to choose.
noise='s/0x[0-9a-f]*/ADDRESS/g; s/process [0-9]*/process N/g'
compare work

#!/bin/sh
# php: its own memory manager, and once more with every block in malloc (USE_ZEND_ALLOC=0). Option -n keeps php from
# opening modules: it opens them with RTLD_DEEPBIND, which gives them the C library's malloc and free under any preload.
# Packages: php-cli

. "$(dirname "$0")/lib.sh"
begin 120
need php
version "$(php --version)"

prove php php -n -r ';'

cat >"$dir/data/work.php" <<'PHP'
<?php
mt_srand(7);
function digest($thing) { return substr(hash('sha256', serialize($thing)), 0, 16); }

class Node { public $children = []; public $parent; public function __construct(public string $name) {} }

$kept = [];
for ($step = 0; $step < 150000; $step++) {
    $key = mt_rand(0, 3000);
    if (isset($kept[$key]) && mt_rand(0, 1)) {
        unset($kept[$key]);
    } else {
        $kept[$key] = str_repeat('k', mt_rand(1, 1 << mt_rand(0, 12)));
    }
}
ksort($kept);
echo 'hash ', digest(array_map('strlen', $kept)), "\n";

// Cycles that the collector has to find.
for ($turn = 0; $turn < 20; $turn++) {
    $root = new Node('root');
    for ($i = 0; $i < 1500; $i++) {
        $node = new Node("node$i");
        $node->parent = $root;
        $root->children[] = $node;
    }
}
unset($root, $node);
echo 'cycles ', gc_collect_cycles() > 0 ? 'collected' : 'kept', "\n";

$words = [];
for ($i = 0; $i < 60000; $i++) { $words[] = base_convert((string) ($i * 48271 % 99991), 10, 36); }
sort($words);
$text = implode(' ', $words);
echo 'words ', digest($words), ' ', digest(array_count_values(str_split($text))), "\n";
echo 'regex ', digest(preg_replace_callback('/[a-f]+/', fn ($m) => strtoupper(strrev($m[0])), $text)), "\n";
echo 'json ', digest(json_decode(json_encode(array_chunk($words, 37)), true)), "\n";
function numbers($n) { for ($i = 0; $i < $n; $i++) { yield $i => str_repeat('x', $i % 300); } }
$sum = 0;
foreach (numbers(100000) as $i => $x) { $sum += strlen($x) * ($i % 3); }
echo "generator $sum\n";
PHP

compare php -n "$dir/data/work.php"

USE_ZEND_ALLOC=0
export USE_ZEND_ALLOC
compare php -n "$dir/data/work.php"

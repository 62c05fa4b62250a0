#!/bin/sh
# php with its modules, which it opens with RTLD_DEEPBIND: they look for malloc in their own libraries first, in the C
# library's that is, and hand blocks to php and back.
# Packages: php-cli

. "$(dirname "$0")/../lib.sh"
begin 120
need php
version "$(php --version)"

cat >"$dir/data/work.php" <<'PHP'
<?php
echo count(get_loaded_extensions()), "\n";
$words = [];
for ($i = 0; $i < 20000; $i++) { $words[] = base_convert((string) ($i * 48271 % 99991), 10, 36); }
echo ctype_alnum(implode('', $words)) ? 'alphanumeric' : 'other', "\n";
echo extension_loaded('iconv') ? md5(iconv('UTF-8', 'UTF-16', implode(' ', $words))) : '', "\n";
echo extension_loaded('Phar') ? count(array_filter(stream_get_wrappers(), fn ($w) => $w === 'phar')) : '', "\n";
$reflection = new ReflectionClass('ArrayObject');
echo count($reflection->getMethods()), "\n";
PHP

compare php "$dir/data/work.php"

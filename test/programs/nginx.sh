#!/bin/sh
# nginx with two workers under a load of eight clients: files, ranges, compression, a listing, server-side includes and
# a proxy to itself; in the middle of it the workers are replaced.
# Packages: nginx python3

. "$(dirname "$0")/lib.sh"
begin 180
PATH=$PATH:/usr/sbin
need nginx
find_python
version "$(nginx -v 2>&1)"

mkdir -p "$dir/data/www/list"
for n in 0 1 2 3 4 5 6 7; do
    { echo '<html>'; lines $((n * 40 + 2)); echo '</html>'; } >"$dir/data/www/$n.html"
    touch -d 2024-01-01 "$dir/data/www/list/file$n"
done
lines 30000 >"$dir/data/www/big.txt"
echo '<!--#include virtual="/1.html" --> <!--#include virtual="/proxy/2.html" -->' >"$dir/data/www/ssi.shtml"

configure() {
    mkdir -p state
    user=
    if [ "$(id -u)" -eq 0 ]; then
        user='user root;'
    fi
    cat >nginx.conf <<CONF
$user
worker_processes 2;
daemon off;
pid $PWD/state/pid;
error_log $PWD/state/error.log notice;
events { worker_connections 256; }
http {
    types { text/html html shtml; text/plain txt; }
    access_log $PWD/state/access.log;
    client_body_temp_path $PWD/state/body;
    proxy_temp_path $PWD/state/proxy;
    fastcgi_temp_path $PWD/state/fastcgi;
    uwsgi_temp_path $PWD/state/uwsgi;
    scgi_temp_path $PWD/state/scgi;
    keepalive_requests 10000;
    server {
        listen 127.0.0.1:$port;
        root $dir/data/www;
        ssi on;
        gzip on;
        gzip_types text/plain;
        location /list/ { autoindex on; }
        location /proxy/ { proxy_pass http://127.0.0.1:$port/; proxy_set_header Accept-Encoding ''; }
    }
}
CONF
}

fetch() {
    "$python" -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1]).read()' "http://127.0.0.1:$port/0.html"
}

start_nginx() {
    for try in 1 2 3; do
        port=$(free_port)
        configure
        serve "$dir/$mode.log" nginx -e state/error.log -p "$PWD" -c "$PWD/nginx.conf"
        if await 10 fetch; then
            return 0
        fi
        stop "$server" QUIT
    done
    fail "no server after $try tries"
}

workers_changed() {
    now=$(children "$server")
    [ "$(echo "$now" | wc -w)" -eq 2 ] || return 1
    for worker in $first; do
        case " $(echo "$now" | tr '\n' ' ') " in
        *" $worker "*) return 1 ;;
        esac
    done
}

work() {
    start_nginx
    mapped "$server"
    first=$(children "$server")
    mapped_children "$server"
    "$python" "$here/nginx.py" "$port" 400
    kill -HUP "$server"
    await 10 workers_changed
    mapped_children "$server"
    "$python" "$here/nginx.py" "$port" 150
    stop "$server" QUIT
    wc -l <state/access.log
    quiet "$dir/$mode.log"
    quiet state/error.log
    if grep -E '\[(crit|alert|emerg)\]|exited on signal' state/error.log >&2; then
        fail "the error log has an error"
    fi
}

mkdir -p "$dir/preloaded/state"
prove nginx nginx -e stderr -v
compare work

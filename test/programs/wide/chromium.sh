#!/bin/sh
# Chromium without a window renders a page of this machine. It has an allocator of its own, which comes first: the
# library is in the process and must not be in the way.
# Packages: chromium

. "$(dirname "$0")/../lib.sh"
begin 240
need chromium
version "$(chromium --version 2>/dev/null)"

cat >"$dir/data/page.html" <<'HTML'
<!doctype html>
<title>page</title>
<style>body { font: 16px sans-serif } .b { display: inline-block; width: 20px; height: 20px; border-radius: 4px }</style>
<canvas id="c" width="300" height="200"></canvas>
<ul id="list"></ul>
<script>
let x = 20240229;
const draw = (n) => { x = x * 16807 % 2147483647; return x % n; };
const list = document.getElementById('list');
for (let i = 0; i < 400; i++) {
    const item = document.createElement('li');
    item.textContent = 'k'.repeat(draw(30)) + draw(1000);
    item.style.color = `rgb(${draw(256)}, ${draw(256)}, ${draw(256)})`;
    list.appendChild(item);
}
const context = document.getElementById('c').getContext('2d');
for (let i = 0; i < 300; i++) {
    context.fillStyle = `hsl(${draw(360)}, 80%, 50%)`;
    context.fillRect(draw(300), draw(200), draw(40), draw(40));
}
const kept = new Map();
for (let i = 0; i < 200000; i++) { kept.set(draw(5000), new Array(draw(20)).fill(i)); }
const bytes = context.getImageData(0, 0, 300, 200).data;
let sum = 0;
for (const byte of bytes) { sum = (sum * 31 + byte) % 1000003; }
document.title = `${kept.size} ${[...kept.values()].reduce((s, a) => s + a.length, 0)} ${sum}`;
const made = new Worker(URL.createObjectURL(new Blob(['postMessage(JSON.stringify([...Array(9999).keys()]).length)'])));
made.onmessage = (message) => { list.firstChild.textContent = 'worker ' + message.data; };
</script>
HTML

browser() {
    chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --disable-extensions \
        --disable-background-networking --disable-component-update --disable-crash-reporter \
        --user-data-dir="$PWD/profile" "$@" 2>>messages
}

page() {
    browser --virtual-time-budget=10000 --dump-dom "file://$dir/data/page.html" | tee dom.html | sha256sum
    sed -n 's/.*<title>\(.*\)<.title>.*/\1/p' dom.html
    grep -o '>worker [0-9]*<' dom.html
    browser --virtual-time-budget=10000 --hide-scrollbars --window-size=600,800 --screenshot="$PWD/page.png" \
        "file://$dir/data/page.html"
    quiet messages
}

running() {
    grep -q 'DevTools listening' devtools.log && [ -n "$(children "$server")" ]
}

# The browser and its children, while they run.
while_running() {
    serve devtools.log chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
        --disable-extensions --disable-crash-reporter --user-data-dir="$PWD/second" --remote-debugging-port=0 \
        --remote-debugging-address=127.0.0.1 "file://$dir/data/page.html"
    await 30 running || fail "the browser did not start"
    mapped "$server"
    mapped_children "$server"
    kill -TERM "$server"
    wait "$server" 2>/dev/null || true
    echo "the library is where it should be"
}

compare page
same_files dom.html page.png
compare while_running

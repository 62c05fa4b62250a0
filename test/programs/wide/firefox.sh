#!/bin/sh
# Firefox without a window renders a page of this machine into a picture. It has an allocator of its own, which comes
# first: the library is in the process and must not be in the way.
# Packages: firefox-esr

. "$(dirname "$0")/../lib.sh"
begin 300
need firefox-esr
version "$(firefox-esr --version 2>/dev/null)"

cat >"$dir/data/page.html" <<'HTML'
<!doctype html>
<title>page</title>
<body style="margin: 0; background: #eee">
<canvas id="c" width="500" height="400"></canvas>
<script>
let x = 20240229;
const draw = (n) => { x = x * 16807 % 2147483647; return x % n; };
const context = document.getElementById('c').getContext('2d');
const kept = new Map();
for (let i = 0; i < 200000; i++) { kept.set(draw(5000), new Array(draw(20)).fill(i)); }
for (let i = 0; i < kept.size / 10; i++) {
    context.fillStyle = `rgb(${draw(256)}, ${draw(256)}, ${kept.get(i) ? kept.get(i).length * 12 : 0})`;
    context.fillRect(draw(500), draw(400), draw(60), draw(60));
}
</script>
HTML

work() {
    mkdir profile
    cat >profile/user.js <<'PREFS'
user_pref("app.normandy.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("toolkit.telemetry.enabled", false);
user_pref("layers.acceleration.disabled", true);
PREFS
    serve messages firefox-esr --headless --no-remote --profile "$PWD/profile" --window-size=600,500 \
        --screenshot "$PWD/page.png" "file://$dir/data/page.html"
    mapped_children "$server"
    mapped "$server"
    wait "$server"
    sha256sum page.png
    quiet messages
}

MOZ_CRASHREPORTER_DISABLE=1
export MOZ_CRASHREPORTER_DISABLE
compare work
same_files page.png

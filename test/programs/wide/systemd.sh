#!/bin/sh
# systemd's tools that need no running systemd: units verified and enabled below another root, calendars, users,
# temporary files, hardware database, journal.
# Packages: systemd

. "$(dirname "$0")/../lib.sh"
begin 180
need systemd-analyze
version "$(systemctl --version)"

mkdir -p "$dir/data/root/etc/systemd/system" "$dir/data/root/usr/lib/sysusers.d" "$dir/data/root/usr/lib/tmpfiles.d"
for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    cat >"$dir/data/root/etc/systemd/system/unit$n.service" <<UNIT
[Unit]
Description=Unit $n
After=unit$((n - 1)).service
[Service]
ExecStart=/bin/true $n
ProtectSystem=strict
[Install]
WantedBy=multi-user.target
UNIT
done
cp "$dir/data/root/etc/systemd/system/unit1.service" "$dir/data/lonely.service"
sed -i /After/d "$dir/data/lonely.service"
echo 'u pamtest 5000 "A test" /nonexistent' >"$dir/data/root/usr/lib/sysusers.d/test.conf"
for n in 1 2 3 4 5; do
    echo "d /var/test$n 0755 root root"
    echo "f /var/test$n/file 0644 root root - content $n"
done >"$dir/data/root/usr/lib/tmpfiles.d/test.conf"

work() {
    cp -r "$dir/data/root" root
    systemd-analyze calendar --iterations=200 --base-time='2024-01-01 00:00:00 UTC' 'Mon,Fri *-*-1..7 0/2:30:00' |
        grep -v 'From now'
    systemd-analyze timespan 3month 4d 1.5h
    systemd-analyze unit-paths --user | sed "s|$PWD||" | wc -l
    systemd-analyze syscall-filter | sha256sum
    systemd-analyze verify --man=no "$dir/data/lonely.service" 2>&1 | grep -c lonely || true
    systemd-analyze security --offline=yes --no-pager "$dir/data/lonely.service" | tail -n 2
    for n in 1 5 9 20; do
        systemctl --root="$PWD/root" enable "unit$n.service" 2>&1 | sed "s|$PWD||g"
    done
    systemctl --root="$PWD/root" list-unit-files --no-pager --no-legend
    systemd-sysusers --root="$PWD/root" --dry-run 2>/dev/null || true
    systemd-sysusers --root="$PWD/root" 2>&1
    grep pamtest root/etc/passwd
    systemd-tmpfiles --root="$PWD/root" --create --exclude-prefix=/dev 2>&1
    cat root/var/test3/file
    systemd-escape --path '/a path/with-strange äöü'
    systemd-delta --no-pager 2>/dev/null | tail -n 1
    systemd-id128 show --no-pager | sha256sum
    systemd-path --suffix=x system-binaries
    journalctl --no-pager --file=nothing 2>&1 | tail -n 1
}

prove systemd-analyze systemd-analyze timespan 1h
prove systemctl systemctl --version
compare work

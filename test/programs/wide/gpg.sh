#!/bin/sh
# gpg and its agent: a key, encryption, signatures, a listing.
# Packages: gnupg

. "$(dirname "$0")/../lib.sh"

# The path of the agent's socket must be short.
PROGRAMS_DIR=${TMPDIR:-/tmp}
begin 120
need gpg
need gpg-agent
need gpgconf
version "$(gpg --version)"

lines 100000 >"$dir/data/lines"

g() {
    gpg --homedir "$PWD/g" --batch --quiet --no-tty --pinentry-mode loopback --passphrase secret --s2k-count 65536 \
        --faked-system-time 20240301T120000! --trust-model always "$@"
}

agent_of() {
    GNUPGHOME=$PWD/g gpg-connect-agent --homedir "$PWD/g" 'getinfo pid' /bye | sed -n 's/^D //p'
}

work() {
    mkdir -m 700 g
    g --quick-generate-key 'A. Nother <nobody@example.org>' ed25519 sign never
    g --quick-add-key "$(g --list-keys --with-colons | sed -n 's/^fpr:*\([0-9A-F]*\):/\1/p')" cv25519 encr never
    mapped "$(agent_of)"
    echo "$(agent_of)" >>"$dir/servers"
    g --output secret --recipient nobody@example.org --encrypt "$dir/data/lines"
    g --decrypt secret | sha256sum
    g --output symmetric --symmetric --cipher-algo AES256 "$dir/data/lines"
    g --decrypt symmetric | sha256sum
    g --output signature --detach-sign "$dir/data/lines"
    g --verify signature "$dir/data/lines" 2>&1 | grep -c 'Good signature'
    g --clearsign <"$dir/data/lines" | g --decrypt 2>/dev/null | sha256sum
    g --armor --export | g --import-options show-only --import --with-colons | grep -c '^sub:'
    g --list-packets secret | grep -c packet
    g --print-md SHA512 <"$dir/data/lines"
    gpgconf --homedir "$PWD/g" --kill all
}

prove gpg gpg --version
prove gpg-agent gpg-agent --version
noise='/created directory/d; /revocation certificate stored/d'
compare work

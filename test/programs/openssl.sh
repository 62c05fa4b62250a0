#!/bin/sh
# openssl: digests, ciphers, keys, a certificate, a signature and a handshake with itself.
# Packages: openssl

. "$(dirname "$0")/lib.sh"
begin 120
need openssl
version "$(openssl version)"

prove openssl openssl version

lines 200000 >"$dir/data/lines"

handshake() {
    openssl s_client -connect "127.0.0.1:$port" -CAfile certificate.pem -verify_return_error </dev/null
}

work() {
    for algorithm in sha256 sha512 sha3-256 blake2b512 md5; do
        openssl dgst -r -$algorithm "$dir/data/lines" | cut -d' ' -f1
    done
    openssl enc -aes-256-cbc -pbkdf2 -iter 1000 -S 0011223344556677 -pass pass:secret -in "$dir/data/lines" -out secret
    openssl enc -d -aes-256-cbc -pbkdf2 -iter 1000 -S 0011223344556677 -pass pass:secret -in secret | sha256sum
    openssl genpkey -quiet -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem 2>/dev/null ||
        openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem
    openssl req -x509 -new -key key.pem -subj /CN=127.0.0.1 -days 3 -set_serial 7 -out certificate.pem
    openssl x509 -in certificate.pem -noout -subject -serial
    openssl dgst -sha256 -sign key.pem -out signature "$dir/data/lines"
    openssl pkey -in key.pem -pubout -out public.pem
    openssl dgst -sha256 -verify public.pem -signature signature "$dir/data/lines"
    openssl asn1parse -in certificate.pem | wc -l
    port=$(free_port)
    serve "$dir/$mode.log" openssl s_server -accept "127.0.0.1:$port" -key key.pem -cert certificate.pem -www
    await 10 handshake || fail "no handshake"
    mapped "$server"
    for turn in 1 2 3 4 5 6 7 8 9 10; do
        handshake 2>/dev/null | grep -E 'Verify return code' | head -n 1
    done
    kill -TERM "$server"
    wait "$server" 2>/dev/null || true
    quiet "$dir/$mode.log"
}

compare work
same_files secret

"""nginx.py PORT REQUESTS: eight threads over kept connections fetch every file again and again; prints the answers."""

import collections
import gzip
import hashlib
import http.client
import sys
import threading

PATHS = ["/%d.html" % n for n in range(8)] + ["/big.txt", "/missing", "/list/", "/proxy/3.html", "/ssi.shtml"]


def client(index, port, requests, seen):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for turn in range(requests):
        path = PATHS[(turn + index) % len(PATHS)]
        headers = {"Accept-Encoding": "gzip"} if turn % 2 == 0 else {}
        if path == "/big.txt" and turn % 3 == 0:
            headers["Range"] = "bytes=1000-200000,300000-300999"
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionError):
            # A worker that is about to end closes a kept connection between two requests.
            connection.close()
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
        body = answer.read()
        if answer.getheader("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if answer.status == 206:
            body = str(len(body)).encode()
        seen[path, answer.status, hashlib.sha256(body).hexdigest()[:16]] += 1
    connection.close()


def main():
    port, requests = int(sys.argv[1]), int(sys.argv[2])
    counts = [collections.Counter() for _ in range(8)]
    threads = [threading.Thread(target=client, args=(i, port, requests, counts[i])) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for key, count in sorted(sum(counts, collections.Counter()).items()):
        print(*key, count)


main()

"""Threads, processes and the interpreter's own containers; prints digests that depend on the seed alone."""

import bz2
import collections
import concurrent.futures
import hashlib
import json
import multiprocessing
import pickle
import random
import re
import sys
import threading
import zlib


def digest(thing):
    return hashlib.sha256(repr(thing).encode()).hexdigest()[:16]


def churn(seed):
    """Objects of many sizes, some of which live long while others go at once."""
    draw = random.Random(seed)
    kept = collections.OrderedDict()
    total = 0
    for step in range(9000):
        key = draw.randrange(3000)
        size = 1 << draw.randrange(13)
        if key in kept and draw.random() < 0.5:
            total += len(kept.pop(key))
        else:
            kept[key] = bytearray(draw.randrange(1, size + 1))
        if step % 3000 == 2999:
            packed = zlib.compress(b"".join(bytes(part) for part in kept.values()))
            total += len(zlib.decompress(packed))
    return total, len(kept)


def words(seed):
    draw = random.Random(seed)
    text = " ".join("%x" % draw.getrandbits(draw.randrange(4, 40)) for _ in range(12000))
    count = collections.Counter(re.findall(r"[a-f]+", text))
    tree = json.loads(json.dumps({key: [value, key * 3] for key, value in sorted(count.items())}))
    packed = bz2.compress(pickle.dumps(tree))
    return digest(sorted(pickle.loads(bz2.decompress(packed)).items()))


def big(seed):
    number = pow(seed + 3, 40000) + random.Random(seed).getrandbits(100000)
    return digest(number % (10**97))


def job(seed):
    return churn(seed), words(seed), big(seed)


def in_threads():
    results = [None] * 8

    def body(index):
        results[index] = churn(index), words(index + 100)

    threads = [threading.Thread(target=body, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def short_lived():
    """Threads that leave objects for others to free."""
    queue = []
    for index in range(400):
        thread = threading.Thread(target=lambda i=index: queue.append([bytes(i * 37)] * 3 + [{i: str(i)}]))
        thread.start()
        thread.join()
    return digest([(len(entry), len(entry[0]), entry[3]) for entry in queue])


def forked_while_threads_run():
    """Children of fork, made while other threads are inside the allocator."""
    stop = threading.Event()

    def noise():
        while not stop.is_set():
            [bytes(n) for n in range(0, 60000, 997)]

    threads = [threading.Thread(target=noise) for _ in range(3)]
    for thread in threads:
        thread.start()
    with multiprocessing.get_context("fork").Pool(4) as pool:
        results = pool.map(job, range(8))
    stop.set()
    for thread in threads:
        thread.join()
    return results


def main():
    print("threads", digest(in_threads()))
    print("short lived", short_lived())
    print("fork", digest(forked_while_threads_run()))
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        print("spawn", digest(list(pool.map(words, range(4)))))
    print("sorted", digest(sorted(random.Random(1).random() for _ in range(200000))))


if __name__ == "__main__":
    main()
    sys.stdout.flush()

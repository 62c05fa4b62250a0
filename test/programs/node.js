// Worker threads, buffers, JSON, compression and strings; prints digests that depend on the seed alone.

'use strict';

const crypto = require('crypto');
const zlib = require('zlib');
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');

function digest(thing) {
    return crypto.createHash('sha256').update(thing).digest('hex').slice(0, 16);
}

function drawer(seed) {
    let x = seed;
    return (n) => {
        x = (x * 16807) % 2147483647;
        return x % n;
    };
}

// Buffers of many sizes, most of them outside of the engine's own heap, which live for different times.
function buffers(seed) {
    const draw = drawer(seed);
    const kept = new Map();
    let sum = 0;
    for (let step = 0; step < 60000; step++) {
        const key = draw(2000);
        if (kept.has(key) && draw(2) === 0) {
            sum += kept.get(key).length;
            kept.delete(key);
        } else {
            kept.set(key, Buffer.alloc(1 + draw(1 << draw(15)), step & 255));
        }
    }
    return digest(sum + ':' + digest(Buffer.concat([...kept.entries()].sort((a, b) => a[0] - b[0]).map((e) => e[1]))));
}

function json(seed) {
    const draw = drawer(seed);
    const tree = [];
    for (let i = 0; i < 20000; i++) {
        tree.push({ id: draw(1e9), name: 'n'.repeat(draw(40)), list: [draw(9), draw(9), { deep: draw(99) }] });
    }
    const text = JSON.stringify(tree);
    const again = JSON.stringify(JSON.parse(text).sort((a, b) => a.id - b.id));
    return digest(text) + digest(again);
}

function packed(seed) {
    const draw = drawer(seed);
    const raw = Buffer.from(Array.from({ length: 400000 }, () => draw(30)));
    const small = zlib.brotliCompressSync(raw, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 } });
    const back = zlib.brotliDecompressSync(small);
    return digest(zlib.gunzipSync(zlib.gzipSync(back))) + (Buffer.compare(raw, back) === 0);
}

async function main() {
    const workers = [];
    for (let seed = 1; seed <= 4; seed++) {
        workers.push(new Promise((resolve, reject) => {
            const worker = new Worker(__filename, { workerData: seed });
            worker.on('message', (message) => resolve(Buffer.from(message).toString()));
            worker.on('error', reject);
        }));
    }
    console.log('main', buffers(99), json(99), packed(99));
    for (const line of await Promise.all(workers)) {
        console.log('worker', line);
    }
    const pieces = await Promise.all(Array.from({ length: 16 }, (_, i) =>
        new Promise((resolve) => zlib.deflate(Buffer.alloc(300000, i), (error, out) => resolve(out)))));
    console.log('pool', digest(Buffer.concat(pieces)));
}

if (isMainThread) {
    main();
} else {
    const seed = workerData;
    // The buffer changes its owner: one thread allocated it, another one frees it.
    const text = Buffer.from([buffers(seed), json(seed), packed(seed)].join(' '));
    const moved = new Uint8Array(text).buffer;
    parentPort.postMessage(moved, [moved]);
}

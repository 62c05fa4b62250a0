import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

/** Threads over objects, direct buffers and native compressors; prints digests that depend on the seed alone. */
public final class Threads {
    private static String digest(byte[] bytes) throws Exception {
        byte[] sum = MessageDigest.getInstance("SHA-256").digest(bytes);
        return ByteBuffer.wrap(sum).getLong() + "";
    }

    /** Compressors and direct buffers live in malloc's memory, outside of the collected heap. */
    private static String outside(int seed) throws Exception {
        Random draw = new Random(seed);
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (int turn = 0; turn < 40; turn++) {
            byte[] raw = new byte[1 + draw.nextInt(60000)];
            for (int i = 0; i < raw.length; i++) {
                raw[i] = (byte) draw.nextInt(17);
            }
            Deflater deflater = new Deflater(1 + turn % 9);
            deflater.setInput(raw);
            deflater.finish();
            byte[] packed = new byte[raw.length + 100];
            int length = deflater.deflate(packed);
            deflater.end();
            Inflater inflater = new Inflater();
            inflater.setInput(packed, 0, length);
            byte[] back = new byte[raw.length];
            inflater.inflate(back);
            inflater.end();
            ByteBuffer direct = ByteBuffer.allocateDirect(back.length);
            direct.put(back);
            direct.flip();
            byte[] copy = new byte[back.length];
            direct.get(copy);
            all.write(copy, 0, Math.min(copy.length, 500));
            all.write(length & 255);
        }
        return digest(all.toByteArray());
    }

    private static String inside(int seed) throws Exception {
        Random draw = new Random(seed);
        TreeMap<String, List<byte[]>> kept = new TreeMap<>();
        for (int step = 0; step < 40000; step++) {
            String key = "k" + draw.nextInt(500);
            kept.computeIfAbsent(key, k -> new ArrayList<>()).add(new byte[draw.nextInt(200)]);
            if (draw.nextInt(10) == 0) {
                kept.remove("k" + draw.nextInt(500));
            }
        }
        StringBuilder text = new StringBuilder();
        kept.forEach((key, list) -> text.append(key).append(list.size()));
        return digest(text.toString().getBytes());
    }

    public static void main(String[] arguments) throws Exception {
        ConcurrentHashMap<Integer, String> results = new ConcurrentHashMap<>();
        ExecutorService pool = Executors.newFixedThreadPool(12);
        List<Future<?>> jobs = new ArrayList<>();
        for (int seed = 0; seed < 12; seed++) {
            int mine = seed;
            jobs.add(pool.submit(() -> results.put(mine, outside(mine) + inside(mine))));
        }
        for (Future<?> job : jobs) {
            job.get();
        }
        pool.shutdown();

        // Short-lived threads, each of which leaves its stack and its native structures behind.
        int[] sum = new int[1];
        for (int turn = 0; turn < 300; turn++) {
            Thread thread = new Thread(() -> {
                synchronized (sum) {
                    sum[0] += ByteBuffer.allocateDirect(4096).capacity();
                }
            });
            thread.start();
            thread.join();
        }
        for (int seed = 0; seed < 12; seed++) {
            System.out.println(seed + " " + results.get(seed));
        }
        System.out.println(sum[0]);
    }
}

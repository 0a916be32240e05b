package eos.bk;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.common.cache.Cache;
import java.util.UUID;
import org.junit.jupiter.api.Test;

/** What a file in the read cache weighs: a checkpoint has many that are a few bytes long. */
class ReadCacheTest {
    private static final int FILES = 100_000;

    @Test
    void tinyFilesWeighAboutWhatTheyTakeOnTheHeap() {
        Cache<String, byte[]> cache = Ledgers.readCache(Long.MAX_VALUE);
        long before = used();
        long weight = 0;
        for (int number = 0; number < FILES; number++) {
            String write = UUID.randomUUID() + "-" + number;
            byte[] bytes = new byte[number % 16];
            cache.put(write, bytes);
            weight += Ledgers.onTheHeap(write, bytes);
        }
        long taken = used() - before;
        assertTrue(cache.size() == FILES);
        assertTrue(weight > 0.8 * taken && weight < 1.5 * taken, weight + " is not about " + taken);
    }

    private static long used() {
        System.gc();
        Runtime runtime = Runtime.getRuntime();
        return runtime.totalMemory() - runtime.freeMemory();
    }
}

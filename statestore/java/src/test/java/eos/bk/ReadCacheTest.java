package eos.bk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.common.cache.Cache;
import java.util.UUID;
import org.junit.jupiter.api.Test;

/** What a file in the read cache weighs: a checkpoint has many that are a few bytes long. */
class ReadCacheTest {
    private static final int FILES = 100_000;

    private static final int TRIES = 5;

    private record Measured(long weight, long taken) {
        boolean isAbout() {
            return weight > 0.8 * taken && weight < 1.5 * taken;
        }
    }

    /** Tried again where another thread of this JVM, a bookie's say, took or freed megabytes meanwhile. */
    @Test
    void tinyFilesWeighAboutWhatTheyTakeOnTheHeap() {
        Measured measured = measure();
        for (int tries = 1; !measured.isAbout() && tries < TRIES; tries++) {
            measured = measure();
        }
        assertTrue(measured.isAbout(), measured.weight + " is not about " + measured.taken);
    }

    private static Measured measure() {
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
        assertEquals(FILES, cache.size());
        return new Measured(weight, taken);
    }

    private static long used() {
        System.gc();
        Runtime runtime = Runtime.getRuntime();
        return runtime.totalMemory() - runtime.freeMemory();
    }
}

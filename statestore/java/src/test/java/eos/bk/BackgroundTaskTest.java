package eos.bk;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.AbstractMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class BackgroundTaskTest extends OwnRoot {
    private static final int ROUNDS = 3;

    static Stream<Named<Throwable>> failures() {
        return Stream.of(
                Named.of("refused", new IOException("refused")),
                Named.of("odd", new IllegalStateException("odd")),
                Named.of("interrupted", new InterruptedException()),
                Named.of("no memory", new OutOfMemoryError("Java heap space")),
                Named.of("no class", new NoClassDefFoundError("Gone")),
                Named.of("too deep", new StackOverflowError()),
                Named.of("no memory for the words", new OutOfMemoryError() {
                    @Override
                    public String toString() {
                        throw new OutOfMemoryError("for the words, too");
                    }
                }));
    }

    @ParameterizedTest
    @MethodSource("failures")
    void itIsRunAgainWhateverItThrew(Throwable failure) throws Exception {
        var rounds = new CountDownLatch(ROUNDS);
        var task = new BackgroundTask("The next round goes on", () -> {
            rounds.countDown();
            if (failure instanceof Error error) {
                throw error;
            }
            throw (Exception) failure;
        });
        var executor = Executors.newSingleThreadScheduledExecutor();
        executor.scheduleWithFixedDelay(task, 0, 1, TimeUnit.MILLISECONDS);
        assertTrue(rounds.await(1, TimeUnit.MINUTES), "it was run " + (ROUNDS - rounds.getCount()) + " times");
        executor.shutdownNow();
    }

    @Test
    void aClientGoesOnWithItsMaintenanceAfterARoundWithoutMemory() throws Exception {
        conf.setInt("fs.bk.maintenance.ms", 10);
        var maintained = another();
        var rounds = new CountDownLatch(ROUNDS);
        var packs = Packs.class.getDeclaredField("current");
        packs.setAccessible(true);
        packs.set(maintained.packs, new AbstractMap<Object, Object>() {
            @Override
            public Set<Map.Entry<Object, Object>> entrySet() {
                rounds.countDown();
                throw new OutOfMemoryError("Java heap space");
            }
        });
        assertTrue(rounds.await(1, TimeUnit.MINUTES), "there were " + (ROUNDS - rounds.getCount()) + " rounds");
        packs.set(maintained.packs, Map.of());
        maintained.close();
    }
}

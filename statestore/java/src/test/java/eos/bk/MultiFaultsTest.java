package eos.bk;

import static eos.bk.TestTree.expire;
import static eos.bk.TestTree.random;
import static eos.bk.TestTree.read;
import static eos.bk.TestTree.write;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import eos.bk.ZkProxy.What;
import eos.bk.ZkProxy.When;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * A process dies, loses its connection or stands still at each of its multis in turn. Afterwards the tree is as before
 * its step or as after it, every visible file has its bytes, and sweeping leaves no ledger that nothing refers to.
 */
class MultiFaultsTest {
    private static final byte[] SMALL = random(1000);
    private static final byte[] OTHER = random(2000);
    private static final byte[] LARGE = random((2 << 20) + 5);
    private static final int AT_ONCE = 12;

    private final TestTree tree = new TestTree(Settings.MIB);
    private final Client survivor = tree.survivor;

    @AfterEach
    void stop() {
        tree.close();
    }

    /** One call of a writer or a sweeper, and what is visible after it. */
    private record Step(Action action, Map<String, byte[]> after) {}

    private interface Action {
        void run(Client client) throws IOException;
    }

    /** All that writers and sweepers do, in one life. */
    private static List<Step> life() {
        var steps = new ArrayList<Step>();
        var seen = new TreeMap<String, byte[]>();
        steps.add(new Step(client -> client.names.mkdirs("/d/e"), Map.of()));
        seen.put("/d/e/a", SMALL);
        steps.add(new Step(client -> write(client, "/d/e/a", SMALL), Map.copyOf(seen)));
        seen.put("/d/e/b", OTHER);
        steps.add(new Step(client -> write(client, "/d/e/b", OTHER), Map.copyOf(seen)));
        seen.put("/d/e/b", seen.remove("/d/e/a"));
        steps.add(new Step(client -> client.names.rename("/d/e/a", "/d/e/b", true), Map.copyOf(seen)));
        seen.put("/d/e/large", LARGE);
        steps.add(new Step(client -> write(client, "/d/e/large", LARGE), Map.copyOf(seen)));
        seen.put("/d/e/large", OTHER);
        steps.add(new Step(client -> write(client, "/d/e/large", OTHER), Map.copyOf(seen)));
        var moved = Map.of("/d/f/b", SMALL, "/d/f/large", OTHER);
        steps.add(new Step(client -> client.names.rename("/d/e", "/d/f", false), moved));
        var left = Map.of("/d/f/b", SMALL);
        steps.add(new Step(client -> client.names.delete("/d/f/large", false), left));
        steps.add(new Step(client -> client.packs.close(), left));
        // The pack holds 1,000 of 5,000 bytes: compacted in the first round, freed in the second.
        steps.add(new Step(client -> client.sweeper.sweep(true), left));
        steps.add(new Step(client -> client.sweeper.sweep(true), left));
        steps.add(new Step(client -> client.names.delete("/d", true), Map.of()));
        return steps;
    }

    private static Map<String, byte[]> visible(Client client, String directory) throws IOException {
        var found = new TreeMap<String, byte[]>();
        for (var status : client.names.list(directory)) {
            if (status.isDirectory()) {
                found.putAll(visible(client, status.path()));
            } else {
                found.put(status.path(), read(client, status.path()));
            }
        }
        return found;
    }

    private static boolean same(Map<String, byte[]> one, Map<String, byte[]> other) {
        return one.keySet().equals(other.keySet())
                && one.keySet().stream().allMatch(path -> Arrays.equals(one.get(path), other.get(path)));
    }

    private int multisOfALife() throws Exception {
        try (var proxy = new ZkProxy(TestCluster.address())) {
            var client = tree.client(proxy.address());
            for (Step step : life()) {
                step.action().run(client);
                assertTrue(same(step.after(), visible(client, "/")), "the steps say what they do");
            }
            int multis = proxy.multis();
            client.close();
            assertTrue(multis > 15, "only " + multis + " multis");
            return multis;
        }
    }

    private interface Life {
        void live(TestTree own, ZkProxy proxy, String what) throws Exception;
    }

    /** A life for each of its multis, several at once: they mostly wait. */
    private void atEachMulti(When when, What what, Life life) throws Exception {
        var lives = new ArrayList<Callable<Void>>();
        int multis = multisOfALife();
        for (int i = 1; i <= multis; i++) {
            int n = i;
            lives.add(() -> {
                try (var own = new TestTree(Settings.MIB);
                        var proxy = new ZkProxy(TestCluster.address(), n, when, what)) {
                    life.live(own, proxy, what + " " + when + " multi " + n);
                }
                return null;
            });
        }
        var threads = Executors.newFixedThreadPool(AT_ONCE);
        try {
            for (var done : threads.invokeAll(lives)) {
                done.get();
            }
        } finally {
            threads.shutdownNow();
        }
    }

    @Tag("long")
    @ParameterizedTest
    @EnumSource
    void aProcessThatDiesAtAnyMultiLeavesNothingTornAndNothingBehind(When when) throws Exception {
        atEachMulti(when, What.KILL, (own, proxy, what) -> {
            var session = new AtomicReference<Session>();
            var done = new AtomicInteger();
            var victim = new Thread(() -> {
                try {
                    var client = own.client(proxy.address());
                    session.set(client.session());
                    for (Step step : life()) {
                        step.action().run(client);
                        done.incrementAndGet();
                    }
                } catch (IOException e) {
                    // The dead don't speak.
                    return;
                }
            });
            victim.setDaemon(true);
            victim.start();
            proxy.awaitIt(() -> !victim.isAlive());
            if (session.get() == null) {
                return; // It had no session yet, and gets none.
            }
            expire(session.get().zk());
            var before = done.get() == 0
                    ? Map.<String, byte[]>of()
                    : life().get(done.get() - 1).after();
            var after = life().get(done.get()).after();
            var now = visible(own.survivor, "/");
            assertTrue(same(before, now) || same(after, now), what + " leaves " + now.keySet());
            own.mustBeTidy(what);
            assertTrue(same(now, visible(own.survivor, "/")), what + ", after sweeping");
            session.get().end();
        });
    }

    @Tag("long")
    @ParameterizedTest
    @EnumSource
    void aProcessThatLosesItsConnectionAtAnyMultiGoesOn(When when) throws Exception {
        atEachMulti(when, What.CUT, (own, proxy, what) -> {
            var client = own.client(proxy.address());
            for (Step step : life()) {
                step.action().run(client);
                assertTrue(same(step.after(), visible(client, "/")), what);
            }
            assertTrue(proxy.hasHappened(), what + " was never sent");
            client.close();
            own.mustBeTidy(what);
        });
    }

    /** The writer is held at its publishing multi (the third: its session, its ledger) until it was taken for dead. */
    private CompletableFuture<Void> pausedAtPublish(ZkProxy proxy, int multi, byte[] data) throws Exception {
        survivor.names.mkdirs("/d");
        var client = tree.client(proxy.address());
        var session = client.session();
        var written = CompletableFuture.runAsync(() -> {
            try {
                write(client, "/d/f", data);
            } catch (IOException e) {
                throw new CompletionException(e);
            } finally {
                client.close();
            }
        });
        proxy.awaitIt(written::isDone);
        assertEquals(multi, proxy.multis());
        expire(session.zk());
        survivor.sweeper.sweep(true);
        survivor.sweeper.sweep(true);
        assertEquals(List.of(), survivor.names.ledgers(), "swept away under the writer");
        proxy.resume();
        return written;
    }

    @Test
    void aWriterThatStoodStillWhileItsPackWasFreedWritesItAgain() throws Exception {
        try (var proxy = new ZkProxy(TestCluster.address(), 3, When.BEFORE, What.PAUSE)) {
            pausedAtPublish(proxy, 3, SMALL).get(300, TimeUnit.SECONDS);
        }
        assertArrayEquals(SMALL, read(survivor, "/d/f"));
        tree.mustBeTidy("paused writer of a small file");
    }

    @Test
    void aWriterThatStoodStillWhileItsOwnLedgerWasFreedFailsAndShowsNothing() throws Exception {
        try (var proxy = new ZkProxy(TestCluster.address(), 4, When.BEFORE, What.PAUSE)) {
            var written = pausedAtPublish(proxy, 4, LARGE);
            assertTrue(assertThrows(Exception.class, () -> written.get(300, TimeUnit.SECONDS))
                    .getMessage()
                    .contains("was freed"));
        }
        assertNull(survivor.names.find("/d/f"));
        tree.mustBeTidy("paused writer of a large file");
    }

    /** Writes files until it is killed, every fifth a large one, and says which are closed. */
    static final class Writer {
        public static void main(String[] arguments) throws IOException {
            var conf = new Configuration();
            conf.set("fs.bk.root", arguments[1]);
            conf.setInt("fs.bk.session.timeout.ms", 1000); // the server makes 2 s of it
            var client = new Client(new Settings(URI.create("bk://" + arguments[0]), conf));
            for (int i = 0; ; i++) {
                write(client, "/d/" + i, content(i));
                System.out.println(i);
            }
        }

        static byte[] content(int i) {
            return i % 5 == 4 ? LARGE : random(1000 + i);
        }
    }

    /**
     * SIGKILL for a JVM that writes, at its multis 2 (its pack's registration), 7 (its first large file has a ledger that
     * is not registered), 9 (all bytes are there, the file is about to be published).
     */
    @ParameterizedTest
    @CsvSource({"2, BEFORE", "7, BEFORE", "9, BEFORE", "9, AFTER"})
    void aJvmThatIsKilledLosesNothingThatItClosedAndLeavesNothingBehind(int multi, When when) throws Exception {
        survivor.names.mkdirs("/d");
        var said = new ArrayList<Integer>();
        var output = Files.createTempFile("writer", ".txt");
        try (var proxy = new ZkProxy(TestCluster.address(), multi, when, What.PAUSE)) {
            var jvm = TestTree.jvm(output, Writer.class, proxy.address(), tree.survivor.settings.root);
            proxy.awaitIt(() -> !jvm.isAlive());
            jvm.destroyForcibly().waitFor();
            Files.readAllLines(output).forEach(line -> said.add(Integer.valueOf(line)));
        } finally {
            Files.delete(output);
        }
        assertEquals(multi == 2 ? 0 : 4, said.size());
        for (int i : said) {
            assertArrayEquals(Writer.content(i), read(survivor, "/d/" + i));
        }
        assertEquals(when == When.AFTER, survivor.names.find("/d/4") != null);
        tree.waitUntilOthersAreDead();
        tree.mustBeTidy("SIGKILL");
        assertEquals(
                said.size() + (when == When.AFTER ? 1 : 0),
                survivor.names.list("/d").size());
        for (var status : survivor.names.list("/d")) {
            int i = Integer.parseInt(status.path().substring("/d/".length()));
            assertArrayEquals(Writer.content(i), read(survivor, status.path()));
        }
    }
}

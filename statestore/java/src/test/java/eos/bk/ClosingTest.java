package eos.bk;

import static eos.bk.TestTree.random;
import static eos.bk.TestTree.read;
import static eos.bk.TestTree.write;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.zookeeper.ZooKeeper;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Processes that end, with and without their ZooKeeper: soon, and leaving nothing that others can't put in order. */
@Tag("long")
@Timeout(300)
class ClosingTest {
    private static final byte[] SMALL = random(1000);
    private static final byte[] TABLE = random(2000);
    /** A process that waits for ZooKeeper as long as this has missed that it is to end. */
    private static final long PATIENCE_MS = TimeUnit.MINUTES.toMillis(30);

    private static final long BOUND_S = 60;
    /** The server makes 2 s of it. */
    private static final int SESSION_MS = 1000;

    /** What has become of ZooKeeper, and of the process's sessions, when the process is told to end. */
    private enum Gone {
        LATELY,
        LONG_AGO,
        SILENT
    }

    /** A client for each of two trees, with two packs each, waits to be ended, and says when its sessions are over. */
    static final class Holder {
        public static void main(String[] arguments) throws Exception {
            var sessions = List.of(open(arguments[0], arguments[1]), open(arguments[0], arguments[2]));
            System.out.println("written");
            for (ZooKeeper session : sessions) {
                while (session.getState().isAlive()) {
                    Thread.sleep(20);
                }
            }
            System.out.println("over");
            Thread.sleep(PATIENCE_MS);
        }

        static ZooKeeper open(String address, String root) throws IOException {
            var client = client(address, root);
            write(client, "/d/f", SMALL);
            write(client, "/d/f.sst", TABLE);
            return client.session().zk();
        }

        static Client client(String address, String root) throws IOException {
            var conf = new Configuration();
            conf.set("fs.bk.root", root);
            conf.setLong("fs.bk.patience.ms", PATIENCE_MS);
            conf.setInt("fs.bk.session.timeout.ms", SESSION_MS);
            return Client.of(new Settings(URI.create("bk://" + address), conf));
        }
    }

    /** Reads what another process has written, for which it opens that one's ledger, and has nothing more to do. */
    static final class Reader {
        public static void main(String[] arguments) throws IOException {
            assertArrayEquals(SMALL, read(Holder.client(arguments[0], arguments[1]), "/d/f"));
        }
    }

    /** Writes, and has nothing more to do. */
    static final class Leaver {
        public static void main(String[] arguments) throws IOException {
            Holder.open(arguments[0], arguments[1]);
        }
    }

    @Test
    void aJvmEndsWhenItsMainHasReturned() throws Exception {
        var output = Files.createTempFile("leaver", ".txt");
        try (var tree = new TestTree(Settings.MIB)) {
            tree.survivor.names.mkdirs("/d");
            var jvm = TestTree.jvm(output, Leaver.class, TestCluster.address(), tree.survivor.settings.root);
            try {
                assertTrue(jvm.waitFor(BOUND_S, TimeUnit.SECONDS), "something keeps the process");
                assertEquals(0, jvm.exitValue());
            } finally {
                jvm.destroyForcibly().waitFor();
            }
            mustHaveItsFiles(tree.survivor);
            mustBeSealed(tree.survivor);
            tree.mustBeTidy("a process that ended by itself");
        } finally {
            Files.delete(output);
        }
    }

    @Test
    void aJvmThatHasReadEndsWhenItsMainHasReturned() throws Exception {
        var output = Files.createTempFile("reader", ".txt");
        try (var tree = new TestTree(Settings.MIB)) {
            tree.survivor.names.mkdirs("/d");
            write(tree.survivor, "/d/f", SMALL);
            var jvm = TestTree.jvm(output, Reader.class, TestCluster.address(), tree.survivor.settings.root);
            try {
                assertTrue(jvm.waitFor(BOUND_S, TimeUnit.SECONDS), "something keeps the process");
                assertEquals(0, jvm.exitValue());
            } finally {
                jvm.destroyForcibly().waitFor();
            }
        } finally {
            Files.delete(output);
        }
    }

    private static void awaitLine(Path output, String line) throws Exception {
        while (!Files.readAllLines(output).contains(line)) {
            Thread.sleep(20);
        }
    }

    @ParameterizedTest
    @EnumSource
    void aJvmEndsOnSigtermWithoutItsZooKeeper(Gone gone) throws Exception {
        var output = Files.createTempFile("holder", ".txt");
        try (var one = new TestTree(Settings.MIB);
                var two = new TestTree(Settings.MIB);
                var proxy = new ZkProxy(TestCluster.address())) {
            one.survivor.names.mkdirs("/d");
            two.survivor.names.mkdirs("/d");
            var roots = List.of(one.survivor.settings.root, two.survivor.settings.root);
            var jvm = TestTree.jvm(output, Holder.class, proxy.address(), roots.get(0), roots.get(1));
            try {
                awaitLine(output, "written");
                if (gone == Gone.SILENT) {
                    proxy.hold();
                } else {
                    proxy.close();
                }
                if (gone == Gone.LONG_AGO) {
                    awaitLine(output, "over");
                }
                jvm.destroy();
                assertTrue(jvm.waitFor(BOUND_S, TimeUnit.SECONDS), "the process waits for its ZooKeeper");
            } finally {
                jvm.destroyForcibly().waitFor();
            }
            proxy.close();
            for (TestTree tree : List.of(one, two)) {
                assertEquals(2, tree.survivor.names.ledgers().size());
                mustHaveItsFiles(tree.survivor);
                tree.waitUntilOthersAreDead();
                tree.mustBeTidy("closed without ZooKeeper");
                mustHaveItsFiles(tree.survivor);
                mustBeSealed(tree.survivor);
            }
        } finally {
            Files.delete(output);
        }
    }

    private static void mustHaveItsFiles(Client client) throws IOException {
        assertArrayEquals(SMALL, read(client, "/d/f"));
        assertArrayEquals(TABLE, read(client, "/d/f.sst"));
    }

    private static void mustBeSealed(Client client) throws IOException {
        for (long pack : client.names.ledgers()) {
            assertTrue(Ledgers.metadata(client.session(), pack).isClosed(), "pack " + pack + " is sealed");
        }
    }

    private static Client patient(TestTree tree, String address) throws IOException {
        tree.conf.setLong("fs.bk.patience.ms", PATIENCE_MS);
        tree.conf.setInt("fs.bk.session.timeout.ms", SESSION_MS);
        return new Client(new Settings(URI.create("bk://" + address), tree.conf));
    }

    private static FutureTask<Object> inState(Thread.State state, Callable<Object> call) throws Exception {
        var task = new FutureTask<>(call);
        var thread = new Thread(task);
        thread.setDaemon(true);
        thread.start();
        while (thread.getState() != state) {
            Thread.sleep(5);
        }
        return task;
    }

    private static void mustSayThatItIsClosed(FutureTask<?> waiting) {
        Throwable said = assertThrows(ExecutionException.class, () -> waiting.get(BOUND_S, TimeUnit.SECONDS))
                .getCause();
        assertTrue(said instanceof IOException && said.getMessage().contains("is closed"), said.toString());
    }

    @Test
    void whoWaitsForASessionHearsThatTheClientIsClosed() throws Exception {
        try (var tree = new TestTree(Settings.MIB);
                var proxy = new ZkProxy(TestCluster.address())) {
            proxy.hold();
            var client = patient(tree, proxy.address());
            var first = inState(Thread.State.WAITING, client::session);
            var second = inState(Thread.State.BLOCKED, client::session);
            client.close();
            mustSayThatItIsClosed(first);
            mustSayThatItIsClosed(second);
        }
    }

    @Test
    void whoWaitsForAnAnswerHearsThatTheClientIsClosed() throws Exception {
        try (var tree = new TestTree(Settings.MIB);
                var proxy = new ZkProxy(TestCluster.address())) {
            var client = patient(tree, proxy.address());
            write(client, "/f", SMALL);
            proxy.close();
            var waiting = inState(Thread.State.TIMED_WAITING, () -> client.names.find("/f"));
            client.close();
            mustSayThatItIsClosed(waiting);
            tree.waitUntilOthersAreDead();
            assertArrayEquals(SMALL, read(tree.survivor, "/f"));
            tree.mustBeTidy("closed while a reader waits");
        }
    }

    /** BookKeeper's threads would find their client gone, and an answer that comes while it goes be taken twice. */
    @Test
    void nothingIsBegunOrSentOnceAClientIsClosed() throws Exception {
        try (var tree = new TestTree(Settings.MIB)) {
            var client = tree.client(TestCluster.address());
            var session = client.session();
            var handle = client.ledgers.create(session);
            Ledgers.await(Ledgers.append(session, handle, SMALL, 0, SMALL.length));
            client.close();
            var refused = assertThrows(
                    IOException.class, () -> Ledgers.await(Ledgers.append(session, handle, SMALL, 0, SMALL.length)));
            assertTrue(refused.getMessage().endsWith("is over"), refused.getMessage());
            assertTrue(assertThrows(IOException.class, () -> client.ledgers.create(session))
                    .getMessage()
                    .endsWith("is closed"));
        }
    }
}

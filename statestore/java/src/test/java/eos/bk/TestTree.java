package eos.bk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.zookeeper.ZooKeeper;

/** A root of its own on the test cluster, and a client that outlives the others. */
final class TestTree implements AutoCloseable {
    final Configuration conf = TestCluster.configure(new Configuration());
    final Client survivor;

    TestTree(int entrySize) {
        this(entrySize, TestCluster.address());
    }

    /** {@code address}: of the ZooKeeper that the survivor talks to. */
    TestTree(int entrySize, String address) {
        conf.set("fs.bk.root", "/eos-bk-test/" + UUID.randomUUID());
        conf.setInt("fs.bk.entry.bytes", entrySize);
        conf.setInt("fs.bk.maintenance.ms", 0);
        conf.setInt("fs.bk.grace.ms", 0);
        conf.setInt("fs.bk.patience.ms", 20_000);
        try {
            survivor = client(address);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    Client client(String address) throws IOException {
        var client = new Client(new Settings(URI.create("bk://" + address), conf));
        client.session();
        return client;
    }

    /** Sweeps, and looks whether each ledger of this tree is registered and has a use. */
    void mustBeTidy(String what) throws IOException {
        for (int i = 0; i < 3; i++) {
            survivor.sweeper.sweep(true);
        }
        var session = survivor.session();
        var stored = new TreeSet<Long>();
        var ranges = session.bk().getLedgerManager().getLedgerRanges(0);
        while (ranges.hasNext()) {
            for (long ledger : ranges.next().getLedgers()) {
                var metadata = Ledgers.metadata(session, ledger);
                byte[] owner =
                        metadata == null ? null : metadata.getCustomMetadata().get(Ledgers.ROOT_KEY);
                if (owner != null && new String(owner, StandardCharsets.UTF_8).equals(session.rootId())) {
                    stored.add(ledger);
                }
            }
        }
        assertEquals(new TreeSet<>(survivor.names.ledgers()), stored, what + ": registered, and stored");
        for (long ledger : stored) {
            var node = survivor.zk.node(survivor.names.ledger(ledger));
            assertTrue(
                    node.stat().getNumChildren() > 0
                            || LedgerState.decode(node.data()).process().equals(session.process()),
                    what + ": nothing refers to ledger " + ledger);
        }
        assertEquals(List.of(), survivor.zk.children(survivor.settings.root + "/del"), what);
        assertEquals(List.of(session.process()), survivor.zk.children(survivor.settings.root + "/w"), what);
    }

    /** Waits until ZooKeeper has ended the sessions of all writers but the survivor. */
    void waitUntilOthersAreDead() throws Exception {
        String writers = survivor.settings.root + "/w";
        for (String process : survivor.zk.children(writers)) {
            while (!process.equals(survivor.session().process())
                    && survivor.zk.stat(writers + "/" + process + "/alive") != null) {
                Thread.sleep(50);
            }
        }
    }

    @Override
    public void close() {
        survivor.close();
    }

    /** Starts a JVM that runs {@code main} of the class, with its output in a file. */
    static Process jvm(Path output, Class<?> main, String... arguments) throws IOException {
        var command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1",
                "-cp",
                System.getProperty("java.class.path"),
                main.getName()));
        command.addAll(List.of(arguments));
        // A file, since the pipe of a process that is destroyed is closed on our side too.
        return new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .redirectOutput(output.toFile())
                .start();
    }

    static byte[] random(int size) {
        var data = new byte[size];
        new Random(size).nextBytes(data);
        return data;
    }

    static void write(Client client, String path, byte[] data) throws IOException {
        try (var out = new BkOutputStream(client, path, true)) {
            out.write(data, 0, data.length);
        }
    }

    static byte[] read(Client client, String path) throws IOException {
        try (var in = new BkInputStream(client, path, client.names.find(path).file())) {
            return in.readAllBytes();
        }
    }

    static int filesBelow(Names names, String directory) throws IOException {
        int files = 0;
        for (var status : names.list(directory)) {
            files += status.isDirectory() ? filesBelow(names, status.path()) : 1;
        }
        return files;
    }

    /** Ends a session as ZooKeeper does when nothing is heard of it. */
    static void expire(ZooKeeper zk) throws Exception {
        var thief = new ZooKeeper(TestCluster.address(), 10_000, event -> {}, zk.getSessionId(), zk.getSessionPasswd());
        while (thief.getState().isAlive() && thief.getState() != ZooKeeper.States.CONNECTED) {
            Thread.sleep(5);
        }
        thief.close();
    }
}

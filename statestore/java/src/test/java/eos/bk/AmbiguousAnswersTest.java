package eos.bk;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.conf.Configuration;
import org.apache.zookeeper.AsyncCallback.MultiCallback;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.ZooKeeper;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * A real ZooKeeper whose connection breaks at the worst moments: before a write was carried out, or after it was, with
 * its answer on the way, or while it is still on its way to a server that knows its session. Either way each operation
 * must happen once, and say so.
 */
class AmbiguousAnswersTest {
    private enum Break {
        BEFORE,
        AFTER,
        LATE
    }

    /** Loses the answer to the next write, or the write itself, or lets it arrive only with the one after. */
    private static final class Unreliable extends ZooKeeper {
        volatile Break next;
        private volatile Iterable<Op> late = List.of();
        final AtomicInteger lost = new AtomicInteger();

        Unreliable(String servers, CountDownLatch connected) throws IOException {
            super(servers, 10_000, event -> connected.countDown());
        }

        @Override
        public void multi(Iterable<Op> ops, MultiCallback callback, Object context) {
            boolean writes = ops.iterator().next().getKind() == Op.OpKind.TRANSACTION;
            Break now = writes ? next : null;
            if (now == null) {
                if (writes && late.iterator().hasNext()) {
                    super.multi(late, (rc, path, c, results) -> {}, null);
                    late = List.of();
                }
                super.multi(ops, callback, context);
                return;
            }
            next = null;
            lost.incrementAndGet();
            int loss = Code.CONNECTIONLOSS.intValue();
            if (now != Break.AFTER) {
                late = now == Break.LATE ? ops : List.of();
                callback.processResult(loss, null, context, null);
            } else {
                super.multi(
                        ops,
                        (int rc, String path, Object c, List<OpResult> results) ->
                                callback.processResult(loss, path, c, null),
                        context);
            }
        }
    }

    private Client client;
    private Unreliable unreliable;
    private Names names;
    private FileEntry file;

    @BeforeEach
    void start() throws Exception {
        Configuration conf = TestCluster.configure(new Configuration());
        conf.set("fs.bk.root", "/eos-bk-test/" + UUID.randomUUID());
        conf.setInt("fs.bk.maintenance.ms", 0);
        var settings = new Settings(URI.create(TestCluster.uri()), conf);
        client = new Client(settings);
        client.names.mkdirs("/d/e");
        file = client.packs.append("", new byte[] {1, 2, 3});
        var connected = new CountDownLatch(1);
        unreliable = new Unreliable(TestCluster.address(), connected);
        connected.await();
        names = new Names(new Zk(() -> unreliable, settings), settings);
    }

    @AfterEach
    void stop() throws Exception {
        assertEquals(1, unreliable.lost.get(), "the fault was injected");
        unreliable.close();
        client.close();
    }

    private byte[] read(String path) throws IOException {
        return client.ledgers.readSmall(path, client.names.find(path).file());
    }

    /** What is asked of ZooKeeper: the write, sync, the trace; then once more the write, and the trace. */
    @ParameterizedTest
    @CsvSource({"BEFORE, 3", "LATE, 4"})
    void aWriteThatGotNoAnswerIsNotCalledUndoneWhereNoneCanBeHadAnyMore(Break fault, int answered) {
        var asked = new AtomicInteger();
        var settings = client.settings;
        var zk = new Zk(
                () -> {
                    if (asked.incrementAndGet() > answered) {
                        throw new IOException("The bk client of this process is closed");
                    }
                    return unreliable;
                },
                settings);
        String path = settings.root + "/n/d/x";
        unreliable.next = fault;
        var ops = List.of(Op.create(path, Names.NOTHING, settings.acl, CreateMode.PERSISTENT));
        String said = assertThrows(IOException.class, () -> zk.write(ops, () -> zk.stat(path) != null))
                .getMessage();
        assertTrue(said.contains("it isn't known whether it happened"), said);
        assertEquals(answered + 1, asked.get());
    }

    @ParameterizedTest
    @EnumSource
    void publish(Break fault) throws IOException {
        unreliable.next = fault;
        names.publish("/d/f", file, false);
        assertArrayEquals(new byte[] {1, 2, 3}, read("/d/f"));
    }

    @ParameterizedTest
    @EnumSource
    void rename(Break fault) throws IOException {
        names.publish("/d/f", file, false);
        unreliable.next = fault;
        names.rename("/d/f", "/d/g", false);
        assertNull(names.find("/d/f"));
        assertEquals(1, names.find("/d/g").file().generation());
    }

    @ParameterizedTest
    @EnumSource
    void renameThatOverwrites(Break fault) throws IOException {
        names.publish("/d/f", file, false);
        names.publish("/d/g", client.packs.append("", new byte[] {9}), false);
        unreliable.next = fault;
        names.rename("/d/f", "/d/g", true);
        assertNull(names.find("/d/f"));
        assertArrayEquals(new byte[] {1, 2, 3}, read("/d/g"));
    }

    @ParameterizedTest
    @EnumSource
    void renameOfADirectory(Break fault) throws IOException {
        names.publish("/d/e/f", file, false);
        unreliable.next = fault;
        names.rename("/d/e", "/d/moved", false);
        assertNull(names.find("/d/e"));
        assertArrayEquals(new byte[] {1, 2, 3}, read("/d/moved/f"));
    }

    @ParameterizedTest
    @EnumSource
    void delete(Break fault) throws IOException {
        names.publish("/d/f", file, false);
        unreliable.next = fault;
        assertTrue(names.delete("/d/f", false));
        assertNull(names.find("/d/f"));
        assertFalse(names.delete("/d/f", false));
    }

    @ParameterizedTest
    @EnumSource
    void mkdirs(Break fault) throws IOException {
        unreliable.next = fault;
        names.mkdirs("/d/x/y");
        assertTrue(names.find("/d/x/y").isDirectory());
        assertTrue(names.find("/d/x").isDirectory());
    }

    @ParameterizedTest
    @EnumSource
    void replace(Break fault) throws IOException {
        names.publish("/d/f", file, false);
        var copy = file.copiedTo(client.packs.append("", new byte[] {1, 2, 3}), 7);
        unreliable.next = fault;
        assertTrue(names.replace("/d/f", file, copy));
        assertEquals(copy, names.find("/d/f").file());
    }
}

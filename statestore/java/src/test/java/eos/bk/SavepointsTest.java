package eos.bk;

import static eos.bk.TestTree.expire;
import static eos.bk.TestTree.random;
import static eos.bk.TestTree.read;
import static eos.bk.TestTree.write;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import eos.bk.Failed.Kind;
import eos.bk.ZkProxy.What;
import eos.bk.ZkProxy.When;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.fs.ParentNotDirectoryException;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Op;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a savepoint holds, what is refused, and that neither making, deleting nor restoring one touches another. */
class SavepointsTest extends SavepointFixture {
    static final String SOURCE = "bk://zk:2181/q";
    /** A checkpoint: packed files, one with a ledger of its own, an empty one. */
    static final Map<String, byte[]> FILES = new TreeMap<>(Map.of(
            "metadata", random(13),
            "offsets/0", random(20),
            "commits/0", random(5),
            "state/0/0/1.delta", random((1 << 20) + 1),
            "state/0/0/ü 50%", random(0)));

    static void checkpoint(Client client) throws IOException {
        for (var file : FILES.entrySet()) {
            String path = "/q/" + file.getKey();
            client.names.mkdirs(Names.parent(path));
            write(client, path, file.getValue());
        }
        client.packs.close();
    }

    static Savepoint create(Savepoints all, String name) throws IOException {
        return all.create(name, SOURCE, "/q", 0, "a-query", written(all, "/q", FILES.keySet()));
    }

    /** When files were written, below a directory. */
    static Map<String, Long> written(Savepoints all, String top, Collection<String> paths) throws IOException {
        var written = new TreeMap<String, Long>();
        for (String path : paths) {
            written.put(path, all.names.find(top + "/" + path).mtime());
        }
        return written;
    }

    static List<String> states(Savepoints all) throws IOException {
        return all.all().stream()
                .map(one -> one.get("name").asText() + " " + one.get("state").asText())
                .toList();
    }

    static void mustBeWhole(Client client, String target) throws IOException {
        for (var file : FILES.entrySet()) {
            assertArrayEquals(file.getValue(), read(client, target + "/" + file.getKey()), file.getKey());
        }
        assertEquals(FILES.size(), TestTree.filesBelow(client.names, target));
    }

    static void refused(Kind kind, String words, Executable executable) {
        Failed failed = assertThrows(Failed.class, executable);
        assertTrue(failed.getMessage().contains(words), failed.getMessage());
        assertEquals(kind.name(), failed.kind());
    }

    private List<Long> held(String name) throws IOException {
        var held = new ArrayList<Long>();
        for (long ledger : client.names.ledgers()) {
            if (client.zk.children(client.names.ledger(ledger)).contains("s-" + name)) {
                held.add(ledger);
            }
        }
        return held;
    }

    private void sweep() throws IOException {
        for (int round = 0; round < 2; round++) {
            client.sweeper.sweep(true);
        }
    }

    @Test
    void aSavepointSaysWhatItIsAndOutlivesItsCheckpoint() throws IOException {
        Savepoint made = create(all, "one");
        assertEquals(List.of("one ready"), states(all));
        assertEquals(made, all.read("one").savepoint());
        assertEquals(
                List.of(SOURCE, 0L, "a-query", FILES.size(), (1L << 20) + 39, 2),
                List.of(made.source(), made.batch(), made.query(), made.files(), made.size(), made.ledgers()));
        assertEquals(List.of("files-00000"), client.zk.children(tree.survivor.settings.root + "/sp/one"));
        client.names.delete("/q", true);
        sweep();
        assertEquals(2, held("one").size());
        Restoration restoration = all.restore("one", "/deep/down/new");
        assertEquals(0, client.names.find("/deep/down/new/metadata").file().length(), "Spark starts no query on it");
        restoration.finish();
        mustBeWhole(client, "/deep/down/new");
        all.delete("one", true, null);
        sweep();
        mustBeWhole(client, "/deep/down/new");
        client.names.delete("/deep", true);
        sweep();
        assertEquals(List.of(), client.names.ledgers());
        assertEquals(List.of(), client.zk.children(client.names.ledger(FileEntry.NO_LEDGER)));
        assertEquals(List.of(), states(all));
        tree.mustBeTidy("made, restored, deleted");
    }

    @Test
    void aRestoredFileIsAnotherFileWithTheSameBytes() throws IOException {
        create(all, "one");
        all.restore("one", "/new").finish();
        for (String path : FILES.keySet()) {
            FileEntry old = client.names.find("/q/" + path).file();
            FileEntry copy = client.names.find("/new/" + path).file();
            assertNotEquals(old.write(), copy.write());
            assertEquals(old.as(copy.write()), copy);
        }
        client.names.delete("/q", true);
        all.delete("one", true, null);
        sweep();
        mustBeWhole(client, "/new");
    }

    @Test
    void aDeletedSavepointLeavesTheOthersTheirLedgers() throws IOException {
        create(all, "one");
        create(all, "other");
        all.delete("one", true, null);
        assertEquals(List.of(), held("one"));
        assertEquals(2, held("other").size());
        assertEquals(List.of("other ready"), states(all));
        refused(Kind.NotFound, "no savepoint one", () -> all.delete("one", true, null));
    }

    @Test
    void aNameIsTakenOnce() throws IOException {
        create(all, "one");
        refused(Kind.InvalidInput, "already, ready: take another name", () -> create(all, "one"));
        all.begin("two", SOURCE);
        refused(Kind.InvalidInput, "already, building", () -> create(all, "two"));
        refused(Kind.InvalidInput, "take another name", () -> all.begin("two", SOURCE));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "a/b", "-a", "a.", "a b", "ä", "s\n"})
    void whatIsNoNameIsRefused(String name) {
        refused(Kind.InvalidInput, "cannot name a savepoint", () -> create(all, name));
    }

    @Test
    void aFileOrLedgerThatWentMeanwhileAsksForANewerCutAndLeavesNothing() throws IOException {
        refused(
                Kind.CutFailed,
                "Batch 3 can't be restored: offsets/9 is not there",
                () -> all.create("one", SOURCE, "/q", 3, "a-query", Map.of("offsets/9", 0L)));
        assertEquals(List.of(), states(all));
        var build = all.begin("one", SOURCE);
        refused(Kind.CutFailed, "Ledger 987654321 was freed", () -> build.hold(List.of(987654321L)));
    }

    @Test
    void aMakerWhoseSessionEndedIsStoppedAndReplaced() throws Exception {
        var dead = tree.client(TestCluster.address());
        var build = new Savepoints(dead, 1).begin("one", SOURCE);
        long ledger = client.names.ledgers().get(0);
        build.hold(List.of(ledger));
        expire(dead.session().zk());
        assertEquals(List.of("one abandoned"), states(all));
        refused(Kind.Unavailable, "session that began it has ended", () -> build.hold(List.of(ledger)));
        refused(Kind.Unavailable, "session that began it has ended", () -> build.finish(0, "", Map.of()));
        assertEquals(List.of(ledger), held("one"));
        assertTrue(create(all, "one").isReady());
        dead.close();
    }

    @Test
    void aMakerThatSleptCanNotTouchALaterSavepointOfThatName() throws IOException {
        var sleeper = all.begin("one", SOURCE);
        all.delete("one", true, null);
        all.create("one", SOURCE, "/q", 0, "", written(all, "/q", List.of("metadata")));
        List<Long> before = held("one");
        refused(Kind.Unavailable, "deletion has begun", () -> sleeper.hold(client.names.ledgers()));
        refused(Kind.Unavailable, "deletion has begun", () -> sleeper.finish(0, "", Map.of()));
        all.delete("one", true, sleeper.token());
        assertEquals(List.of("one ready"), states(all));
        assertEquals(before, held("one"));
        assertEquals(1, before.size());
    }

    @Test
    void aDeletionThatSleptCanNotTouchALaterSavepointOfThatName() throws Exception {
        create(all, "one");
        // Its session's multi, then the mark, then the release of the first ledger.
        try (var proxy = new ZkProxy(TestCluster.address(), 3, When.BEFORE, What.PAUSE)) {
            var sleeper = tree.client(proxy.address());
            var deletion = CompletableFuture.runAsync(() -> {
                try {
                    new Savepoints(sleeper, 1).delete("one", true, null);
                } catch (IOException e) {
                    throw new java.io.UncheckedIOException(e);
                }
            });
            proxy.awaitIt(deletion::isDone);
            assertEquals(List.of("one deleting"), states(all));
            all.delete("one", true, null);
            create(all, "one");
            proxy.resume();
            deletion.get(300, TimeUnit.SECONDS);
            sleeper.close();
        }
        assertEquals(List.of("one ready"), states(all));
        assertEquals(2, held("one").size());
    }

    @Test
    void aSavepointThatIsBeingDeletedTakesNoReferencesAndIsNotRestored() throws Exception {
        var build = all.begin("one", SOURCE);
        try (var proxy = new ZkProxy(TestCluster.address(), 2, When.AFTER, What.KILL)) {
            var victim = tree.client(proxy.address());
            var session = victim.session();
            var thread = new Thread(
                    () -> assertThrows(IOException.class, () -> new Savepoints(victim, 1).delete("one", true, null)));
            thread.setDaemon(true);
            thread.start();
            proxy.awaitIt(() -> !thread.isAlive());
            expire(session.zk());
            assertEquals(List.of("one deleting"), states(all));
            refused(Kind.Unavailable, "deletion has begun", () -> build.hold(client.names.ledgers()));
            refused(Kind.InvalidInput, "not ready but deleting", () -> all.restore("one", "/new"));
        }
        assertTrue(create(all, "one").isReady(), "the deletion is finished, and the name is free");
    }

    @Test
    void aMissingSavepointIsToldWithThoseThatAreThere() throws IOException {
        refused(Kind.NotFound, "There are: none", () -> all.restore("one", "/new"));
        create(all, "two");
        refused(Kind.NotFound, "There are: two", () -> all.restore("one", "/new"));
    }

    @Test
    void nothingIsRestoredOverSomething() throws IOException {
        create(all, "one");
        refused(Kind.InvalidInput, "There is something at /q", () -> all.restore("one", "/q"));
        assertThrows(ParentNotDirectoryException.class, () -> all.restore("one", "/q/metadata/x/y"));
        mustBeWhole(client, "/q");
    }

    @Test
    void aSavepointDeletedDuringARestoreLeavesNothingHalfRestored() throws IOException {
        create(all, "one");
        Restoration late = all.restore("one", "/new");
        Savepoints.Ready ready = all.read("one");
        all.delete("one", true, null);
        refused(Kind.Unavailable, "deleted while it was being restored", late::finish);
        late.abandon();
        refused(
                Kind.Unavailable,
                "deleted while it was being restored",
                () -> Restoration.begin(all, "one", "/newer", ready));
        assertNull(client.names.find("/new"));
        assertNull(client.names.find("/newer"));
    }

    @Test
    void aSavepointThatIsDeletedWhileItIsReadIsNotCalledDamaged() throws IOException {
        create(all, "one");
        var node = client.zk.node(all.path("one"));
        String chunk =
                client.settings.root + "/sp/one/" + client.zk.part("/sp/one").get(0);
        var data = client.zk.node(chunk);
        client.zk.write(List.of(Op.delete(chunk, -1)), () -> true);
        refused(Kind.Damaged, "does not have its CRC32C", () -> all.read("one", node));
        client.zk.write(List.of(Op.create(chunk, data.data(), client.settings.acl, CreateMode.PERSISTENT)), () -> true);
        all.delete("one", true, null);
        refused(Kind.Unavailable, "deleted while it was being read", () -> all.read("one", node));
        create(all, "one");
        assertEquals(
                node.stat().getVersion(), client.zk.node(all.path("one")).stat().getVersion());
        all.read("one");
    }

    @Test
    void aLedgerLostBehindOurBackIsTold() throws IOException {
        create(all, "one");
        client.names.delete("/q", true);
        long ledger = held("one").get(0);
        String znode = client.names.ledger(ledger);
        client.zk.write(List.of(Op.delete(znode + "/s-one", -1), Op.delete(znode, -1)), () -> true);
        refused(Kind.Damaged, "savepoint one holds is gone: " + ledger, () -> all.restore("one", "/new"));
        assertNull(client.names.find("/new"));
    }

    @Test
    void aListOfFilesMayBeLongerThanAZnodeAndIsChecked() throws IOException {
        var files = new TreeMap<String, FileEntry>();
        for (int i = 0; i < 20_000; i++) {
            files.put("state/0/" + i + "/ü " + i, new FileEntry("w-" + i * 31L * i, 0, i, i, i, 1024, i, i * i, i));
        }
        byte[] list = Savepoint.list(files);
        List<byte[]> chunks = new ArrayList<>(Savepoint.pack(list));
        assertTrue(chunks.size() > 1, chunks.size() + " chunks");
        Savepoint made = Savepoint.building(SOURCE, 5).ready(0, "", files, list, chunks.size());
        assertEquals(files, made.unpack("one", chunks));
        refused(
                Kind.Damaged,
                "does not have its CRC32C",
                () -> made.unpack("one", Savepoint.pack(Savepoint.list(new TreeMap<>(files.headMap("state/0/5"))))));
        chunks.get(1)[7] ^= 1;
        refused(Kind.Damaged, "savepoint one", () -> made.unpack("one", chunks));
        refused(Kind.Damaged, "cannot be read", () -> Savepoint.decode("one", "{}".getBytes(StandardCharsets.UTF_8)));
        refused(Kind.Damaged, "cannot be read", () -> Savepoint.decode("one", new byte[] {1}));
    }

    /** The tree that Python made before the jar took over; its bytes are on no bookie here, and are not asked for. */
    @Test
    void aSavepointMadeByTheVersionBeforeIsListedRestoredAndDeleted() throws IOException {
        String root = client.settings.root;
        client.names.delete("/q", true);
        sweep();
        var lines = Files.readAllLines(Path.of("src/test/resources/savepoint-by-the-version-before.txt"));
        for (String line : lines) {
            String[] words = line.split("\t", -1);
            String path = root + (words[0].equals("/") ? "" : words[0]);
            if (client.zk.stat(path) == null) {
                byte[] data = Base64.getDecoder().decode(words[2]);
                var ops = new ArrayList<Op>();
                ops.add(Op.create(path, data, client.settings.acl, CreateMode.PERSISTENT));
                for (int version = 0; version < Integer.parseInt(words[1]); version++) {
                    ops.add(Op.setData(path, data, version));
                }
                assertTrue(client.zk.write(ops, () -> true), path);
            }
        }
        assertEquals(List.of("before ready"), states(all));
        Savepoints.Ready ready = all.read("before");
        byte[] stored = client.zk.node(root + "/sp/before").data();
        assertArrayEquals(stored, ready.savepoint().encode(), "the same text");
        assertEquals(9, ready.files().size());
        assertEquals(
                ready.savepoint(),
                Savepoint.building("bk://kept/q", ready.savepoint().createdMs())
                        .ready(1, "3f0c", ready.files(), Savepoint.list(ready.files()), 1));
        all.restore("before", "/new").finish();
        for (var file : ready.files().entrySet()) {
            FileEntry copy = client.names.find("/new/" + file.getKey()).file();
            assertEquals(file.getValue().as(copy.write()), copy);
        }
        client.names.delete("/new", true);
        client.names.delete("/q", true);
        assertEquals(List.of(60L, 61L), held("before"));
        all.delete("before", true, null);
        assertEquals(List.of(), held("before"));
        assertEquals(List.of(), states(all));
    }

    @Test
    void moreNamesThanFitIntoAMultiAreRestoredInSeveral() throws IOException {
        client.names.mkdirs("/wide");
        var paths = new ArrayList<String>();
        for (int i = 0; i < 450; i++) {
            paths.add("a-name-of-some-length-" + "x".repeat(150) + i);
            client.names.publish("/wide/" + paths.get(i), client.packs.append("", new byte[0]), false);
        }
        all.create("wide", SOURCE, "/wide", 0, "", written(all, "/wide", paths));
        all.restore("wide", "/again").finish();
        assertEquals(
                paths.stream().sorted().toList(),
                client.names.list("/again").stream()
                        .map(status -> status.path().substring("/again/".length()))
                        .sorted()
                        .toList());
    }
}

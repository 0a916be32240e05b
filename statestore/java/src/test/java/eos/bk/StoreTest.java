package eos.bk;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import eos.bk.Names.LedgerGoneException;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Random;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.ZooKeeper;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What bk:// promises beyond Hadoop's contract; each test has a root of its own. */
class StoreTest {
    private static final String TEMPORARY = "/d/.1." + new UUID(1, 2) + ".TID3.tmp";

    private Configuration conf;
    private Client client;

    @BeforeEach
    void start() throws IOException {
        conf = TestCluster.configure(new Configuration());
        conf.set("fs.bk.root", "/eos-bk-test/" + UUID.randomUUID());
        conf.setInt("fs.bk.maintenance.ms", 0);
        conf.setInt("fs.bk.grace.ms", 0);
        client = new Client(new Settings(URI.create(TestCluster.uri()), conf));
        client.names.mkdirs("/d");
    }

    @AfterEach
    void stop() {
        client.close();
    }

    private Client another() throws IOException {
        return new Client(new Settings(URI.create(TestCluster.uri()), conf));
    }

    private void write(String path, byte[] data) throws IOException {
        try (var out = new BkOutputStream(client, path, true)) {
            out.write(data, 0, data.length);
        }
    }

    private static byte[] read(Client client, String path) throws IOException {
        try (var in = new BkInputStream(client, path, client.names.find(path).file())) {
            return in.readAllBytes();
        }
    }

    private static byte[] random(int size) {
        var data = new byte[size];
        new Random(size).nextBytes(data);
        return data;
    }

    private long ledgerOf(String path) throws IOException {
        return client.names.find(path).file().ledger();
    }

    private boolean isRegistered(long ledger) throws IOException {
        return client.zk.stat(client.names.ledger(ledger)) != null;
    }

    private void retirePacks() {
        client.packs.close();
    }

    @Test
    void aFileIsSeenByOthersAtCloseAndNotBefore() throws IOException {
        var other = another();
        var out = new BkOutputStream(client, "/d/f", false);
        out.write("state".getBytes(StandardCharsets.UTF_8));
        assertNull(other.names.find("/d/f"));
        out.close();
        assertArrayEquals("state".getBytes(StandardCharsets.UTF_8), read(other, "/d/f"));
        other.close();
    }

    @Test
    void anAbortedFileIsNeverSeen() throws IOException {
        for (int size : new int[] {10, 3 << 20}) {
            var out = new BkOutputStream(client, "/d/f", false);
            out.write(random(size));
            out.abort();
            out.close();
            assertNull(client.names.find("/d/f"));
        }
    }

    @Test
    void largeFilesHaveTheirOwnLedgerAndCanBeReadAnywhere() throws IOException {
        byte[] data = random((5 << 20) + 17);
        write("/d/large", data);
        write("/d/small", random(10));
        assertNotEquals(ledgerOf("/d/small"), ledgerOf("/d/large"));
        assertArrayEquals(data, read(client, "/d/large"));
        try (var in = new BkInputStream(
                client, "/d/large", client.names.find("/d/large").file())) {
            for (int at : new int[] {data.length - 1, 0, (1 << 20) - 1, 1 << 20, 3 << 20, 5}) {
                in.seek(at);
                assertEquals(data[at] & 0xff, in.read());
            }
        }
    }

    @Test
    void sizesAtTheEdgesOfEntriesAndPacks() throws IOException {
        conf.setInt("fs.bk.entry.bytes", 1000);
        conf.setInt("fs.bk.pack.file.bytes", 2500);
        client.close();
        client = another();
        for (int size : new int[] {0, 1, 999, 1000, 1001, 2499, 2500, 2501, 3000, 3001, 25_000}) {
            write("/d/f" + size, random(size));
            assertArrayEquals(random(size), read(client, "/d/f" + size), size + " bytes");
        }
    }

    @Test
    void bytesThatDoNotHaveTheirChecksumAreRefused() throws IOException {
        write("/d/f", random(100));
        write("/d/g", random(101));
        FileEntry g = client.names.find("/d/g").file();
        FileEntry f = client.names.find("/d/f").file();
        var wrong = new FileEntry("w", 0, g.ledger(), g.first(), g.last(), g.entrySize(), 101, f.crc(), 0);
        assertTrue(assertThrows(IOException.class, () -> client.ledgers.readSmall("/d/f", wrong))
                .getMessage()
                .contains("damaged"));
    }

    @Test
    void smallFilesShareAPackUntilItIsFull() throws IOException {
        conf.setInt("fs.bk.pack.files", 3);
        client.close();
        client = another();
        for (int i = 0; i < 4; i++) {
            write("/d/" + i, random(i + 1));
        }
        assertEquals(ledgerOf("/d/0"), ledgerOf("/d/2"));
        assertNotEquals(ledgerOf("/d/2"), ledgerOf("/d/3"));
    }

    @Test
    void aFencedPackIsRolledAndWhatItHoldsStays() throws IOException {
        write("/d/before", random(10));
        client.ledgers.recover(ledgerOf("/d/before"));
        write("/d/after", random(20));
        assertNotEquals(ledgerOf("/d/before"), ledgerOf("/d/after"));
        assertArrayEquals(random(10), read(client, "/d/before"));
        assertArrayEquals(random(20), read(client, "/d/after"));
    }

    @Test
    void readersDoNotFenceALiveWriter() throws IOException {
        write("/d/a", random(10));
        var other = another();
        assertArrayEquals(random(10), read(other, "/d/a"));
        write("/d/b", random(20));
        assertEquals(ledgerOf("/d/a"), ledgerOf("/d/b"));
        assertArrayEquals(random(20), read(other, "/d/b"));
        other.close();
    }

    @Test
    void aTemporaryFileGetsItsNameByItsRename() throws Exception {
        var context = FileContext.getFileContext(URI.create(TestCluster.uri()), conf);
        var fs = FileSystem.newInstance(URI.create(TestCluster.uri()), conf);
        for (String content : new String[] {"one", "two"}) {
            try (var out = fs.create(new Path(TEMPORARY), false)) {
                out.writeBytes(content);
            }
            assertNull(client.names.find(TEMPORARY));
            assertTrue(fs.exists(new Path(TEMPORARY)));
            context.rename(new Path(TEMPORARY), new Path("/d/1"), Options.Rename.OVERWRITE);
            assertFalse(fs.exists(new Path(TEMPORARY)));
            assertEquals(content, new String(read(client, "/d/1"), StandardCharsets.UTF_8));
        }
        try (var out = fs.create(new Path(TEMPORARY), false)) {
            out.writeBytes("three");
        }
        assertThrows(
                org.apache.hadoop.fs.FileAlreadyExistsException.class,
                () -> context.rename(new Path(TEMPORARY), new Path("/d/1")));
        assertTrue(fs.exists(new Path(TEMPORARY)));
    }

    @Test
    void renamesCountGenerationsAndADirectoryMovesWhole() throws IOException {
        client.names.mkdirs("/d/sub/below");
        write("/d/sub/f", random(10));
        client.names.rename("/d/sub", "/e", false);
        assertNull(client.names.find("/d/sub"));
        assertTrue(client.names.find("/e/below").isDirectory());
        assertEquals(1, client.names.find("/e/f").file().generation());
        assertArrayEquals(random(10), read(client, "/e/f"));
    }

    @Test
    void filesCannotHaveChildren() throws IOException {
        write("/d/f", random(10));
        assertThrows(org.apache.hadoop.fs.ParentNotDirectoryException.class, () -> write("/d/f/child", random(10)));
        assertThrows(org.apache.hadoop.fs.ParentNotDirectoryException.class, () -> client.names.mkdirs("/d/f/child"));
    }

    @Test
    void namesThatZooKeeperForbidsAreKept() throws IOException {
        for (String name : new String[] {"100%", "a b", "tab\t", "smile\uD83D\uDE00", "private\uE000", "naïve"}) {
            write("/d/" + name, random(1));
            assertEquals(1, client.names.find("/d/" + name).file().length());
            assertEquals(name, Names.decode(Names.encode(name)));
        }
        assertEquals(6, client.names.list("/d").size());
    }

    @Test
    void aLedgerIsFreedWhenNothingRefersToIt() throws Exception {
        write("/d/gone", random(2 << 20));
        write("/d/kept", random(3 << 20));
        long gone = ledgerOf("/d/gone");
        client.names.delete("/d/gone", false);
        client.sweeper.sweep(false);
        assertFalse(isRegistered(gone));
        assertThrows(
                IOException.class, () -> Ledgers.await(client.session().bk().getLedgerMetadata(gone)));
        assertArrayEquals(random(3 << 20), read(client, "/d/kept"));
    }

    @Test
    void theGraceTimeProtectsReadersOfDeletedFiles() throws Exception {
        conf.setInt("fs.bk.grace.ms", 3_600_000);
        client.close();
        client = another();
        write("/d/gone", random(2 << 20));
        FileEntry file = client.names.find("/d/gone").file();
        client.names.delete("/d/gone", false);
        client.sweeper.sweep(true);
        try (var in = new BkInputStream(client, "/d/gone", file)) {
            assertArrayEquals(random(2 << 20), in.readAllBytes());
        }
    }

    @Test
    void aLivePackIsNotFreedWhileItsWriterLives() throws IOException {
        write("/d/f", random(10));
        long pack = ledgerOf("/d/f");
        client.names.delete("/d/f", false);
        var other = another();
        other.sweeper.sweep(true);
        assertTrue(isRegistered(pack));
        other.close();
    }

    @Test
    void aDeadWritersPackIsClosedAndFreed() throws IOException {
        write("/d/f", random(10));
        write("/d/g", random(10));
        long pack = ledgerOf("/d/f");
        var dead = client.session();
        client = another();
        Zk.uninterrupted(() -> {
            dead.zk().close();
            return null;
        });
        client.sweeper.sweep(true);
        assertArrayEquals(random(10), read(client, "/d/f"));
        client.names.delete("/d/f", false);
        client.sweeper.sweep(true);
        assertTrue(isRegistered(pack), "another file still refers to it");
        client.names.delete("/d/g", false);
        client.sweeper.sweep(true);
        assertFalse(isRegistered(pack));
    }

    @Test
    void aLatePublisherWhoseLedgerWasFreedWritesItsBytesAgain() throws IOException {
        client.unnamed.close(TEMPORARY, random(10), false);
        long pack = client.unnamed.find(TEMPORARY).file().ledger();
        retirePacks();
        client.sweeper.sweep(false);
        assertFalse(isRegistered(pack));
        var late = client.unnamed.find(TEMPORARY).file();
        assertThrows(LedgerGoneException.class, () -> client.names.publish("/d/late", late, false));
        client.unnamed.rename(TEMPORARY, "/d/1", false);
        assertArrayEquals(random(10), read(client, "/d/1"));
    }

    @Test
    void aSparsePackIsCompactedUnderAnOpenReader() throws Exception {
        for (int i = 0; i < 10; i++) {
            write("/d/" + i, random(100 + i));
        }
        long pack = ledgerOf("/d/0");
        var open = new BkInputStream(client, "/d/0", client.names.find("/d/0").file());
        for (int i = 1; i < 10; i++) {
            client.names.delete("/d/" + i, false);
        }
        retirePacks();
        client.compactor.compact();
        assertNotEquals(pack, ledgerOf("/d/0"));
        client.sweeper.sweep(false);
        assertFalse(isRegistered(pack));
        assertArrayEquals(random(100), open.readAllBytes());
        var other = another();
        assertArrayEquals(random(100), read(other, "/d/0"));
        other.close();
    }

    @Test
    void unregisteredLedgersOfDeadWritersAreFound() throws Exception {
        var dead = another();
        long ledger = dead.ledgers.create(dead.session()).getId();
        dead.zk.write(List.of(Op.delete(dead.names.ledger(ledger), -1)), () -> true);
        client.sweeper.sweep(true);
        assertNotNull(Ledgers.await(client.session().bk().getLedgerMetadata(ledger)));
        dead.close();
        client.sweeper.sweep(true);
        assertThrows(
                IOException.class, () -> Ledgers.await(client.session().bk().getLedgerMetadata(ledger)));
    }

    @Test
    void anExpiredSessionIsReplaced() throws Exception {
        write("/d/before", random(10));
        expire(client.session().zk());
        write("/d/after", random(20));
        assertArrayEquals(random(10), read(client, "/d/before"));
        assertArrayEquals(random(20), read(client, "/d/after"));
        assertNotEquals(ledgerOf("/d/before"), ledgerOf("/d/after"));
    }

    private static void expire(ZooKeeper zk) throws Exception {
        var thief = new ZooKeeper(TestCluster.address(), 10_000, event -> {}, zk.getSessionId(), zk.getSessionPasswd());
        while (thief.getState() != ZooKeeper.States.CONNECTED) {
            Thread.sleep(10);
        }
        thief.close();
        while (zk.getState().isAlive()) {
            Thread.sleep(10);
        }
    }

    @Test
    void addressesThatHadoopMisreadsAreRefused() {
        for (String address : new String[] {"bk://a:1,b:2/x", "bk://my_name/x", "bk://unknown/x"}) {
            assertThrows(IOException.class, () -> new Settings(URI.create(address), conf), address);
        }
    }

    @Test
    void aNamedEnsembleIsFound() throws IOException {
        conf.set("fs.bk.prod.metadata-service-uri", "zk+hierarchical://zk1:2181;zk2:2182/bk/ledgers");
        var settings = new Settings(URI.create("bk://prod/x"), conf);
        assertEquals("zk1:2181,zk2:2182", settings.zkServers);
        assertEquals("/bk/ledgers", settings.ledgersPath);
    }

    @Test
    void anInterruptDoesNotLeaveAnOutcomeUnknown() throws Exception {
        Thread.currentThread().interrupt();
        write("/d/f", random(10));
        assertTrue(Thread.interrupted(), "the flag is kept");
        assertArrayEquals(random(10), read(client, "/d/f"));
    }

    @Test
    void aRefusalOfZooKeeperIsNotTakenForAnUnknownOutcome() throws IOException {
        assertFalse(client.zk.write(List.of(Op.check("/not/there", -1)), () -> true));
    }

    /** Needs bookies that may be taken away, hence the tests' own cluster. */
    @Test
    void aLostBookieStopsNeitherWritersNorReaders() throws Exception {
        Assumptions.assumeTrue(TestCluster.isOurs(), "the bookies of -Dbk.address aren't ours to stop");
        byte[] large = random((3 << 20) + 5);
        write("/d/packed", random(10));
        write("/d/large", large);
        TestCluster.stopBookie();
        try {
            assertArrayEquals(random(10), read(client, "/d/packed"));
            assertArrayEquals(large, read(client, "/d/large"));
            for (int i = 0; i < 20; i++) {
                write("/d/after" + i, random(20 + i));
            }
            write("/d/large2", large);
            var other = another();
            assertArrayEquals(random(39), read(other, "/d/after19"));
            assertArrayEquals(large, read(other, "/d/large2"));
            other.close();
        } finally {
            TestCluster.startBookie();
        }
    }
}

package eos.bk;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeout;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathIsNotEmptyDirectoryException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.ZooKeeper;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What bk:// promises beyond Hadoop's contract. */
class StoreTest extends OwnRoot {
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

    /** A library's wrapper may close what it wraps twice, and pass only the second answer on. */
    @ParameterizedTest
    @ValueSource(ints = {10, 3 << 20})
    void aFileThatCouldNotBeClosedSaysSoAgain(int size) throws IOException {
        var out = new BkOutputStream(client, "/d/f", false);
        out.write(random(size));
        write("/d/f", random(1)); // by another, meanwhile
        assertThrows(FileAlreadyExistsException.class, out::close);
        var again = assertThrows(IOException.class, out::close);
        assertEquals("/d/f could not be closed", again.getMessage());
        assertInstanceOf(FileAlreadyExistsException.class, again.getCause());
        out.abort();
        out.close();
        assertArrayEquals(random(1), read(client, "/d/f"));
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
    void bookiesThatAreTooFewAreToldByTheOptionThatAsksForMore() throws IOException {
        // With four in each place there are three bookies.
        int[][] quorums = {{0, 4, 0}, {0, 0, 4}, {2, 3, 0}, {2, 0, 3}, {3, 1, 2}, {4, 0, 0}};
        for (int[] quorum : quorums) {
            conf.setInt("fs.bk.ensemble", quorum[0]);
            conf.setInt("fs.bk.write-quorum", quorum[1]);
            conf.setInt("fs.bk.ack-quorum", quorum[2]);
            var other = another();
            IOException error = assertThrows(IOException.class, () -> other.ledgers.create(other.session()));
            String told = quorum[0] == 4 ? "as fs.bk.ensemble says" : "fs.bk.ack-quorum at most fs.bk.write-quorum";
            assertTrue(error.getMessage().contains(told), error.getMessage());
            assertEquals(quorum[0] == 2 || quorum[0] == 3, error instanceof Failed, "waiting helps only without it");
            other.close();
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
    void temporaryFilesThatWaitForTheirRenameTakeABoundedHeap() throws IOException {
        long held = 0;
        for (int i = 0; i < Unnamed.AT_MOST_BYTES / Settings.MIB + 2; i++) {
            String path = "/d/." + i + "." + new UUID(i, 2) + ".tmp";
            write(path, random(Settings.MIB));
            byte[] kept = client.unnamed.read(path);
            held += kept == null ? 0 : kept.length;
            assertEquals(kept == null, client.names.find(path) != null);
        }
        assertEquals(Unnamed.AT_MOST_BYTES, held);
    }

    @Test
    void whatReplacesAHeldTemporaryFileIsNotHiddenByIt() throws IOException {
        byte[] large = random((1 << 20) + 1);
        write(TEMPORARY, random(10));
        write(TEMPORARY, large);
        assertNull(client.unnamed.find(TEMPORARY));
        client.names.rename(TEMPORARY, "/d/1", false);
        assertArrayEquals(large, read(client, "/d/1"));
    }

    @Test
    void aDirectoryWithAHeldTemporaryFileIsNotEmpty() throws IOException {
        var fs = FileSystem.newInstance(URI.create(TestCluster.uri()), conf);
        fs.create(new Path(TEMPORARY), false).close();
        assertThrows(PathIsNotEmptyDirectoryException.class, () -> fs.delete(new Path("/d"), false));
        assertTrue(fs.rename(new Path(TEMPORARY), new Path("/d/1")));
    }

    @Test
    void aFileWithAWrongChecksumIsNeverReadToItsEnd() throws IOException {
        byte[] data = random((2 << 20) + 1);
        write("/d/f", data);
        FileEntry f = client.names.find("/d/f").file();
        var wrong = new FileEntry(
                f.write(), 0, f.ledger(), f.first(), f.last(), f.entrySize(), f.length(), f.crc() + 1, f.mtime());
        var in = new BkInputStream(client, "/d/f", wrong);
        for (int tries = 0; tries < 2; tries++) {
            Failed said = assertThrows(Failed.class, in::readAllBytes);
            assertEquals("Damaged", said.kind());
            assertTrue(said.getMessage().contains("/d/f is damaged"), said.getMessage());
        }
    }

    /** As one that finds no memory left. */
    @Test
    void aFileWhoseWritingFailedInWhateverWayIsNotClosed() {
        var out = new BkOutputStream(null, "/d/f", false);
        assertThrows(NullPointerException.class, () -> out.write(1));
        String said = assertThrows(IOException.class, out::close).getMessage();
        assertEquals("/d/f was not made visible: writing it failed", said);
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

    /** ZooKeeper only closes the connection, and would do so for as long as it is tried. */
    @Test
    void aRenameThatIsTooLargeForZooKeeperIsRefusedAndNothingHasMoved() throws IOException {
        conf.setInt("fs.bk.rename.limit", 10_000);
        var patient = another();
        for (int i = 0; i < 600; i++) {
            patient.names.mkdirs("/d/sub/" + i + "x".repeat(700));
        }
        String said = assertTimeout(Duration.ofSeconds(30), () -> assertThrows(
                        IOException.class, () -> patient.names.rename("/d/sub", "/e", false))
                .getMessage());
        assertTrue(said.contains("by default it takes 1 MiB"), said);
        assertEquals(600, patient.names.list("/d/sub").size());
        assertNull(patient.names.find("/e"));
        patient.close();
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
            assertEquals(name, Percent.decode(Percent.encode(name)));
        }
        assertEquals(6, client.names.list("/d").size());
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
        while (thief.getState().isAlive() && thief.getState() != ZooKeeper.States.CONNECTED) {
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

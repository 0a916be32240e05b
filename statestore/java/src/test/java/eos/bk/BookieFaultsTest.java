package eos.bk;

import static eos.bk.TestTree.random;
import static eos.bk.TestTree.read;
import static eos.bk.TestTree.write;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.net.URI;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.fs.FileSystem;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Bookies go, bits flip and ledgers are fenced while files are written and read. */
class BookieFaultsTest {
    private static final byte[] SMALL = random(1000);
    private static final byte[] OTHER = random(2000);

    private final TestTree tree = new TestTree(Settings.MIB);
    private final Client survivor = tree.survivor;

    @AfterEach
    void stop() {
        tree.close();
    }

    /** As AutoRecovery does when a bookie is gone: it opens the ledger with recovery, which fences its writer. */
    @Test
    void recoveryOfAPackWithWritesUnderWayLosesNothing() throws Exception {
        survivor.names.mkdirs("/d");
        var writer = tree.client(TestCluster.address());
        var fenced = new ConcurrentSkipListSet<Long>();
        var count = new AtomicInteger();
        var written = CompletableFuture.runAsync(() -> {
            try {
                while (count.get() < 60 || fenced.size() < 3) {
                    write(writer, "/d/" + count, random(100 + count.get()));
                    count.incrementAndGet();
                }
            } catch (IOException e) {
                throw new CompletionException(e);
            }
        });
        while (!written.isDone()) {
            for (long ledger : survivor.names.ledgers()) {
                if (fenced.size() < 3 && !fenced.contains(ledger)) {
                    survivor.ledgers.recover(ledger);
                    fenced.add(ledger);
                }
            }
        }
        written.get();
        for (int i = 0; i < count.get(); i++) {
            assertArrayEquals(random(100 + i), read(survivor, "/d/" + i));
        }
        writer.close();
        tree.mustBeTidy("recovery with writes under way");
    }

    @Test
    void theEnsembleChangesInMidPack() throws Exception {
        assumeTrue(TestCluster.isOurs(), "these bookies aren't ours to stop");
        survivor.names.mkdirs("/d");
        TestCluster.startBookie();
        write(survivor, "/d/before", SMALL);
        var reader = tree.client(TestCluster.address());
        assertArrayEquals(SMALL, read(reader, "/d/before"));
        long pack = survivor.names.find("/d/before").file().ledger();
        var ensemble = Ledgers.metadata(survivor.session(), pack).getEnsembleAt(0);
        TestCluster.stopBookie(ensemble.get(0).toString());
        for (int i = 0; i < 10; i++) {
            write(survivor, "/d/" + i, random(500 + i));
        }
        assertEquals(pack, survivor.names.find("/d/9").file().ledger(), "the pack goes on");
        var metadata = Ledgers.metadata(survivor.session(), pack);
        assertNotEquals(ensemble, metadata.getEnsembleAt(11), "on another bookie");
        for (int i = 0; i < 10; i++) {
            assertArrayEquals(random(500 + i), read(reader, "/d/" + i), "a reader whose view of the ledger is older");
        }
        reader.close();
    }

    @Test
    void aFlippedBitIsReadFromAnotherReplicaAndNoneLeftIsAnErrorThatNamesTheEntry() throws Exception {
        assumeTrue(TestCluster.isOurs(), "these bookies aren't ours to damage");
        var tree = new TestTree(600);
        var survivor = tree.survivor;
        survivor.names.mkdirs("/d");
        write(survivor, "/d/before", OTHER);
        write(survivor, "/d/f", SMALL);
        FileEntry file = survivor.names.find("/d/f").file();
        survivor.packs.close();
        byte[] second = Arrays.copyOfRange(SMALL, 600, 1000);
        var bookies = Ledgers.metadata(survivor.session(), file.ledger()).getEnsembleAt(0).stream()
                .map(Object::toString)
                .toList();
        var fs = FileSystem.newInstance(URI.create(TestCluster.uri()), tree.conf);

        TestCluster.damage(bookies.get(1), second);
        var reader = tree.client(TestCluster.address());
        assertArrayEquals(SMALL, read(reader, "/d/f"));
        var bad = Maintenance.replicas(fs, file.ledger(), file.first(), file.last())
                .lines()
                .filter(line -> !line.endsWith(" good"))
                .toList();
        assertEquals(1, bad.size(), bad.toString());
        assertTrue(bad.get(0).startsWith(file.last() + " " + bookies.get(1) + " "), bad.get(0));

        TestCluster.damage(bookies.get(0), second);
        TestCluster.damage(bookies.get(2), second);
        var other = tree.client(TestCluster.address());
        String said = assertThrows(IOException.class, () -> read(other, "/d/f")).getMessage();
        assertTrue(said.contains("/d/f can't be read"), said);
        assertTrue(said.contains("entry " + file.last() + " of ledger " + file.ledger()), said);
        assertArrayEquals(OTHER, read(other, "/d/before"), "its neighbour in the pack");
        reader.close();
        other.close();
        tree.close();
    }
}

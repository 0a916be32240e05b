package eos.bk;

import static eos.bk.TestTree.random;
import static eos.bk.TestTree.read;
import static eos.bk.TestTree.write;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import eos.bk.Copies.Said;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.bookkeeper.net.BookieId;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Who reads while bookies are started again waits for them, and no longer than is of use. */
@Timeout(120)
class BookiesAwayTest {
    private static final byte[] SMALL = random(1000);
    private static final byte[] LARGE = random((2 << 20) + 1);
    private static final long AT_ONCE_MS = 5_000;

    private TestTree tree;

    @BeforeEach
    void start() throws IOException {
        assumeTrue(TestCluster.isOurs(), "these bookies aren't ours to stop");
        tree = new TestTree(Settings.MIB);
        tree.survivor.names.mkdirs("/d");
        write(tree.survivor, "/d/small", SMALL);
        write(tree.survivor, "/d/large", LARGE);
    }

    @AfterEach
    void stop() {
        tree.close();
    }

    private static byte[] readUnchecked(Client client, String path) {
        try {
            return read(client, path);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Test
    void aReaderWaitsForBookiesThatAreStartedAgain() throws Exception {
        var reader = tree.client(TestCluster.address());
        Callable<Void> startAgain = TestCluster.stopBookies();
        CompletableFuture<byte[]> small;
        CompletableFuture<byte[]> large;
        try {
            small = CompletableFuture.supplyAsync(() -> readUnchecked(reader, "/d/small"));
            large = CompletableFuture.supplyAsync(() -> readUnchecked(reader, "/d/large"));
            Thread.sleep(2_000);
            assertFalse(small.isDone() || large.isDone(), "given up");
        } finally {
            startAgain.call();
        }
        assertArrayEquals(SMALL, small.get());
        assertArrayEquals(LARGE, large.get());
        reader.close();
    }

    @Test
    void whoStaysAwayIsNamedAndNotWaitedForAgainAndAnInterruptEndsTheWait() throws Exception {
        tree.conf.setInt("fs.bk.patience.ms", 8_000);
        var reader = tree.client(TestCluster.address());
        Callable<Void> startAgain = TestCluster.stopBookies();
        try {
            Thread.currentThread().interrupt();
            assertThrows(InterruptedIOException.class, () -> read(reader, "/d/small"));
            assertTrue(Thread.interrupted(), "the interrupt is kept");
            String said = assertThrows(IOException.class, () -> read(reader, "/d/small"))
                    .getMessage();
            assertTrue(said.contains("no bookie gives a good copy of entry 0 of ledger"), said);
            assertTrue(said.contains("Bookie handle is not available"), said);
            long begun = System.nanoTime();
            assertThrows(IOException.class, () -> read(reader, "/d/large"));
            long took = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begun);
            assertTrue(took < AT_ONCE_MS, took + " ms for the next file");
        } finally {
            startAgain.call();
        }
        assertArrayEquals(SMALL, read(reader, "/d/small"));
        reader.close();
    }

    @Test
    void aLedgerThatIsGoneIsToldAtOnce() throws Exception {
        long ledger = tree.survivor.names.find("/d/large").file().ledger();
        Ledgers.delete(tree.survivor.session(), ledger);
        var reader = tree.client(TestCluster.address());
        long begun = System.nanoTime();
        String said =
                assertThrows(IOException.class, () -> read(reader, "/d/large")).getMessage();
        long took = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begun);
        assertTrue(said.contains("/d/large can't be read: BookKeeper has no ledger " + ledger), said);
        assertTrue(took < AT_ONCE_MS, took + " ms");
        reader.close();
    }

    @Test
    void anAbsenceCountsFromItsBeginAndOneThatEndedUnseenCountsAnew() {
        var one = BookieId.parse("one:3181");
        var silent = Map.of(one, new Said("Bookie handle is not available", false));
        var absences = new Absences(1_000);
        for (long now = 0; now < 1_000; now += 200) {
            assertTrue(absences.mayEnd(silent, now));
        }
        assertFalse(absences.mayEnd(silent, 1_000));
        assertFalse(absences.mayEnd(silent, 1_200), "long away");
        assertTrue(absences.mayEnd(silent, 9_000), "nobody looked for a while");
        assertFalse(absences.mayEnd(Map.of(one, new Said("good", true)), 9_100));
        assertTrue(absences.mayEnd(silent, 9_200));
        assertTrue(absences.mayEnd(silent, 9_900));
        absences.forget();
        assertTrue(absences.mayEnd(silent, 10_400));
    }
}

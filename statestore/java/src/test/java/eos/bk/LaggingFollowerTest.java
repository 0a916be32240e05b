package eos.bk;

import static eos.bk.TestTree.random;
import static eos.bk.TestTree.read;
import static eos.bk.TestTree.write;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import eos.bk.ZkProxy.What;
import eos.bk.ZkProxy.When;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * One client talks to ZooKeeper's leader, the other to a follower that hears of nothing until the test lets it. What
 * the second one reads may be old; it is whole, never goes back, and makes it do no harm.
 */
@Timeout(180)
class LaggingFollowerTest {
    private static final byte[] SMALL = random(1000);
    private static final byte[] OTHER = random(2000);
    private static final byte[] LARGE = random((2 << 20) + 5);
    private static final String TEMPORARY = "/d/.1." + new UUID(1, 2) + ".TID3.tmp";

    private static LaggingQuorum quorum;

    private final ExecutorService threads = Executors.newCachedThreadPool();
    private TestTree tree;
    private Client ahead;
    private ZkProxy proxy;
    private FileSystem fs;
    private Client behind;
    private int asked;

    @BeforeAll
    static void startQuorum() throws Exception {
        quorum = new LaggingQuorum();
    }

    @AfterAll
    static void stopQuorum() throws Exception {
        quorum.close();
    }

    @BeforeEach
    void start() throws Exception {
        tree = new TestTree(Settings.MIB, quorum.leader());
        ahead = tree.survivor;
        ahead.names.mkdirs("/d");
        proxy = new ZkProxy(quorum.follower());
        fs = FileSystem.newInstance(URI.create("bk://" + proxy.address()), tree.conf);
        behind = ((BookKeeperFileSystem) fs).client();
        behind.session();
    }

    @AfterEach
    void stop() throws Exception {
        quorum.release();
        behind.close();
        tree.waitUntilOthersAreDead();
        tree.mustBeTidy("a follower that lagged");
        threads.shutdownNow();
        proxy.close();
        tree.close();
    }

    /** From here on the follower lags. */
    private void hold() throws IOException {
        behind.zk.sync();
        quorum.hold();
        asked = proxy.asked();
    }

    /** Begins what the old tree tempts it to, and lets the follower catch up once the leader was asked. */
    private <T> Future<T> tempt(Callable<T> call) throws InterruptedException {
        Future<T> answer = threads.submit(call);
        awaitQuestion(proxy, asked, answer);
        quorum.release();
        return answer;
    }

    private static void awaitQuestion(ZkProxy proxy, int before, Future<?> answer) throws InterruptedException {
        while (proxy.asked() == before && !answer.isDone()) {
            Thread.sleep(5);
        }
    }

    /** Waits for a change made through the follower, which may answer before the leader has applied it itself. */
    private void finish(Future<?> change) throws Exception {
        change.get();
        ahead.zk.sync();
    }

    private static void mustFail(Class<? extends IOException> error, Future<?> answer) {
        Throwable said = assertThrows(ExecutionException.class, answer::get).getCause();
        assertTrue(error.isInstance(said), said.toString());
    }

    @Test
    void aReaderSeesTheOldTreeWholeButOpensWhatIsClosed() throws Exception {
        write(ahead, "/d/f", SMALL);
        write(ahead, "/d/large", LARGE);
        hold();
        write(ahead, "/d/f", OTHER);
        ahead.names.delete("/d/large", false);
        write(ahead, "/d/new", OTHER);
        assertArrayEquals(SMALL, read(behind, "/d/f"));
        assertArrayEquals(LARGE, read(behind, "/d/large"));
        assertNull(behind.names.find("/d/new"));
        var opened = tempt(() -> {
            try (var in = fs.open(new Path("/d/new"))) {
                return in.readAllBytes();
            }
        });
        assertArrayEquals(OTHER, opened.get());
        assertArrayEquals(OTHER, read(behind, "/d/f"), "it doesn't go back");
        assertNull(behind.names.find("/d/large"));
    }

    @Test
    void aReaderOfBytesThatAreFreedIsToldThatTheFileIsGone() throws Exception {
        write(ahead, "/d/large", LARGE);
        hold();
        write(ahead, "/d/large", OTHER);
        assertEquals(1, ahead.sweeper.sweep(false).size());
        mustFail(FileNotFoundException.class, tempt(() -> {
            while (true) {
                assertArrayEquals(LARGE, read(behind, "/d/large"));
            }
        }));
        assertArrayEquals(OTHER, read(behind, "/d/large"));
    }

    @Test
    void whatAnOldTreeAllowsIsRefusedByTheNewOne() throws Exception {
        write(ahead, "/d/a", SMALL);
        write(behind, "/d/own", OTHER);
        hold();
        ahead.names.rename("/d/a", "/d/b", false);
        assertNotNull(behind.names.find("/d/a"));
        mustFail(FileNotFoundException.class, tempt(() -> {
            behind.names.rename("/d/a", "/d/x", false);
            return null;
        }));
        hold();
        write(ahead, "/d/c", OTHER);
        assertNull(behind.names.find("/d/c"));
        mustFail(FileAlreadyExistsException.class, tempt(() -> {
            try (var out = new BkOutputStream(behind, "/d/c", false)) {
                out.write(SMALL);
            }
            return null;
        }));
        assertArrayEquals(SMALL, read(ahead, "/d/b"));
        assertArrayEquals(OTHER, read(ahead, "/d/c"));
        assertNull(ahead.names.find("/d/x"));
    }

    @Test
    void aRenameThatOverwritesReplacesWhatIsThereNow() throws Exception {
        write(ahead, "/d/target", SMALL);
        write(behind, "/d/own", OTHER);
        hold();
        write(ahead, "/d/target", LARGE);
        assertEquals(SMALL.length, behind.names.find("/d/target").file().length());
        var renamed = tempt(() -> {
            behind.names.rename("/d/own", "/d/target", true);
            return null;
        });
        finish(renamed);
        assertNull(ahead.names.find("/d/own"));
        assertArrayEquals(OTHER, read(ahead, "/d/target"));
    }

    @Test
    void aWriterWhosePackWasFreedBehindItsBackWritesItsBytesAgain() throws Exception {
        behind.unnamed.close(TEMPORARY, SMALL, false);
        long pack = behind.unnamed.find(TEMPORARY).file().ledger();
        behind.packs.close();
        ahead.zk.sync();
        hold();
        assertEquals(List.of(pack), ahead.sweeper.sweep(false));
        assertNotNull(behind.zk.stat(behind.names.ledger(pack)));
        finish(tempt(() -> behind.unnamed.rename(TEMPORARY, "/d/1", false)));
        assertArrayEquals(SMALL, read(ahead, "/d/1"));
        assertNotEquals(pack, ahead.names.find("/d/1").file().ledger());
    }

    /** The sweeper has its lock and looks round, while what it looks at stands still and a file is published. */
    @Test
    void aSweeperDoesNotFreeALedgerThatIsReferredToMeanwhile() throws Exception {
        ahead.unnamed.close(TEMPORARY, SMALL, false);
        long pack = ahead.unnamed.find(TEMPORARY).file().ledger();
        ahead.packs.close();
        tree.conf.setInt("fs.bk.grace.ms", 3_600_000);
        var marker = tree.client(quorum.leader());
        marker.sweeper.sweep(false);
        tree.conf.setInt("fs.bk.grace.ms", 0);
        int lock = 2; // after the multi for the session
        try (var proxy = new ZkProxy(quorum.follower(), lock, When.AFTER, What.PAUSE)) {
            var sweeper = tree.client(proxy.address());
            sweeper.zk.sync();
            var swept = threads.submit(() -> sweeper.sweeper.sweep(false));
            proxy.awaitIt(swept::isDone);
            quorum.hold();
            ahead.unnamed.rename(TEMPORARY, "/d/1", false);
            int before = proxy.asked();
            proxy.resume();
            awaitQuestion(proxy, before, swept);
            assertEquals(lock + 1, proxy.multis(), "it tries to free the pack");
            quorum.release();
            assertEquals(List.of(), swept.get());
            sweeper.close();
        }
        marker.close();
        assertArrayEquals(SMALL, read(ahead, "/d/1"));
        assertEquals(pack, ahead.names.find("/d/1").file().ledger());
    }

    private static byte[] version(int i) {
        return random(i % 4 == 3 ? LARGE.length + i : SMALL.length + i);
    }

    /** The number of the version, if these are its bytes. */
    private static int number(byte[] bytes) {
        int i = bytes.length - (bytes.length >= LARGE.length ? LARGE.length : SMALL.length);
        assertArrayEquals(version(i), bytes);
        return i;
    }

    @Test
    void versionsComeWholeAndInTheirOrderFromAFollowerThatComesAndGoes() throws Exception {
        int last = 60;
        write(ahead, "/d/f", version(0));
        behind.zk.sync();
        var written = new AtomicBoolean();
        var lagging = threads.submit(() -> {
            while (!written.get()) {
                quorum.hold();
                Thread.sleep(30);
                quorum.release();
                Thread.sleep(10);
            }
            return null;
        });
        var reading = threads.submit(() -> {
            int seen = 0;
            while (seen < last) {
                try {
                    int now = number(read(behind, "/d/f"));
                    assertTrue(now >= seen, now + " after " + seen);
                    seen = now;
                } catch (FileNotFoundException e) {
                    assertTrue(e.getMessage().contains("replaced while it was read"), e.getMessage());
                }
            }
            return seen;
        });
        for (int i = 1; i <= last; i++) {
            write(ahead, "/d/f", version(i));
            ahead.sweeper.sweep(true);
        }
        written.set(true);
        lagging.get();
        assertEquals(last, reading.get());
    }
}

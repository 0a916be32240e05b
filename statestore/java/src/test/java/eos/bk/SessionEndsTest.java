package eos.bk;

import static eos.bk.TestTree.expire;
import static eos.bk.TestTree.random;
import static eos.bk.TestTree.read;
import static eos.bk.TestTree.write;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import eos.bk.ZkProxy.What;
import eos.bk.ZkProxy.When;
import java.io.FileNotFoundException;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.zookeeper.ZKUtil;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;

/** What a long-lived process keeps of a ZooKeeper session that is over, or of a tree that is gone: nothing. */
@Timeout(120)
class SessionEndsTest {
    private static final byte[] SMALL = random(1000);
    private static final long SOON_S = 60;

    private final TestTree tree = new TestTree(Settings.MIB);
    private final Client survivor = tree.survivor;

    @AfterEach
    void stop() {
        tree.close();
    }

    private static boolean isOver(BookKeeper bk) {
        var context = bk.getClientCtx();
        return context.getMainWorkerPool().isTerminated()
                && context.getScheduler().isTerminated();
    }

    /** Spark interrupts the threads of tasks, and one of them may be the first that needs another session. */
    @Test
    void aThreadThatIsInterruptedLeavesNoThreadOfBookKeeperBehind() throws Exception {
        var client = tree.client(TestCluster.address());
        Set<Thread> others = ofBookKeeper();
        write(client, "/f", SMALL);
        Set<Thread> its = ofBookKeeper();
        its.removeAll(others);
        assertTrue(its.size() >= 3, its + ": workers, a timer, what reads and writes");
        Thread.currentThread().interrupt();
        client.session().end();
        assertTrue(Thread.interrupted(), "the interrupt is kept");
        for (Thread one : its) {
            one.join(TimeUnit.SECONDS.toMillis(SOON_S));
            assertFalse(one.isAlive(), one + " lives on");
        }
        client.close();
    }

    private static Set<Thread> ofBookKeeper() {
        var found = new HashSet<>(Thread.getAllStackTraces().keySet());
        found.removeIf(thread -> !thread.getName().toLowerCase(Locale.ROOT).startsWith("bookkeeper"));
        return found;
    }

    @Test
    void aSessionThatExpiresIsEndedBeforeTheNextCall() throws Exception {
        write(survivor, "/f", SMALL);
        var client = tree.client(TestCluster.address());
        assertArrayEquals(SMALL, read(client, "/f"));
        Session session = client.session();
        BookKeeper bk = session.bk();
        expire(session.zk());
        long begun = System.nanoTime();
        while (!isOver(bk) && System.nanoTime() - begun < TimeUnit.SECONDS.toNanos(SOON_S)) {
            Thread.sleep(20);
        }
        assertTrue(isOver(bk), "nothing has ended it");
        write(client, "/g", SMALL);
        assertArrayEquals(SMALL, read(survivor, "/g"));
        client.close();
    }

    @Test
    void aTreeThatWasRemovedIsToldAndNotLookedForForEver() throws Exception {
        ZKUtil.deleteRecursive(survivor.session().zk(), survivor.settings.root + "/n");
        var made = CompletableFuture.runAsync(
                () -> assertThrows(FileNotFoundException.class, () -> survivor.names.mkdirs("/d/e")));
        made.get(SOON_S, TimeUnit.SECONDS);
        ZKUtil.deleteRecursive(survivor.session().zk(), survivor.settings.root + "/L");
        mustSayThatTheTreeIsGone(() -> survivor.sweeper.sweep(false));
        ZKUtil.deleteRecursive(survivor.session().zk(), survivor.settings.root);
        mustSayThatTheTreeIsGone(() -> survivor.sweeper.sweep(true));
        mustSayThatTheTreeIsGone(() -> survivor.compactor.compact(System.currentTimeMillis()));
        mustSayThatTheTreeIsGone(() -> new Savepoints(survivor, 10).all());
    }

    private static void mustSayThatTheTreeIsGone(Executable call) {
        String said = assertThrows(FileNotFoundException.class, call).getMessage();
        assertTrue(said.contains("was the tree removed?"), said);
    }

    /** Its session expires while it takes the lock, and the answer to the next one's try gets lost. */
    @Test
    void aSweeperKnowsTheLockOfItsNewSessionForItsOwn() throws Exception {
        // What gets there: its first session's multi, its second session's, the lock.
        try (var far = new ZkProxy(TestCluster.address(), 3, When.AFTER, What.CUT);
                var near = new ZkProxy(far.address(), 2, When.BEFORE, What.PAUSE)) {
            var client = tree.client(near.address());
            var swept = CompletableFuture.supplyAsync(() -> sweep(client));
            near.awaitIt(swept::isDone);
            Session first = client.session();
            expire(first.zk());
            while (client.session() == first) {
                Thread.sleep(20);
            }
            near.resume();
            assertEquals(List.of(), swept.get());
            assertTrue(far.hasHappened());
            assertNull(survivor.zk.stat(survivor.settings.root + "/sweeper"), "its lock is left");
            client.close();
        }
        assertNotNull(survivor.sweeper.sweep(false));
    }

    /** Its session lives on, with the lock: no other process would ever sweep. */
    @Test
    void aSweeperGivesItsLockBackThoughTheConnectionBreaks() throws Exception {
        // What gets there: the session's multi, the lock, its end.
        try (var proxy = new ZkProxy(TestCluster.address(), 3, When.BEFORE, What.CUT)) {
            var client = tree.client(proxy.address());
            assertEquals(List.of(), sweep(client));
            assertTrue(proxy.hasHappened());
            assertNotNull(survivor.sweeper.sweep(false));
            client.close();
        }
    }

    private static List<Long> sweep(Client client) {
        try {
            return client.sweeper.sweep(false);
        } catch (java.io.IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }
}

package eos.bk;

import static eos.bk.SavepointsTest.FILES;
import static eos.bk.SavepointsTest.checkpoint;
import static eos.bk.SavepointsTest.create;
import static eos.bk.SavepointsTest.mustBeWhole;
import static eos.bk.SavepointsTest.states;
import static eos.bk.TestTree.expire;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import eos.bk.ZkProxy.What;
import eos.bk.ZkProxy.When;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * A process that makes, deletes or restores a savepoint dies, or loses its connection, before and after each of its
 * multis, with one group of operations in each.
 */
@Tag("long")
class SavepointFaultsTest {
    private static final int AT_ONCE = 12;

    private enum Verb {
        CREATE,
        DELETE,
        RESTORE
    }

    private static void prepare(TestTree tree, Verb verb) throws IOException {
        checkpoint(tree.survivor);
        if (verb != Verb.CREATE) {
            create(of(tree), "one");
            tree.survivor.names.delete("/q", true);
        }
    }

    private static Savepoints of(TestTree tree) {
        return new Savepoints(tree.survivor, 200);
    }

    private static void run(Client client, Verb verb) throws IOException {
        var all = new Savepoints(client, 1);
        switch (verb) {
            case CREATE -> create(all, "one");
            case DELETE -> all.delete("one", true, null);
            case RESTORE -> all.restore("one", "/deep/new").finish();
        }
    }

    /** The numbers of the first and the last multi of a verb, behind those of the session. */
    private static int[] multisOf(Verb verb) throws Exception {
        try (var tree = new TestTree(Settings.MIB);
                var proxy = new ZkProxy(TestCluster.address())) {
            prepare(tree, verb);
            var client = tree.client(proxy.address());
            int before = proxy.multis();
            run(client, verb);
            client.close();
            return new int[] {before + 1, proxy.multis()};
        }
    }

    private interface Life {
        void live(TestTree tree, ZkProxy proxy, boolean isNone, boolean isAll, String what) throws Exception;
    }

    private static void atEachMulti(Verb verb, When when, What what, int least, Life life) throws Exception {
        int[] multis = multisOf(verb);
        assertTrue(multis[1] - multis[0] >= least - 1, multis[0] + " to " + multis[1]);
        var lives = new ArrayList<Callable<Void>>();
        for (int i = multis[0]; i <= multis[1]; i++) {
            int n = i;
            lives.add(() -> {
                try (var tree = new TestTree(Settings.MIB);
                        var proxy = new ZkProxy(TestCluster.address(), n, when, what)) {
                    prepare(tree, verb);
                    boolean isNone = n == multis[0] && when == When.BEFORE;
                    boolean isAll = n == multis[1] && when == When.AFTER;
                    life.live(tree, proxy, isNone, isAll, verb + " " + what + " " + when + " multi " + n);
                }
                return null;
            });
        }
        var threads = Executors.newFixedThreadPool(AT_ONCE);
        try {
            for (var done : threads.invokeAll(lives)) {
                done.get();
            }
        } finally {
            threads.shutdownNow();
        }
    }

    /** Runs the verb in a process that dies at its multi. */
    private static void die(TestTree tree, ZkProxy proxy, Verb verb) throws Exception {
        var client = tree.client(proxy.address());
        var session = client.session();
        var victim = new Thread(() -> {
            try {
                run(client, verb);
            } catch (IOException e) {
                // The dead don't speak.
                return;
            }
        });
        victim.setDaemon(true);
        victim.start();
        proxy.awaitIt(() -> !victim.isAlive());
        expire(session.zk());
        session.end();
    }

    @ParameterizedTest
    @CsvSource({"BEFORE", "AFTER"})
    void aMakerMayDieAtAnyMulti(When when) throws Exception {
        atEachMulti(Verb.CREATE, when, What.KILL, 5, (tree, proxy, isNone, isAll, what) -> {
            var all = of(tree);
            die(tree, proxy, Verb.CREATE);
            List<String> expected = isNone ? List.of() : List.of(isAll ? "one ready" : "one abandoned");
            assertEquals(expected, states(all), what);
            if (!isAll) {
                assertTrue(create(all, "one").isReady(), what + ": made again under the same name");
            }
            tree.survivor.names.delete("/q", true);
            all.restore("one", "/new").finish();
            mustBeWhole(tree.survivor, "/new");
            all.delete("one", true, null);
            tree.survivor.names.delete("/new", true);
            tree.mustBeTidy(what);
        });
    }

    @ParameterizedTest
    @CsvSource({"BEFORE", "AFTER"})
    void aDeletionMayDieAtAnyMulti(When when) throws Exception {
        atEachMulti(Verb.DELETE, when, What.KILL, 5, (tree, proxy, isNone, isAll, what) -> {
            var all = of(tree);
            die(tree, proxy, Verb.DELETE);
            List<String> expected = isAll ? List.of() : List.of(isNone ? "one ready" : "one deleting");
            assertEquals(expected, states(all), what);
            if (!isAll) {
                all.delete("one", true, null);
            }
            assertEquals(List.of(), states(all), what);
            tree.mustBeTidy(what);
            assertEquals(List.of(), tree.survivor.zk.children(tree.survivor.settings.root + "/sp"), what);
        });
    }

    @ParameterizedTest
    @CsvSource({"BEFORE", "AFTER"})
    void aRestoreMayDieAtAnyMulti(When when) throws Exception {
        atEachMulti(Verb.RESTORE, when, What.KILL, 12, (tree, proxy, isNone, isAll, what) -> {
            var all = of(tree);
            var names = tree.survivor.names;
            die(tree, proxy, Verb.RESTORE);
            if (names.find("/deep/new") != null) {
                assertEquals(
                        isAll, names.find("/deep/new/metadata").file().length() > 0, what + ": else Spark refuses it");
                if (names.find("/deep/new/commits/0") != null) {
                    assertEquals(FILES.size(), TestTree.filesBelow(names, "/deep/new"), what + ": a commit comes late");
                }
            }
            if (!isAll) {
                names.delete("/deep/new", true);
                all.restore("one", "/deep/new").finish();
            }
            all.delete("one", true, null);
            tree.mustBeTidy(what);
            mustBeWhole(tree.survivor, "/deep/new");
        });
    }

    @ParameterizedTest
    @CsvSource({
        "CREATE, BEFORE",
        "CREATE, AFTER",
        "DELETE, BEFORE",
        "DELETE, AFTER",
        "RESTORE, BEFORE",
        "RESTORE, AFTER"
    })
    void aProcessThatLosesItsConnectionAtAnyMultiGoesOn(Verb verb, When when) throws Exception {
        atEachMulti(verb, when, What.CUT, 5, (tree, proxy, isNone, isAll, what) -> {
            var client = tree.client(proxy.address());
            run(client, verb);
            assertTrue(proxy.hasHappened(), what + " was never sent");
            client.close();
            assertEquals(verb == Verb.DELETE ? List.of() : List.of("one ready"), states(of(tree)), what);
            if (verb != Verb.DELETE) {
                if (verb == Verb.RESTORE) {
                    mustBeWhole(tree.survivor, "/deep/new");
                }
                of(tree).delete("one", true, null);
            }
            tree.mustBeTidy(what);
        });
    }
}

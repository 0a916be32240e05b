package eos.bk;

import static eos.bk.TestTree.random;
import static eos.bk.TestTree.read;
import static eos.bk.TestTree.write;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import eos.bk.ZkProxy.What;
import eos.bk.ZkProxy.When;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.fs.PathIsNotEmptyDirectoryException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A directory with all below it goes in few multis, and what others do to it meanwhile is respected. */
class RemovalTest {
    private static final int FILES = 250;
    private static final byte[] SMALL = random(1000);
    private static final byte[] OTHER = random(2000);

    private final TestTree tree = new TestTree(Settings.MIB);
    private final Client survivor = tree.survivor;

    @AfterEach
    void stop() {
        tree.close();
    }

    @Test
    void someHundredsOfNamesGoInOneMulti() throws Exception {
        for (String directory : List.of("/d/a", "/d/b", "/d/b/c")) {
            survivor.names.mkdirs(directory);
            for (int i = 0; i < FILES; i++) {
                write(survivor, directory + "/" + i, new byte[0]);
            }
        }
        try (var proxy = new ZkProxy(TestCluster.address())) {
            var client = tree.client(proxy.address());
            int before = proxy.multis();
            assertTrue(client.names.delete("/d", true));
            int multis = proxy.multis() - before;
            client.close();
            assertEquals((3 * FILES + 3) / 300 + 2, multis, "for the names below it, and for itself");
        }
        assertNull(survivor.names.find("/d"));
        tree.mustBeTidy("a directory that was deleted");
    }

    @Test
    void aFileThatIsPutMeanwhileIntoADirectoryThatWasEmptyStays() throws Exception {
        survivor.names.mkdirs("/d");
        try (var proxy = new ZkProxy(TestCluster.address(), 2, When.BEFORE, What.PAUSE)) {
            var client = tree.client(proxy.address());
            var deleted = CompletableFuture.supplyAsync(
                    () -> assertThrows(PathIsNotEmptyDirectoryException.class, () -> client.names.delete("/d", false)));
            proxy.awaitIt(deleted::isDone);
            write(survivor, "/d/f", SMALL);
            proxy.resume();
            deleted.get(300, TimeUnit.SECONDS);
            client.close();
        }
        assertArrayEquals(SMALL, read(survivor, "/d/f"));
    }

    /** The multi that deletes {@code /d} (the second, behind its session) is held, while the survivor does something. */
    private void deletedWhile(Runner meanwhile) throws Exception {
        survivor.names.mkdirs("/d/e");
        survivor.names.mkdirs("/f");
        write(survivor, "/d/e/a", SMALL);
        write(survivor, "/d/b", SMALL);
        try (var proxy = new ZkProxy(TestCluster.address(), 2, When.BEFORE, What.PAUSE)) {
            var client = tree.client(proxy.address());
            var deleted = CompletableFuture.runAsync(() -> {
                try {
                    client.names.delete("/d", true);
                } catch (IOException e) {
                    throw new CompletionException(e);
                }
            });
            proxy.awaitIt(deleted::isDone);
            meanwhile.run();
            proxy.resume();
            deleted.get(300, TimeUnit.SECONDS);
            client.close();
        }
        assertNull(survivor.names.find("/d"));
    }

    private interface Runner {
        void run() throws IOException;
    }

    @Test
    void whatIsMovedAwayMeanwhileStays() throws Exception {
        deletedWhile(() -> survivor.names.rename("/d/e/a", "/f/a", false));
        assertArrayEquals(SMALL, read(survivor, "/f/a"));
        tree.mustBeTidy("a file that was moved away");
    }

    @Test
    void whatIsPutThereMeanwhileGoesToo() throws Exception {
        deletedWhile(() -> {
            write(survivor, "/d/e/new", OTHER);
            write(survivor, "/d/b", OTHER);
        });
        tree.mustBeTidy("files that were put into a directory that is deleted");
    }
}

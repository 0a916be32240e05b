package eos.bk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** What operators ask for, through a file system as Python has it. */
class MaintenanceTest {
    private String root;
    private FileSystem fs;
    private Client client;

    @BeforeEach
    void start() throws IOException {
        Configuration conf = TestCluster.configure(new Configuration());
        root = "/eos-bk-test/" + UUID.randomUUID();
        conf.set("fs.bk.root", root);
        conf.setInt("fs.bk.maintenance.ms", 0);
        conf.setInt("fs.bk.grace.ms", 0);
        fs = FileSystem.newInstance(URI.create(TestCluster.uri()), conf);
        client = Client.of(new Settings(URI.create(TestCluster.uri()), conf));
    }

    @AfterEach
    void stop() {
        client.close();
    }

    private FileEntry write(String path, int size) throws IOException {
        try (var out = fs.create(new Path(path))) {
            out.write(new byte[size]);
        }
        return client.names.find(path).file();
    }

    @Test
    void aSweepNamesWhatItFreed() throws IOException {
        long ledger = write("/f", 2 << 20).ledger();
        assertEquals(List.of(), Maintenance.sweep(fs));
        fs.delete(new Path("/f"), false);
        assertEquals(List.of(ledger), Maintenance.sweep(fs));
    }

    @Test
    void whatBelongsToAnotherUserOfZooKeeperIsLeftAloneAndTheRestIsSwept() throws IOException {
        var others = List.of(new ACL(ZooDefs.Perms.ALL, new Id("digest", "another:hash")));
        client.zk.write(
                List.of(
                        Op.create(root + "/w/another", Names.NOTHING, others, CreateMode.PERSISTENT),
                        Op.create(root + "/L/1", Names.NOTHING, others, CreateMode.PERSISTENT)),
                () -> true);
        long ledger = write("/f", 2 << 20).ledger();
        fs.delete(new Path("/f"), false);
        assertEquals(List.of(ledger), Maintenance.sweep(fs));
    }

    /** BookKeeper's own znode of a ledger, whose list of rights is its maker's. */
    private static String znodeOf(long ledger) {
        var digits = String.format("%010d", ledger);
        return "/ledgers/" + digits.substring(0, 2) + "/" + digits.substring(2, 6) + "/L" + digits.substring(6);
    }

    private void withRights(String znode, int rights, Executable task) throws Throwable {
        ZooKeeper zk = client.session().zk();
        var before = zk.getACL(znode, null);
        var rightsOfAll = new ACL(rights | ZooDefs.Perms.ADMIN, ZooDefs.Ids.ANYONE_ID_UNSAFE);
        zk.setACL(znode, new ArrayList<>(List.of(rightsOfAll)), -1);
        try {
            task.execute();
        } finally {
            zk.setACL(znode, before, -1);
        }
    }

    @Test
    void aLedgerThatBookKeeperRefusesIsLeftAloneAndTheRestIsSwept() throws Throwable {
        var dead = new Client(client.settings);
        long orphan = dead.ledgers.create(dead.session()).getId();
        dead.zk.write(List.of(Op.delete(dead.names.ledger(orphan), -1)), () -> true);
        dead.close();
        long one = write("/one", 2 << 20).ledger();
        long two = write("/two", 2 << 20).ledger();
        fs.delete(new Path("/one"), false);
        String folder = znodeOf(one).substring(0, znodeOf(one).lastIndexOf('/'));
        withRights(folder, ZooDefs.Perms.ALL & ~ZooDefs.Perms.DELETE, () -> {
            assertEquals(List.of(), Maintenance.sweep(fs));
            assertEquals(List.of(String.valueOf(one)), client.zk.part("/del"), "done later");
        });
        fs.delete(new Path("/two"), false);
        withRights(
                znodeOf(one),
                0,
                () -> withRights(znodeOf(orphan), 0, () -> {
                    assertEquals(List.of(), Maintenance.orphans(fs));
                    assertEquals(List.of(two), Maintenance.sweep(fs));
                }));
        assertEquals(List.of(one, orphan), Maintenance.sweep(fs));
        assertEquals(List.of(), client.zk.part("/del"));
    }

    @Test
    void aLedgerThatBookKeeperDoesNotHaveIsSaidNotToBeThere() throws Exception {
        long ledger = write("/f", 2 << 20).ledger();
        client.session().bk().deleteLedger(ledger);
        var said = assertThrows(Failed.class, () -> Maintenance.replicas(fs, ledger, 0, 0));
        assertEquals("NotFound", said.kind());
    }

    private void lock(Client holder) throws IOException {
        holder.zk.write(
                List.of(Op.create(root + "/sweeper", Names.NOTHING, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL)),
                () -> true);
    }

    @Test
    void oneSweeperAtATime() throws Exception {
        var other = new Client(client.settings);
        lock(other);
        assertTrue(assertThrows(IOException.class, () -> Maintenance.sweep(fs))
                .getMessage()
                .contains("Another process is sweeping"));
        other.close();
    }

    /** As when a round had no memory to give it back. */
    @Test
    void aLockThatARoundOfThisProcessHasLeftKeepsNobodyOff() throws Exception {
        lock(client);
        assertEquals(List.of(), Maintenance.sweep(fs));
        assertNull(client.zk.stat(root + "/sweeper"));
    }

    @Test
    void anUnregisteredLedgerIsAnOrphanOnceItsWriterIsDead() throws Exception {
        var dead = new Client(client.settings);
        long ledger = dead.ledgers.create(dead.session()).getId();
        assertEquals(List.of(), Maintenance.orphans(fs), "registered");
        dead.zk.write(List.of(Op.delete(dead.names.ledger(ledger), -1)), () -> true);
        assertEquals(List.of(), Maintenance.orphans(fs), "its writer lives");
        dead.close();
        assertEquals(List.of(ledger), Maintenance.orphans(fs));
        assertEquals(List.of(ledger), Maintenance.sweep(fs));
        assertEquals(List.of(), Maintenance.orphans(fs));
    }

    @Test
    void whatASavepointHoldsIsNeitherFreedNorCompacted() throws Exception {
        long pack = write("/a", 100).ledger();
        for (int i = 0; i < 9; i++) {
            write("/" + i, 100);
            fs.delete(new Path("/" + i), false);
        }
        client.packs.close();
        String reference = client.names.ledger(pack) + "/s-before-upgrade";
        client.zk.write(
                List.of(Op.create(reference, Names.NOTHING, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT)),
                () -> true);
        assertEquals(List.of(), Maintenance.sweep(fs));
        assertEquals(pack, client.names.find("/a").file().ledger(), "not compacted");
        fs.delete(new Path("/a"), false);
        assertEquals(List.of(), Maintenance.sweep(fs), "not freed");
        client.zk.write(List.of(Op.delete(reference, -1)), () -> true);
        assertEquals(List.of(pack), Maintenance.sweep(fs));
    }

    /** Spark deletes SST files by their age: a writer whose clock is behind must not make its files older than others. */
    @Test
    void aFileIsAsOldAsZooKeeperSaysWhateverItsWritersClockIs() throws IOException {
        fs.mkdirs(new Path("/d"));
        fs.mkdirs(new Path("/e"));
        FileEntry bytes = client.packs.append("/d/behind", new byte[100]);
        FileEntry behind = new FileEntry(
                "w-1", 0, bytes.ledger(), bytes.first(), bytes.last(), bytes.entrySize(), 100, bytes.crc(), 60_000);
        client.names.publish("/d/behind", behind, false);
        long published = mtime("/d/behind");
        assertEquals(client.zk.stat(client.names.name("/d/behind")).getCtime(), published);
        for (var move : List.of("/d/behind /d/renamed", "/d /e/d", "/e/d/renamed /again")) {
            String[] paths = move.split(" ");
            assertTrue(fs.rename(new Path(paths[0]), new Path(paths[1])), move);
        }
        assertEquals(published, mtime("/again"));
        for (int i = 0; i < 9; i++) {
            write("/" + i, 100);
            fs.delete(new Path("/" + i), false);
        }
        client.packs.close();
        client.compactor.compact(System.currentTimeMillis());
        assertEquals("w-1~", client.names.find("/again").file().write());
        assertEquals(published, mtime("/again"), "compacted");
        fs.rename(new Path("/again"), new Path("/last"));
        assertEquals(published, mtime("/last"), "compacted and renamed");
    }

    private long mtime(String path) throws IOException {
        return fs.getFileStatus(new Path(path)).getModificationTime();
    }

    @Test
    void eachCopyOfEachEntryIsLookedAt() throws IOException {
        FileEntry file = write("/f", (2 << 20) + 1);
        List<String> lines = Maintenance.replicas(fs, file.ledger(), file.first(), file.last())
                .lines()
                .toList();
        assertEquals(9, lines.size(), "three entries, three bookies");
        assertEquals(9, lines.stream().distinct().count());
        lines.forEach(line -> assertTrue(line.endsWith(" good"), line));
        List<String> missing = Maintenance.replicas(fs, file.ledger(), file.last() + 1, file.last() + 1)
                .lines()
                .toList();
        assertEquals(3, missing.size());
        missing.forEach(line -> assertFalse(line.endsWith(" good"), line));
    }

    @Test
    void otherFileSystemsAreRefused() throws IOException {
        FileSystem local = FileSystem.getLocal(new Configuration());
        assertThrows(IllegalArgumentException.class, () -> Maintenance.orphans(local));
    }
}

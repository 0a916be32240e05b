package eos.bk;

import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import org.apache.bookkeeper.client.BookKeeperAdmin;
import org.apache.bookkeeper.common.component.LifecycleComponentStack;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.server.EmbeddedServer;
import org.apache.bookkeeper.server.conf.BookieConfiguration;
import org.apache.bookkeeper.util.LocalBookKeeper;
import org.apache.hadoop.conf.Configuration;

/**
 * The cluster that tests run on: the one at {@code -Dbk.address=host:port} (its ZooKeeper), or a ZooKeeper and three
 * bookies in this process, started at first use and gone with the JVM.
 */
public final class TestCluster {
    private static final int BOOKIES = 3;
    private static final String ROOT = "/eos-bk-test/" + UUID.randomUUID();

    private TestCluster() {}

    private record Bookie(int port, Path folder, LifecycleComponentStack server) {}

    private static final class Started {
        static final List<Bookie> RUNNING = new ArrayList<>();
        static final String ADDRESS = start();

        private static String start() {
            try {
                Path folder = Files.createDirectories(Path.of("target", "cluster-" + UUID.randomUUID()));
                int port = freePort();
                LocalBookKeeper.runZookeeper(
                        1000,
                        port,
                        Files.createDirectories(folder.resolve("zk")).toFile());
                BookKeeperAdmin.initNewCluster(bookie(port, freePort(), folder));
                for (int i = 0; i < BOOKIES; i++) {
                    startBookie(port, freePort(), folder.resolve("bookie" + i));
                }
                return "127.0.0.1:" + port;
            } catch (Exception e) {
                throw new IllegalStateException("The test cluster did not start", e);
            }
        }

        static void startBookie(int zookeeperPort, int port, Path folder) throws Exception {
            RUNNING.add(new Bookie(port, folder, TestCluster.start(bookie(zookeeperPort, port, folder))));
        }
    }

    /** Starts a bookie in this process. */
    static LifecycleComponentStack start(ServerConfiguration conf) throws Exception {
        var server =
                EmbeddedServer.builder(new BookieConfiguration(conf)).build().getLifecycleComponentStack();
        server.start();
        return server;
    }

    static ServerConfiguration bookie(int zookeeperPort, int port, Path folder) {
        var conf = new ServerConfiguration();
        conf.setMetadataServiceUri("zk+hierarchical://127.0.0.1:" + zookeeperPort + "/ledgers");
        conf.setAllowLoopback(true);
        conf.setAdvertisedAddress("127.0.0.1");
        conf.setBookiePort(port);
        conf.setJournalDirName(folder.resolve("journal").toString());
        conf.setLedgerDirNames(new String[] {folder.resolve("ledgers").toString()});
        conf.setJournalSyncData(false);
        conf.setDiskUsageThreshold(0.999f);
        conf.setDiskUsageWarnThreshold(0.998f);
        conf.setMinUsableSizeForEntryLogCreation(0);
        return conf;
    }

    static int freePort() throws IOException {
        try (var socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }

    /** {@code host:port} of its ZooKeeper. */
    public static String address() {
        String given = System.getProperty("bk.address", "");
        return given.isEmpty() ? Started.ADDRESS : given;
    }

    /** Whether tests may take bookies away. */
    static boolean isOurs() {
        return System.getProperty("bk.address", "").isEmpty();
    }

    private static int zookeeperPort() {
        return Integer.parseInt(address().split(":")[1]);
    }

    /** Ends one of our bookies, as if its machine were gone. */
    static void stopBookie() {
        Started.RUNNING.remove(0).server().close();
    }

    /** Ends the bookie {@code host:port}. */
    static void stopBookie(String id) {
        Bookie bookie = find(id);
        Started.RUNNING.remove(bookie);
        bookie.server().close();
    }

    /** Starts an empty bookie of ours. */
    static void startBookie() throws Exception {
        Started.startBookie(zookeeperPort(), freePort(), Path.of("target", "cluster-" + UUID.randomUUID()));
    }

    /** Flips a bit in whatever file of the bookie holds these bytes, while the bookie is down. */
    static void damage(String id, byte[] stored) throws Exception {
        Bookie bookie = find(id);
        stopBookie(id);
        int found = 0;
        try (var files = Files.walk(bookie.folder())) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                found += flip(file, stored);
            }
        }
        Started.startBookie(zookeeperPort(), bookie.port(), bookie.folder());
        if (found == 0) {
            throw new IllegalStateException("Bookie " + id + " does not hold these bytes");
        }
    }

    private static int flip(Path file, byte[] stored) throws IOException {
        byte[] content = Files.readAllBytes(file);
        int found = 0;
        for (int at = 0; at + stored.length <= content.length; at++) {
            if (Arrays.equals(content, at, at + stored.length, stored, 0, stored.length)) {
                content[at + stored.length / 2] ^= 4;
                found++;
            }
        }
        if (found > 0) {
            Files.write(file, content);
        }
        return found;
    }

    private static Bookie find(String id) {
        return Started.RUNNING.stream()
                .filter(bookie -> id.equals("127.0.0.1:" + bookie.port()))
                .findFirst()
                .orElseThrow();
    }

    /** The file system's address. */
    public static String uri() {
        return "bk://" + address();
    }

    /** Options of a file system with this JVM's root. */
    public static Configuration configure(Configuration conf) {
        conf.set("fs.defaultFS", uri());
        conf.set("fs.bk.impl", BookKeeperFileSystem.class.getName());
        conf.set("fs.AbstractFileSystem.bk.impl", Bk.class.getName());
        conf.set("fs.bk.root", ROOT);
        return conf;
    }
}

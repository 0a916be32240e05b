package eos.bk;

import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
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

    private static final class Started {
        static final List<LifecycleComponentStack> SERVERS = new ArrayList<>();
        static final String ADDRESS = start();

        private static String start() {
            try {
                Path folder = Files.createDirectories(Path.of("target", "cluster-" + UUID.randomUUID()));
                int port = freePort();
                LocalBookKeeper.runZookeeper(
                        1000,
                        port,
                        Files.createDirectories(folder.resolve("zk")).toFile());
                BookKeeperAdmin.initNewCluster(bookie(port, folder));
                for (int i = 0; i < BOOKIES; i++) {
                    startBookie(port, folder.resolve("bookie" + i));
                }
                return "127.0.0.1:" + port;
            } catch (Exception e) {
                throw new IllegalStateException("The test cluster did not start", e);
            }
        }

        static void startBookie(int zookeeperPort, Path folder) throws Exception {
            var server = EmbeddedServer.builder(new BookieConfiguration(bookie(zookeeperPort, folder)))
                    .build()
                    .getLifecycleComponentStack();
            server.start();
            SERVERS.add(server);
        }

        private static ServerConfiguration bookie(int zookeeperPort, Path folder) throws IOException {
            var conf = new ServerConfiguration();
            conf.setMetadataServiceUri("zk+hierarchical://127.0.0.1:" + zookeeperPort + "/ledgers");
            conf.setAllowLoopback(true);
            conf.setAdvertisedAddress("127.0.0.1");
            conf.setBookiePort(freePort());
            conf.setJournalDirName(folder.resolve("journal").toString());
            conf.setLedgerDirNames(new String[] {folder.resolve("ledgers").toString()});
            conf.setJournalSyncData(false);
            conf.setDiskUsageThreshold(0.999f);
            conf.setDiskUsageWarnThreshold(0.998f);
            conf.setMinUsableSizeForEntryLogCreation(0);
            return conf;
        }

        private static int freePort() throws IOException {
            try (var socket = new ServerSocket(0)) {
                return socket.getLocalPort();
            }
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

    /** Ends one of our bookies, as if its machine were gone. */
    static void stopBookie() {
        Started.SERVERS.remove(0).close();
    }

    /** Starts an empty bookie of ours. */
    static void startBookie() throws Exception {
        Started.startBookie(
                Integer.parseInt(address().split(":")[1]), Path.of("target", "cluster-" + UUID.randomUUID()));
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

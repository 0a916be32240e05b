package eos.bk;

import java.io.IOException;
import java.net.BindException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.bookkeeper.client.BookKeeperAdmin;
import org.apache.bookkeeper.common.component.LifecycleComponentStack;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.server.EmbeddedServer;
import org.apache.bookkeeper.server.conf.BookieConfiguration;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileUtil;
import org.apache.zookeeper.server.ServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;

/**
 * The cluster that tests run on: the one at {@code -Dbk.address=host:port} (its ZooKeeper), or a ZooKeeper and three
 * bookies in this process, started at first use and gone with the JVM.
 */
public final class TestCluster {
    private static final int BOOKIES = 3;
    private static final int TICK_MS = 1_000;
    private static final int LONGEST_SESSION_MS = 60_000;
    private static final int CONNECTIONS = 1_000;
    /** Neither what the kernel gives out by itself nor what eos.local picks from: nobody else has it soon. */
    private static final int FIRST_PORT = 10_000;

    /** Of each of Surefire's forks, which have their own: a port is free until what it is for has started. */
    private static final int PORTS = 2_500;

    private static final int FORK = Integer.getInteger("bk.fork", 1);
    private static final Set<Integer> GIVEN = ConcurrentHashMap.newKeySet();
    private static final String ROOT = "/eos-bk-test/" + UUID.randomUUID();

    private TestCluster() {}

    private record Bookie(int port, Path folder, LifecycleComponentStack server) {}

    private static final class Started {
        static final List<Bookie> RUNNING = new ArrayList<>();
        static final String ADDRESS = start();

        private static String start() {
            try {
                Path folder = newFolder();
                int port = startZookeeper(Files.createDirectories(folder.resolve("zk")));
                BookKeeperAdmin.initNewCluster(bookie(port, freePort(), folder));
                for (int i = 0; i < BOOKIES; i++) {
                    startBookie(port, freePort(), folder.resolve("bookie" + i));
                }
                return "127.0.0.1:" + port;
            } catch (Exception e) {
                throw new IllegalStateException("The test cluster did not start", e);
            }
        }

        /** Returns its port. A session may be as short as 2 s, since tests wait for the end of some. */
        private static int startZookeeper(Path folder) throws Exception {
            var server = new ZooKeeperServer(folder.toFile(), folder.toFile(), TICK_MS);
            server.setMaxSessionTimeout(LONGEST_SESSION_MS);
            var factory = ServerCnxnFactory.createFactory(new InetSocketAddress("127.0.0.1", 0), CONNECTIONS);
            factory.startup(server);
            return factory.getLocalPort();
        }

        static void startBookie(int zookeeperPort, int port, Path folder) throws Exception {
            RUNNING.add(new Bookie(port, folder, TestCluster.start(bookie(zookeeperPort, port, folder))));
        }
    }

    /** For servers' data, which is some hundreds of megabytes: it goes with this JVM. */
    static Path newFolder() throws IOException {
        Path folder = Files.createDirectories(Path.of("target", "cluster-" + UUID.randomUUID()));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> FileUtil.fullyDelete(folder.toFile())));
        return folder;
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

    /** A port for a server that is started next, and perhaps again: nobody is given it twice in this process. */
    static int freePort() throws IOException {
        while (true) {
            int port = FIRST_PORT
                    + (FORK - 1) % 2 * PORTS
                    + ThreadLocalRandom.current().nextInt(PORTS);
            if (!GIVEN.add(port)) {
                continue;
            }
            try (var socket = new ServerSocket(port)) {
                return socket.getLocalPort();
            } catch (BindException e) {
                continue; // Another server's.
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

    /** Ends all bookies of ours; what is returned starts them again, with what they had. */
    static Callable<Void> stopBookies() {
        var stopped = List.copyOf(Started.RUNNING);
        stopped.forEach(bookie -> bookie.server().close());
        Started.RUNNING.clear();
        return () -> {
            for (Bookie bookie : stopped) {
                Started.startBookie(zookeeperPort(), bookie.port(), bookie.folder());
            }
            return null;
        };
    }

    /** Starts an empty bookie of ours. */
    static void startBookie() throws Exception {
        Started.startBookie(zookeeperPort(), freePort(), newFolder());
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

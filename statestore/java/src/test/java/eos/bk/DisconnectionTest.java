package eos.bk;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.file.Path;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.zookeeper.server.ServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A process that outlives a ZooKeeper, whose place at the same address another takes, or itself again. */
@Timeout(120)
class DisconnectionTest {
    private static final int TICK_MS = 500;
    private static final int SESSION_MS = 6_000;
    private static final int CONNECTIONS = 100;

    private int port;
    private Path folder;
    private ServerCnxnFactory server;
    private Client client;

    @BeforeEach
    void start() throws Exception {
        port = TestCluster.freePort();
        folder = TestCluster.newFolder();
        server = zookeeper(folder);
        var conf = new Configuration();
        conf.setInt("fs.bk.session.timeout.ms", SESSION_MS);
        conf.setInt("fs.bk.maintenance.ms", 0);
        client = new Client(new Settings(URI.create("bk://127.0.0.1:" + port), conf));
        client.names.mkdirs("/before");
    }

    @AfterEach
    void stop() {
        client.close();
        server.shutdown();
    }

    private ServerCnxnFactory zookeeper(Path data) throws Exception {
        var factory = ServerCnxnFactory.createFactory(new InetSocketAddress("127.0.0.1", port), CONNECTIONS);
        factory.startup(new ZooKeeperServer(data.toFile(), data.toFile(), TICK_MS));
        return factory;
    }

    private List<String> names() throws IOException {
        return client.zk.children(client.settings.root + "/n");
    }

    @Test
    void aNewOneAtTheAddressIsGoneOnWith() throws Exception {
        Session first = client.session();
        server.shutdown();
        server = zookeeper(TestCluster.newFolder());
        client.names.mkdirs("/after");
        assertEquals(List.of("after"), names());
        assertNotEquals(first.rootId(), client.session().rootId());
    }

    @Test
    void theSameOneTakesItsSessionBack() throws Exception {
        Session first = client.session();
        server.shutdown();
        server = zookeeper(folder);
        client.names.mkdirs("/before/after");
        Zk.pause(2 * SESSION_MS);
        assertEquals(List.of("before"), names());
        assertSame(first, client.session());
    }
}

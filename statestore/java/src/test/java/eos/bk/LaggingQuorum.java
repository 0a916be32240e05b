package eos.bk;

import java.io.File;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.bookkeeper.client.BookKeeperAdmin;
import org.apache.bookkeeper.common.component.LifecycleComponentStack;
import org.apache.zookeeper.server.quorum.QuorumPeer;
import org.apache.zookeeper.server.quorum.QuorumPeer.QuorumServer;

/**
 * A ZooKeeper of three servers, in this process, with a bookie. What the leader tells the third of them can be held
 * back: then it answers reads from its old tree, as a follower may, and the other two go on.
 */
final class LaggingQuorum implements AutoCloseable {
    private static final int TICK_MS = 2000;
    /** Ticks until leader and follower give each other up: longer than any test holds the link. */
    private static final int TICKS = 60;

    /** Between the bookie's looks for ledgers that were deleted. */
    private static final int GC_MS = 200;

    private static final int LEADER = 2;
    private static final int FOLLOWER = 3;

    private final Path folder = TestCluster.newFolder();
    private final Map<Long, QuorumServer> servers = new HashMap<>();
    private final List<QuorumPeer> peers = new ArrayList<>();
    private final TcpProxy link;
    private final LifecycleComponentStack bookie;

    LaggingQuorum() throws Exception {
        for (long id = 1; id <= FOLLOWER; id++) {
            servers.put(id, new QuorumServer(id, local(freePort()), local(freePort()), local(freePort())));
        }
        link = new TcpProxy(
                "127.0.0.1:" + servers.get((long) LEADER).addr.getOne().getPort());
        // Of two servers with nothing yet the one with the higher number leads. The third finds it leading.
        start(1, servers);
        start(LEADER, servers);
        awaitRole(LEADER, "leading");
        var seen = new HashMap<>(servers);
        QuorumServer leader = servers.get((long) LEADER);
        seen.put((long) LEADER, new QuorumServer(LEADER, local(link.port()), leader.electionAddr.getOne()));
        start(FOLLOWER, seen);
        awaitRole(FOLLOWER, "following");
        BookKeeperAdmin.initNewCluster(TestCluster.bookie(clientPort(LEADER), freePort(), folder));
        var conf = TestCluster.bookie(clientPort(LEADER), freePort(), folder.resolve("bookie"));
        conf.setGcWaitTime(GC_MS);
        bookie = TestCluster.start(conf);
    }

    private static InetSocketAddress local(int port) {
        return new InetSocketAddress("127.0.0.1", port);
    }

    private static int freePort() throws Exception {
        return TestCluster.freePort();
    }

    private int clientPort(int id) {
        return servers.get((long) id).clientAddr.getPort();
    }

    private void start(int id, Map<Long, QuorumServer> seen) throws Exception {
        File data = Files.createDirectories(folder.resolve("zk" + id)).toFile();
        var peer = new QuorumPeer(seen, data, data, clientPort(id), 3, id, TICK_MS, TICKS, TICKS, TICKS);
        peer.start();
        peers.add(peer);
    }

    private void awaitRole(int id, String role) throws InterruptedException {
        QuorumPeer peer = peers.get(id - 1);
        while (!peer.getServerState().equals(role)
                || peer.getActiveServer() == null
                || !peer.getActiveServer().isRunning()) {
            Thread.sleep(20);
        }
    }

    String leader() {
        return "127.0.0.1:" + clientPort(LEADER);
    }

    String follower() {
        return "127.0.0.1:" + clientPort(FOLLOWER);
    }

    /** From now on the follower hears nothing, until {@link #release}. */
    void hold() {
        link.hold();
    }

    void release() {
        link.release();
    }

    @Override
    public void close() throws Exception {
        link.release();
        bookie.close();
        peers.forEach(QuorumPeer::shutdown);
        link.close();
    }
}

package eos.bk;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Ends a session that its ZooKeeper does not take back. ZooKeeper's client gives up a session itself once it has heard
 * nothing for 4/3 of the time-out (ClientCnxn), but counts a connection as something that it has heard. A server that
 * has not seen what the client has seen closes each connection without a word, for the client to find another server
 * (ZooKeeperServer.processConnectRequest). All servers are such where a new ZooKeeper has taken the place of one at the
 * same address, or was put back to a backup: the client would try for ever.
 */
final class Disconnection {
    private static final Logger LOG = LoggerFactory.getLogger(Disconnection.class);

    private final AtomicLong connections = new AtomicLong();

    /** Hears that the session is connected. */
    void ends() {
        connections.incrementAndGet();
    }

    /** Hears that the session, which may not have begun yet, has lost its connection. */
    void begins(CompletableFuture<Session> session) {
        long before = connections.get();
        session.thenAccept(lost -> {
            long limitMs = lost.zk().getSessionTimeout() * 4L / 3;
            CompletableFuture.delayedExecutor(limitMs, TimeUnit.MILLISECONDS, Disconnection::start)
                    .execute(() -> {
                        if (connections.get() == before && lost.isAlive()) {
                            LOG.warn("No server of ZooKeeper has taken the session back for {} ms", limitMs);
                            lost.end();
                        }
                    });
        });
    }

    private static void start(Runnable task) {
        Client.daemon("bk-lost", task).start();
    }
}

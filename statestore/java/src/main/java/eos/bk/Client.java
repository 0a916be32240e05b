package eos.bk;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.util.ZkUtils;
import org.apache.hadoop.util.ShutdownHookManager;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooKeeper;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The process's one connection to a ZooKeeper and its bookies, shared by every file system with the same address and
 * options, from first use until the JVM ends. When its ZooKeeper session expires, the next call gets a new session with
 * a new writer identity; what was published stays, packs are begun anew.
 */
final class Client {
    private static final Logger LOG = LoggerFactory.getLogger(Client.class);
    private static final Map<String, Client> SHARED = new ConcurrentHashMap<>();
    private static final int AFTER_FILE_SYSTEMS = 5;
    private static final int ROUNDS_PER_THOROUGH_ONE = 12;

    /** One ZooKeeper session: our client, BookKeeper's on top of it, and the writer identity that lives as long. */
    record Session(ZooKeeper zk, BookKeeper bk, String process, String rootId) {}

    final Settings settings;
    final Zk zk;
    final Names names;
    final Ledgers ledgers;
    final Packs packs;
    final Unnamed unnamed;
    final Sweeper sweeper;
    final Compactor compactor;
    final ScheduledExecutorService background;
    private final AtomicLong writes = new AtomicLong();
    private final String writer = UUID.randomUUID().toString().replace("-", "").substring(0, 16);
    private long rounds;
    private Session session;
    private boolean closed;

    /** The process's client for these settings. */
    static Client of(Settings settings) {
        return SHARED.computeIfAbsent(settings.key, key -> {
            var client = new Client(settings);
            ShutdownHookManager.get().addShutdownHook(client::close, AFTER_FILE_SYSTEMS);
            return client;
        });
    }

    Client(Settings settings) {
        this.settings = settings;
        zk = new Zk(() -> session().zk(), settings.root, settings.patienceMs);
        names = new Names(zk, settings);
        ledgers = new Ledgers(this);
        packs = new Packs(this);
        unnamed = new Unnamed(this);
        sweeper = new Sweeper(this);
        compactor = new Compactor(this);
        background = Executors.newSingleThreadScheduledExecutor(task -> {
            var thread = new Thread(task, "bk-maintenance");
            thread.setDaemon(true);
            return thread;
        });
        if (settings.maintenanceMs > 0) {
            // The first round is spread: the executors of a job start together.
            long first =
                    settings.maintenanceMs / 2 + ThreadLocalRandom.current().nextLong(settings.maintenanceMs);
            background.scheduleWithFixedDelay(this::maintain, first, settings.maintenanceMs, TimeUnit.MILLISECONDS);
        }
    }

    private void maintain() {
        try {
            packs.rollFull();
            // A thorough round reads the metadata of every ledger of the cluster: seldom.
            sweeper.sweep(++rounds % ROUNDS_PER_THOROUGH_ONE == 0);
        } catch (IOException | RuntimeException e) {
            LOG.warn("Maintenance ended early, the next round goes on: {}", e.toString());
        }
    }

    /** A name for bytes that no other write has or will have. */
    String nextWrite() {
        return writer + "-" + writes.incrementAndGet();
    }

    /** The session, a new one when the last has ended. */
    synchronized Session session() throws IOException {
        if (closed) {
            throw new IOException("The bk client of this process is closed");
        }
        if (session == null || !session.zk().getState().isAlive()) {
            if (session != null) {
                LOG.warn("ZooKeeper session of writer {} is over; starting another", session.process());
                end(session);
            }
            session = connectPatiently();
        }
        return session;
    }

    private Session connectPatiently() throws IOException {
        for (long deadline = System.currentTimeMillis() + settings.patienceMs; ; ) {
            try {
                return connect();
            } catch (IOException e) {
                // Lost again while starting, as during an election of ZooKeeper's leader.
                boolean lost = e.getCause() instanceof KeeperException.ConnectionLossException
                        || e.getCause() instanceof KeeperException.SessionExpiredException;
                if (!lost || System.currentTimeMillis() > deadline) {
                    throw e;
                }
            }
        }
    }

    private Session connect() throws IOException {
        return Zk.uninterrupted(() -> {
            var connected = new CountDownLatch(1);
            var ours = new ZooKeeper(
                    settings.zkServers,
                    settings.sessionTimeoutMs,
                    event -> {
                        if (event.getState() == KeeperState.SyncConnected) {
                            connected.countDown();
                        }
                    },
                    false,
                    settings.zkConfig);
            try {
                if (!settings.zkAuth.isEmpty()) {
                    int colon = settings.zkAuth.indexOf(':');
                    ours.addAuthInfo(
                            settings.zkAuth.substring(0, Math.max(colon, 0)),
                            settings.zkAuth.substring(colon + 1).getBytes(StandardCharsets.UTF_8));
                }
                if (!connected.await(settings.patienceMs, TimeUnit.MILLISECONDS)) {
                    throw new IOException("No ZooKeeper answers at " + settings.zkServers);
                }
                var rootId = prepareRoot(ours);
                var process = UUID.randomUUID().toString();
                var mine = settings.root + "/w/" + process;
                ours.multi(List.of(
                        Op.create(mine, Names.NOTHING, settings.acl, CreateMode.PERSISTENT),
                        Op.create(mine + "/alive", Names.NOTHING, settings.acl, CreateMode.EPHEMERAL)));
                var bk = BookKeeper.forConfig(settings.bookkeeperConfiguration())
                        .zk(ours)
                        .build();
                return new Session(ours, bk, process, rootId);
            } catch (KeeperException | BKException e) {
                ours.close();
                throw new IOException("Can't start on ZooKeeper " + settings.zkServers + ": " + e.getMessage(), e);
            } catch (IOException | RuntimeException | InterruptedException e) {
                ours.close();
                throw e;
            }
        });
    }

    /** Makes the root's znodes where they are missing, and returns its identity, which each ledger carries. */
    private String prepareRoot(ZooKeeper zk) throws KeeperException, InterruptedException {
        createMissing(zk, "", UUID.randomUUID().toString().getBytes(StandardCharsets.UTF_8));
        for (String room : new String[] {"/L/empty", "/w", "/del", "/sp"}) {
            createMissing(zk, room, Names.NOTHING);
        }
        try {
            zk.multi(List.of(
                    Op.create(settings.root + "/n", Names.NOTHING, settings.acl, CreateMode.PERSISTENT),
                    Op.setData(settings.root + "/n", Names.NOTHING, 0)));
        } catch (KeeperException.NodeExistsException e) {
            LOG.debug("The root is there");
        }
        return new String(zk.getData(settings.root, false, null), StandardCharsets.UTF_8);
    }

    private void createMissing(ZooKeeper zk, String room, byte[] data) throws KeeperException, InterruptedException {
        try {
            // Asked first: who may use a root that is there need not be allowed to make one.
            if (zk.exists(settings.root + room, false) == null) {
                ZkUtils.createFullPathOptimistic(zk, settings.root + room, data, settings.acl, CreateMode.PERSISTENT);
            }
        } catch (KeeperException.NodeExistsException e) {
            LOG.debug("Another process made {}{} meanwhile", settings.root, room);
        }
    }

    /** Ends a session: the next call starts another. */
    static void end(Session session) {
        try {
            session.bk().close();
            session.zk().close();
        } catch (BKException e) {
            LOG.info("BookKeeper's client did not close cleanly: {}", e.getMessage());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Seals the packs and leaves; files already visible are untouched. */
    void close() {
        SHARED.remove(settings.key, this);
        background.shutdownNow();
        packs.close();
        synchronized (this) {
            closed = true;
            if (session != null) {
                end(session);
            }
        }
    }
}

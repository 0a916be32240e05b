package eos.bk;

import java.io.IOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import javax.net.ssl.SSLContext;
import org.apache.hadoop.security.AccessControlException;
import org.apache.hadoop.util.ShutdownHookManager;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.client.ConnectStringParser;
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
    private static final long SEALING_MS = 5_000;
    private static final long LEAVING_MS = 2_000;
    private static final long LAST_OUT_MS = 1_000;
    private static final long CONNECT_MS = 1_000;
    private static final int LOOKS_PER_HANDSHAKE = 5;
    /** How the names of its client's threads begin; the last is there once a ledger of another writer was opened. */
    private static final List<String> OF_BOOKKEEPER = List.of("bookkeeper", "zkledgermanagerscheduler");

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
    private final CompletableFuture<Void> closing = new CompletableFuture<>();
    private volatile Session session;

    /** The process's client for these settings. */
    static Client of(Settings settings) {
        return SHARED.computeIfAbsent(settings.key, key -> {
            var client = new Client(settings);
            ShutdownHookManager.get().addShutdownHook(client::close, AFTER_FILE_SYSTEMS);
            daemon("bk-last-out", client::closeAsTheLast).start();
            return client;
        });
    }

    Client(Settings settings) {
        this.settings = settings;
        zk = new Zk(() -> session().zk(), settings);
        names = new Names(zk, settings);
        ledgers = new Ledgers(this);
        packs = new Packs(this);
        unnamed = new Unnamed(this);
        sweeper = new Sweeper(this);
        compactor = new Compactor(this);
        background = Executors.newSingleThreadScheduledExecutor(task -> daemon("bk-maintenance", task));
        if (settings.maintenanceMs > 0) {
            // The first round is spread: the executors of a job start together.
            long first =
                    settings.maintenanceMs / 2 + ThreadLocalRandom.current().nextLong(settings.maintenanceMs);
            var round = new BackgroundTask("Maintenance ended early, the next round goes on", this::maintain);
            background.scheduleWithFixedDelay(round, first, settings.maintenanceMs, TimeUnit.MILLISECONDS);
        }
    }

    private void maintain() throws IOException {
        if (!session().mayWrite()) {
            return;
        }
        packs.rollFull();
        // A thorough round reads the metadata of every ledger of the cluster: seldom.
        sweeper.sweep(++rounds % ROUNDS_PER_THOROUGH_ONE == 0);
    }

    /** A name for bytes that no other write has or will have. */
    String nextWrite() {
        return writer + "-" + writes.incrementAndGet();
    }

    /** The session, a new one when the last has ended, but none once the client is being closed. */
    Session session() throws IOException {
        // Without the lock: closing still needs the live session, and mustn't wait for who waits for another.
        Session now = session;
        return isAlive(now) ? now : nextSession(settings.patienceMs);
    }

    /** The first session, unless there was one; servers that can't be the right ones are waited for only so long. */
    void connect(long hopelessMs) throws IOException {
        if (session == null) {
            nextSession(hopelessMs);
        }
    }

    private synchronized Session nextSession(long hopelessMs) throws IOException {
        if (isAlive(session)) {
            return session;
        }
        mustNotClose();
        if (session != null) {
            LOG.warn("ZooKeeper session of writer {} is over; starting another", session.process());
            session.end();
        }
        session = connectPatiently(hopelessMs);
        if (closing.isDone()) {
            session.end();
        }
        mustNotClose();
        return session;
    }

    private static boolean isAlive(Session session) {
        return session != null && session.isAlive();
    }

    boolean isClosing() {
        return closing.isDone();
    }

    void mustNotClose() throws IOException {
        if (isClosing()) {
            throw new IOException("The bk client of this process is closed");
        }
    }

    private Session connectPatiently(long hopelessMs) throws IOException {
        for (var patience = new Patience(settings.patienceMs); ; ) {
            try {
                return begin(hopelessMs);
            } catch (IOException e) {
                // Lost again while starting, as during an election of ZooKeeper's leader.
                boolean lost = e.getCause() instanceof KeeperException.ConnectionLossException
                        || e.getCause() instanceof KeeperException.SessionExpiredException;
                if (!lost || patience.isOver()) {
                    throw e;
                }
            }
        }
    }

    private Session begin(long hopelessMs) throws IOException {
        return Zk.uninterrupted(() -> {
            var tls = Handshake.context(settings.zkConfig);
            var connected = new CompletableFuture<Void>();
            var begun = new CompletableFuture<Session>();
            var disconnection = new Disconnection();
            var ours = new ZooKeeper(
                    settings.zkServers,
                    settings.sessionTimeoutMs,
                    event -> {
                        if (event.getState() == KeeperState.SyncConnected) {
                            connected.complete(null);
                            disconnection.ends();
                        } else if (event.getState() == KeeperState.Disconnected) {
                            disconnection.begins(begun);
                        } else if (event.getState() == KeeperState.Expired) {
                            // Not at the next call: BookKeeper would ask for each open ledger, and log, five times a
                            // second.
                            begun.thenAccept(
                                    over -> daemon("bk-expired", over::end).start());
                        }
                    },
                    false,
                    settings.zkConfig);
            try {
                settings.security.introduce(ours);
                var patience = new Patience(settings.patienceMs);
                var hope = new Patience(hopelessMs);
                for (int looks = 0;
                        !connected.isDone() && !patience.isOver() && !(hope.isOver() && isHopeless());
                        looks++) {
                    CompletableFuture.anyOf(connected, closing)
                            .completeOnTimeout(null, CONNECT_MS, TimeUnit.MILLISECONDS)
                            .join();
                    mustNotClose();
                    if (!connected.isDone() && looks % LOOKS_PER_HANDSHAKE == 0) {
                        mustUnderstand(tls);
                    }
                }
                if (!connected.isDone()) {
                    throw new IOException("No ZooKeeper answers at " + settings.zkServers + ": " + advice());
                }
                var rootId = Root.prepare(ours, settings);
                begun.complete(new Session(settings, ours, register(ours), rootId));
                return begun.join();
            } catch (KeeperException e) {
                within(LEAVING_MS, () -> close(ours));
                IOException refusal = Zk.refused(e, settings.security.principal());
                throw refusal instanceof AccessControlException
                        ? refusal
                        : new IOException(
                                "Can't start on ZooKeeper " + settings.zkServers + ": " + refusal.getMessage(), e);
            } catch (IOException | RuntimeException | InterruptedException | Error e) {
                within(LEAVING_MS, () -> close(ours));
                throw e;
            }
        });
    }

    /** Registers a writer with a new name, or null: this client may only read. */
    private String register(ZooKeeper zk) throws KeeperException, InterruptedException {
        var process = UUID.randomUUID().toString();
        var mine = settings.root + "/w/" + process;
        try {
            zk.multi(List.of(
                    Op.create(mine, Names.NOTHING, settings.acl, CreateMode.PERSISTENT),
                    Op.create(mine + "/alive", Names.NOTHING, settings.acl, CreateMode.EPHEMERAL)));
            return process;
        } catch (KeeperException.NoAuthException e) {
            LOG.debug("Only reading: {}", e.getMessage());
            return null;
        }
    }

    /** Throws when TLS fails with a server, or is asked for by one, and works with none: waiting wouldn't help. */
    private void mustUnderstand(SSLContext tls) throws Failed {
        var told = new ArrayList<String>();
        for (InetSocketAddress server : servers()) {
            String refusal = Handshake.refusal(server, tls);
            if (refusal != null) {
                told.add("ZooKeeper at " + server.getHostString() + ":" + server.getPort() + " can't be used: "
                        + refusal);
            } else if (isReachable(server)) {
                return;
            }
        }
        if (!told.isEmpty()) {
            throw new Failed(Failed.Kind.InvalidInput, String.join("; ", told));
        }
    }

    /** Whether every server refuses connections, or has a name that nobody knows. A slow one is waited for. */
    private boolean isHopeless() {
        return servers().stream().noneMatch(Client::isReachable);
    }

    private List<InetSocketAddress> servers() {
        return new ConnectStringParser(settings.zkServers).getServerAddresses();
    }

    private String advice() {
        String unknown = servers().stream()
                .map(InetSocketAddress::getHostString)
                .filter(host -> new InetSocketAddress(host, 0).isUnresolved())
                .distinct()
                .collect(Collectors.joining(", "));
        return unknown.isEmpty() ? "is it running, is it that port?" : "no address is known here for " + unknown;
    }

    /** False only where a connection is refused, or can't be tried. */
    private static boolean isReachable(InetSocketAddress server) {
        try (var socket = new Socket()) {
            socket.connect(new InetSocketAddress(server.getHostString(), server.getPort()), (int) CONNECT_MS);
            return true;
        } catch (ConnectException | UnknownHostException e) {
            LOG.debug("{} can't be connected to: {}", server, e.toString());
            return false;
        } catch (IOException e) {
            return true;
        }
    }

    private static void close(ZooKeeper zk) {
        Zk.uninterrupted(() -> {
            zk.close();
            return null;
        });
    }

    /**
     * Leaves within seconds, whatever answers. Packs are sealed as long as the last session does it; what stays open is
     * closed by a sweeper, as for a writer that died. Files already visible are untouched.
     */
    void close() {
        if (!closing.complete(null)) {
            return;
        }
        SHARED.remove(settings.key, this);
        background.shutdownNow();
        Session last = session;
        if (last != null) {
            within(SEALING_MS, packs::close);
            within(LEAVING_MS, last::end);
        }
    }

    /** Waits so long for a task, and not at all when interrupted, as Hadoop does with slow shutdown hooks. */
    private static void within(long ms, Runnable task) {
        var thread = daemon("bk-close", task);
        thread.start();
        try {
            thread.join(ms);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** A JVM whose main has returned would never end: BookKeeper's threads aren't daemons. */
    private void closeAsTheLast() {
        var look = new BackgroundTask("Whether this process may end is asked again", () -> {
            Zk.pause(LAST_OUT_MS);
            if (!isNeeded()) {
                close();
            }
        });
        while (!closing.isDone()) {
            look.run();
        }
    }

    private static boolean isNeeded() {
        ThreadGroup all = Thread.currentThread().getThreadGroup();
        while (all.getParent() != null) {
            all = all.getParent();
        }
        var threads = new Thread[2 * all.activeCount()];
        int count = all.enumerate(threads);
        return Arrays.stream(threads, 0, count)
                .filter(thread -> !thread.isDaemon())
                .map(thread -> thread.getName().toLowerCase(Locale.ROOT))
                // That of the JVM itself waits for all others.
                .anyMatch(name -> OF_BOOKKEEPER.stream().noneMatch(name::startsWith) && !name.equals("destroyjavavm"));
    }

    static Thread daemon(String name, Runnable task) {
        var thread = new Thread(task, name);
        thread.setDaemon(true);
        return thread;
    }
}

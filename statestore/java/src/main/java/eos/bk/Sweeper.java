package eos.bk;

import eos.bk.Ledgers.BookKeeperException;
import eos.bk.Zk.Node;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.hadoop.security.AccessControlException;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.data.Stat;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Frees ledgers that nothing refers to, once they have been so for the grace time. Safe at any moment and beside other
 * sweepers: ZooKeeper doesn't delete a ledger's znode while it has a reference, and without the znode a late publisher
 * fails and writes its bytes again. A crash on the way neither leaks a ledger nor frees another: {@code /del} says what
 * is left to do.
 *
 * <p>Goes round bookkeeper#4731 (in 4.17.3 {@code newListLedgersOp} ends after the first range): it reads the ranges.
 */
final class Sweeper {
    private static final Logger LOG = LoggerFactory.getLogger(Sweeper.class);

    private static final String NO_IDENTITY =
            "the root's znode has no identity, so ledgers of another tree can't be told from those of this one";

    private final Client client;
    private final Zk zk;
    private final Names names;
    private final String root;
    /** The threads of this process have one session, which the lock in ZooKeeper can't tell apart. */
    private final ReentrantLock sweeping = new ReentrantLock();

    Sweeper(Client client) {
        this.client = client;
        this.zk = client.zk;
        this.names = client.names;
        this.root = client.settings.root;
    }

    /**
     * One round, if the lock is free; {@code thorough}: also compacts packs and looks for unregistered ledgers.
     * Returns the ledgers that were freed, or null when another sweeper is at work.
     */
    List<Long> sweep(boolean thorough) throws IOException {
        return sweep(thorough, new TreeMap<>());
    }

    /** The same. It puts what it leaves alone into {@code left}, and why. */
    List<Long> sweep(boolean thorough, Map<String, String> left) throws IOException {
        if (!sweeping.tryLock()) {
            return null;
        }
        try {
            return sweepAlone(thorough, left);
        } finally {
            sweeping.unlock();
        }
    }

    private List<Long> sweepAlone(boolean thorough, Map<String, String> left) throws IOException {
        Session session = client.session();
        String lock = root + "/sweeper";
        // What a round before could not give back would keep all others off as long as this process lives.
        release(lock);
        var take = List.of(Op.create(lock, Names.NOTHING, client.settings.acl, CreateMode.EPHEMERAL));
        if (!zk.write(take, () -> isHeld(lock))) {
            if (zk.stat(root) == null) {
                throw zk.removed();
            }
            return null;
        }
        var freed = new ArrayList<Long>();
        try {
            long now = now(lock);
            for (String id : zk.part("/del")) {
                unlessRefused("deletion " + id, left, () -> finishDeletion(session, Long.parseLong(id), freed));
            }
            for (String process : zk.part("/w")) {
                unlessRefused("writer " + process, left, () -> buryWriter(process, now));
            }
            for (long ledger : names.ledgers()) {
                unlessRefused("ledger " + ledger, left, () -> sweepLedger(session, ledger, now, freed));
            }
            if (thorough) {
                client.compactor.compact(now);
                // A writer died between making a ledger and registering it. Once buried it can't register any more.
                for (long ledger : orphans("", left)) {
                    unlessRefused("ledger " + ledger, left, () -> delete(session, ledger, freed));
                }
            }
            return freed;
        } finally {
            release(lock);
        }
    }

    private void release(String lock) throws IOException {
        if (isHeld(lock)) {
            zk.write(List.of(Op.delete(lock, -1)), () -> !isHeld(lock));
        }
    }

    /** Whether the session that we have now holds the lock: one that has ended held it no longer than it lived. */
    private boolean isHeld(String lock) throws IOException {
        Stat stat = zk.stat(lock);
        return stat != null && stat.getEphemeralOwner() == client.session().zk().getSessionId();
    }

    /**
     * When the round began, by ZooKeeper's clock, as the times of all znodes are: machines whose clocks differ sweep one
     * tree in turn.
     */
    private long now(String lock) throws IOException {
        Stat stat = zk.stat(lock);
        if (stat == null) {
            throw new IOException("The session that held the lock of the sweeper has ended");
        }
        return stat.getCtime();
    }

    private interface Task {
        void run() throws IOException;
    }

    /** What belongs to another ZooKeeper user, or can't be read, is named and left alone: the rest is swept. */
    private static void unlessRefused(String what, Map<String, String> left, Task task) throws IOException {
        try {
            task.run();
        } catch (AccessControlException e) {
            left.put(what, e.getMessage());
            LOG.warn("The sweeper leaves {} alone: {}", what, e.getMessage());
        } catch (BookKeeperException e) {
            if (!e.isOfItsZnode()) {
                throw e;
            }
            left.put(what, e.getMessage());
            LOG.warn("The sweeper leaves {} alone: {}", what, e.getMessage());
        }
    }

    /** A writer without its ephemeral child is gone for good; after the grace time it can't register ledgers either. */
    private void buryWriter(String process, long now) throws IOException {
        String path = root + "/w/" + process;
        Node node = zk.node(path);
        if (node == null || node.stat().getNumChildren() > 0) {
            return;
        }
        int version = node.stat().getVersion();
        var mark = new String(node.data(), StandardCharsets.UTF_8);
        if (mark.isEmpty()) {
            mark = Long.toString(now);
            if (!attempt(Op.setData(path, mark.getBytes(StandardCharsets.UTF_8), version++))) {
                return;
            }
        }
        if (isOver(Long.parseLong(mark), now)) {
            attempt(Op.delete(path, version));
        }
    }

    private void sweepLedger(Session session, long ledger, long now, List<Long> freed) throws IOException {
        String path = names.ledger(ledger);
        Node node = zk.node(path);
        LedgerState state = node == null ? null : LedgerState.decode(node.data());
        if (state != null && !state.sealed()) {
            if (zk.stat(root + "/w/" + state.process()) != null) {
                return;
            }
            try {
                client.ledgers.recover(ledger);
            } catch (BookKeeperException e) {
                if (!e.isMissing()) {
                    LOG.warn("Ledger {} of a dead writer can't be closed yet: {}", ledger, e.getMessage());
                    return;
                }
            }
            client.ledgers.markSealed(ledger, state.process());
            node = zk.node(path);
            state = node == null ? null : LedgerState.decode(node.data());
        }
        if (node == null || node.stat().getNumChildren() > 0) {
            return;
        }
        int version = node.stat().getVersion();
        if (state.idleAt() != node.stat().getCversion() || state.idleSince() > now) {
            state = state.idle(now, node.stat().getCversion());
            if (!attempt(Op.setData(path, state.encode(), version++))) {
                return;
            }
        }
        if (isOver(state.idleSince(), now)
                && attempt(
                        Op.delete(path, version),
                        Op.create(
                                root + "/del/" + ledger, Names.NOTHING, client.settings.acl, CreateMode.PERSISTENT))) {
            finishDeletion(session, ledger, freed);
        }
    }

    private boolean isOver(long since, long now) {
        return now - since >= client.settings.graceMs;
    }

    private void finishDeletion(Session session, long ledger, List<Long> freed) throws IOException {
        LedgerMetadata metadata = Ledgers.metadata(session, ledger);
        if (metadata != null && !isOurs(session, metadata)) {
            LOG.error("Ledger {} is registered under {} but doesn't carry its identity: not deleted", ledger, root);
            return;
        }
        if (metadata != null) {
            delete(session, ledger, freed);
        }
        attempt(Op.delete(root + "/del/" + ledger, -1));
    }

    private static void delete(Session session, long ledger, List<Long> freed) throws IOException {
        Ledgers.delete(session, ledger);
        freed.add(ledger);
        LOG.info("Freed ledger {}", ledger);
    }

    /** Our unregistered ledgers whose writer's znode, or what is named below it, is gone. */
    List<Long> orphans(String below, Map<String, String> left) throws IOException {
        Session session = client.session();
        var found = new ArrayList<Long>();
        if (!Root.isUnique(session.rootId())) {
            left.put("unregistered ledgers", NO_IDENTITY);
            return found;
        }
        var ranges = session.bk().getLedgerManager().getLedgerRanges(0);
        while (ranges.hasNext()) {
            for (long ledger : ranges.next().getLedgers()) {
                unlessRefused("ledger " + ledger, left, () -> {
                    LedgerMetadata metadata = Ledgers.metadata(session, ledger);
                    if (metadata != null && isOurs(session, metadata) && isOrphan(ledger, metadata, below)) {
                        found.add(ledger);
                    }
                });
            }
        }
        return found;
    }

    private boolean isOrphan(long ledger, LedgerMetadata metadata, String below) throws IOException {
        var process = new String(metadata.getCustomMetadata().get(Ledgers.PROCESS_KEY), StandardCharsets.UTF_8);
        return zk.stat(root + "/w/" + process + below) == null
                && zk.stat(names.ledger(ledger)) == null
                && zk.stat(root + "/del/" + ledger) == null;
    }

    private static boolean isOurs(Session session, LedgerMetadata metadata) {
        byte[] id = metadata.getCustomMetadata().get(Ledgers.ROOT_KEY);
        return id != null && new String(id, StandardCharsets.UTF_8).equals(session.rootId());
    }

    /** Whether all of it was carried out; false when the tree has changed: the next round looks again. */
    private boolean attempt(Op... ops) throws IOException {
        // A write without an answer counts as done: what it leaves undone is found in the next round.
        return zk.write(List.of(ops), () -> true);
    }
}

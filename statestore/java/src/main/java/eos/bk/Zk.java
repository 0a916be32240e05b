package eos.bk;

import java.io.IOException;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.function.BiConsumer;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/**
 * ZooKeeper calls whose outcome is always known. A read is asked again until it is answered. A write that got no answer
 * is never sent again blindly: after {@code sync} its own trace decides. That is sound: ZooKeeper carries nothing out
 * for a session that has expired or moved to another server. A call isn't cut short by an interrupt (the flag is kept),
 * because a request on its way can't be taken back.
 */
final class Zk {
    private static final Set<Code> UNANSWERED = EnumSet.of(
            Code.CONNECTIONLOSS, Code.SESSIONEXPIRED, Code.OPERATIONTIMEOUT, Code.REQUESTTIMEOUT, Code.SESSIONMOVED);
    private static final long PAUSE_MS = 200;

    /** A znode's bytes and its status. */
    record Node(byte[] data, Stat stat) {}

    /** Asks whether a write that got no answer has happened, by reading what only that write leaves behind. */
    interface Trace {
        boolean isThere() throws IOException, KeeperException;
    }

    /** Gives a connected ZooKeeper client, a new one when the last has expired. */
    interface Source {
        ZooKeeper get() throws IOException;
    }

    private final Source source;
    private final String root;
    private final long patienceMs;

    Zk(Source source, String root, long patienceMs) {
        this.source = source;
        this.root = root;
        this.patienceMs = patienceMs;
    }

    /** The znode, or null where there is none. */
    Node node(String path) throws IOException {
        try {
            return read((zk, answer) -> zk.getData(
                    path, false, (rc, p, c, data, stat) -> settle(answer, rc, p, new Node(data, stat)), null));
        } catch (KeeperException.NoNodeException e) {
            return null;
        } catch (KeeperException e) {
            throw failed(e);
        }
    }

    /** The znode's status, or null where there is none. */
    Stat stat(String path) throws IOException {
        try {
            return read((zk, answer) -> zk.exists(path, false, (rc, p, c, stat) -> settle(answer, rc, p, stat), null));
        } catch (KeeperException.NoNodeException e) {
            return null;
        } catch (KeeperException e) {
            throw failed(e);
        }
    }

    /** Names of the children; NoNode is thrown. */
    List<String> children(String path) throws IOException, KeeperException {
        return read(
                (zk, answer) -> zk.getChildren(path, false, (rc, p, c, names) -> settle(answer, rc, p, names), null));
    }

    /** Reads in one request; an op that failed gives an ErrorResult at its place. */
    List<OpResult> readAll(List<Op> ops) throws IOException {
        try {
            return read((zk, answer) -> zk.multi(ops, (rc, p, c, results) -> settle(answer, rc, p, results), null));
        } catch (KeeperException e) {
            throw failed(e);
        }
    }

    /** Waits until the server we talk to has seen all that was committed before. */
    void sync() throws IOException {
        try {
            read((zk, answer) -> zk.sync(root, (rc, p, c) -> settle(answer, rc, p, root), null));
        } catch (KeeperException e) {
            throw failed(e);
        }
    }

    /**
     * Carries out all of {@code ops} or none.
     *
     * @throws KeeperException a definite refusal: nothing was changed
     * @throws IOException ZooKeeper stayed away for too long; whether it happened isn't known
     */
    void write(List<Op> ops, Trace trace) throws IOException, KeeperException {
        for (long deadline = System.currentTimeMillis() + patienceMs; ; ) {
            try {
                await(
                        source.get(),
                        (zk, answer) -> zk.multi(ops, (rc, p, c, results) -> settle(answer, rc, p, results), null));
                return;
            } catch (KeeperException e) {
                if (!UNANSWERED.contains(e.code())) {
                    throw e;
                }
                if (hasHappened(trace)) {
                    return;
                }
                pauseUntil(deadline, e);
            }
        }
    }

    private boolean hasHappened(Trace trace) throws IOException, KeeperException {
        try {
            sync();
            return trace.isThere();
        } catch (IOException e) {
            throw new IOException("ZooKeeper was lost during a write, and it isn't known whether it happened", e);
        }
    }

    static IOException failed(KeeperException e) {
        return new IOException("ZooKeeper refused: " + e.getMessage(), e);
    }

    private <T> T read(BiConsumer<ZooKeeper, CompletableFuture<T>> request) throws IOException, KeeperException {
        for (long deadline = System.currentTimeMillis() + patienceMs; ; ) {
            try {
                return await(source.get(), request);
            } catch (KeeperException e) {
                if (!UNANSWERED.contains(e.code())) {
                    throw e;
                }
                pauseUntil(deadline, e);
            }
        }
    }

    private static void pauseUntil(long deadline, KeeperException e) throws IOException {
        if (System.currentTimeMillis() > deadline) {
            throw new IOException("ZooKeeper gave no answer for too long", e);
        }
        uninterrupted(() -> {
            Thread.sleep(PAUSE_MS);
            return null;
        });
    }

    private static <T> T await(ZooKeeper zk, BiConsumer<ZooKeeper, CompletableFuture<T>> request)
            throws KeeperException {
        var answer = new CompletableFuture<T>();
        request.accept(zk, answer);
        try {
            return uninterrupted(answer::get);
        } catch (ExecutionException e) {
            throw (KeeperException) e.getCause();
        }
    }

    private static <T> void settle(CompletableFuture<T> answer, int rc, String path, T value) {
        if (rc == Code.OK.intValue()) {
            answer.complete(value);
        } else {
            answer.completeExceptionally(KeeperException.create(Code.get(rc), path));
        }
    }

    /** Something that waits. */
    interface Wait<T, E extends Exception> {
        T run() throws InterruptedException, E;
    }

    /** Waits to the end, through interrupts, and puts the interrupt flag back. */
    static <T, E extends Exception> T uninterrupted(Wait<T, E> wait) throws E {
        boolean interrupted = Thread.interrupted();
        try {
            while (true) {
                try {
                    return wait.run();
                } catch (InterruptedException e) {
                    interrupted = true;
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }
}

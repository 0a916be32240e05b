package eos.bk;

import com.google.common.collect.Lists;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.apache.hadoop.security.AccessControlException;
import org.apache.jute.BinaryOutputArchive;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.MultiOperationRecord;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/**
 * ZooKeeper calls whose outcome is always known. A read is asked again until it is answered. A write that got no answer
 * is never sent again blindly: after {@code sync} its own trace decides. ZooKeeper carries nothing out for a session
 * that it has ended or moved to another server; but a client gives its session up by its own clock, so a request may
 * still be carried out late. Then the second one is refused, and the trace decides once more. A call isn't cut short by
 * an interrupt (the flag is kept), because a request on its way can't be taken back.
 */
final class Zk {
    private static final Set<Code> UNANSWERED = EnumSet.of(
            Code.CONNECTIONLOSS, Code.SESSIONEXPIRED, Code.OPERATIONTIMEOUT, Code.REQUESTTIMEOUT, Code.SESSIONMOVED);
    private static final Set<Code> ACCESS =
            EnumSet.of(Code.NOAUTH, Code.AUTHFAILED, Code.INVALIDACL, Code.SESSIONCLOSEDREQUIRESASLAUTH);
    private static final Set<Code> OUTDATED = EnumSet.of(Code.NONODE, Code.NODEEXISTS, Code.BADVERSION, Code.NOTEMPTY);
    /** Codes by their numbers: ZooKeeper's client has them since 3.7, and Spark 3.5 comes with 3.6. */
    private static final int QUOTA_EXCEEDED = -125;

    private static final int THROTTLED = -127;
    private static final long PAUSE_MS = 200;
    /** Of a request, by default, with some room for what is around it. */
    private static final int LIMIT = Settings.MIB - 1024;

    private static final int READ_AT_ONCE = 500;

    /** A znode's bytes and its status. */
    record Node(byte[] data, Stat stat) {}

    /** Asks whether a write that got no answer has happened, by reading what only that write leaves behind. */
    interface Trace {
        boolean isThere() throws IOException;
    }

    /** Gives a connected ZooKeeper client, a new one when the last has expired. */
    interface Source {
        ZooKeeper get() throws IOException;
    }

    private interface Request<T> {
        T send(ZooKeeper zk) throws KeeperException, InterruptedException;
    }

    private final Source source;
    private final String root;
    private final String principal;
    private final long patienceMs;

    Zk(Source source, Settings settings) {
        this.source = source;
        root = settings.root;
        principal = settings.security.principal();
        patienceMs = settings.patienceMs;
    }

    /** The znode, or null where there is none. */
    Node node(String path) throws IOException {
        return read(zk -> {
            var stat = new Stat();
            return new Node(zk.getData(path, false, stat), stat);
        });
    }

    /** The znode's status, or null where there is none. */
    Stat stat(String path) throws IOException {
        return read(zk -> zk.exists(path, false));
    }

    /** Names of the children, or null where there is no znode. */
    List<String> children(String path) throws IOException {
        return read(zk -> zk.getChildren(path, false));
    }

    /** Names of the children of a part of the tree, such as {@code /w}, which is there as long as the tree is. */
    List<String> part(String name) throws IOException {
        List<String> found = children(root + name);
        if (found == null) {
            throw removed();
        }
        return found;
    }

    /** That somebody has taken the tree away, from under a process that has it open. */
    FileNotFoundException removed() {
        return new FileNotFoundException("Nothing is under " + root + " in ZooKeeper any more: was the tree removed?");
    }

    /** Reads some hundreds in each request; where there is no znode, an ErrorResult is at its place. */
    List<OpResult> readAll(List<Op> ops) throws IOException {
        var results = new ArrayList<OpResult>();
        for (List<Op> some : Lists.partition(ops, READ_AT_ONCE)) {
            for (OpResult result : read(zk -> zk.multi(some))) {
                // What may not be read is no less there: to leave it out would be to say that it is not.
                if (result instanceof OpResult.ErrorResult error && error.getErr() != Code.NONODE.intValue()) {
                    throw refused(KeeperException.create(Code.get(error.getErr())), principal);
                }
                results.add(result);
            }
        }
        return results;
    }

    /** Waits until the server we talk to has seen all that was committed before. */
    void sync() throws IOException {
        read(zk -> {
            var answer = new CompletableFuture<Void>();
            zk.sync(root, (rc, path, context) -> settle(answer, rc, path), null);
            return wait(answer);
        });
    }

    private <T> T read(Request<T> request) throws IOException {
        for (var patience = new Patience(patienceMs); ; ) {
            ZooKeeper zk = source.get();
            try {
                return Zk.<T, KeeperException>uninterrupted(() -> request.send(zk));
            } catch (KeeperException.NoNodeException e) {
                return null;
            } catch (KeeperException e) {
                goOn(patience, e);
            }
        }
    }

    /**
     * Carries out all of {@code ops}, or none: false when the tree isn't, or is no longer, as they say.
     *
     * @throws IOException another refusal; or ZooKeeper stayed away for too long, and whether it happened isn't known
     */
    boolean write(List<Op> ops, Trace trace) throws IOException {
        boolean unanswered = false;
        for (var patience = new Patience(patienceMs); ; ) {
            var answer = new CompletableFuture<Void>();
            connected(unanswered).multi(ops, (rc, path, context, results) -> settle(answer, rc, path), null);
            try {
                Zk.<Void, KeeperException>uninterrupted(() -> wait(answer));
                return true;
            } catch (KeeperException e) {
                if (OUTDATED.contains(e.code())) {
                    return unanswered && isThere(trace);
                }
                unanswered |= UNANSWERED.contains(e.code());
                if (unanswered && hasHappened(trace)) {
                    return true;
                }
                if (e.code() == Code.CONNECTIONLOSS) {
                    mustNotBeTooLarge(ops, e);
                }
                goOn(patience, e);
            }
        }
    }

    /** A server closes the connection on a request over its limit, without a word, each time that it is sent. */
    private static void mustNotBeTooLarge(List<Op> ops, KeeperException e) throws IOException {
        var request = new ByteArrayOutputStream();
        new MultiOperationRecord(ops).serialize(BinaryOutputArchive.getArchive(request), "request");
        if (request.size() > LIMIT) {
            throw new IOException(
                    "ZooKeeper has not carried out a request of " + request.size() + " bytes for " + ops.size()
                            + " changes at once: by default it takes 1 MiB (jute.maxbuffer), and closes the connection",
                    e);
        }
    }

    /** A client to write with; without one, a write before that got no answer may still be carried out. */
    private ZooKeeper connected(boolean unanswered) throws IOException {
        try {
            return source.get();
        } catch (IOException e) {
            throw unanswered ? unknown(e) : e;
        }
    }

    private boolean hasHappened(Trace trace) throws IOException {
        try {
            sync();
        } catch (IOException e) {
            throw unknown(e);
        }
        return isThere(trace);
    }

    private static boolean isThere(Trace trace) throws IOException {
        try {
            return trace.isThere();
        } catch (IOException e) {
            throw unknown(e);
        }
    }

    private static IOException unknown(IOException e) {
        return new IOException("ZooKeeper was lost during a write, and it isn't known whether it happened", e);
    }

    private void goOn(Patience patience, KeeperException e) throws IOException {
        if (!UNANSWERED.contains(e.code()) && number(e) != THROTTLED) {
            throw refused(e, principal);
        }
        if (patience.isOver()) {
            throw new IOException("ZooKeeper gave no answer for too long", e);
        }
        pause(PAUSE_MS);
    }

    /** What a refusal is to a caller: credentials that don't suffice are its own affair. */
    static IOException refused(KeeperException e, String principal) {
        IOException refused = ACCESS.contains(e.code())
                ? new AccessControlException("ZooKeeper refuses access (" + e.getMessage()
                        + ") to this client, which is "
                        + principal + ". Set that to digest:user:password, or file:PATH of it, of the user that made "
                        + "what is there")
                : new IOException("ZooKeeper refused: " + e.getMessage()
                        + (number(e) == QUOTA_EXCEEDED
                                ? ". The quota of a znode above it is used up: raise it (setquota -N, -B)"
                                : ""));
        refused.initCause(e);
        return refused;
    }

    private static <T> T wait(CompletableFuture<T> answer) throws KeeperException, InterruptedException {
        try {
            return answer.get();
        } catch (ExecutionException e) {
            throw (KeeperException) e.getCause();
        }
    }

    private static void settle(CompletableFuture<Void> answer, int rc, String path) {
        if (rc == Code.OK.intValue()) {
            answer.complete(null);
        } else {
            answer.completeExceptionally(exception(rc, path));
        }
    }

    private static KeeperException exception(int rc, String path) {
        try {
            return KeeperException.create(Code.get(rc), path);
        } catch (IllegalArgumentException e) {
            // Thrown in ZooKeeper's own thread it would leave the answer open, and its caller waiting for ever.
            return new NewerCode(rc, path);
        }
    }

    private static int number(KeeperException e) {
        return e instanceof NewerCode newer ? newer.number : e.code().intValue();
    }

    /** An answer that a newer server gives, and for which this client of ZooKeeper has no exception. */
    private static final class NewerCode extends KeeperException {
        private final int number;
        private final String path;

        NewerCode(int number, String path) {
            super(Code.SYSTEMERROR);
            this.number = number;
            this.path = path;
        }

        @Override
        public String getMessage() {
            return "KeeperErrorCode = " + number + " for " + path + ", which is newer than this client of ZooKeeper";
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

    static void pause(long ms) {
        uninterrupted(() -> {
            Thread.sleep(ms);
            return null;
        });
    }
}

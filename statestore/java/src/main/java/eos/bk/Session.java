package eos.bk;

import io.netty.buffer.ByteBuf;
import java.io.IOException;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.api.WriteHandle;
import org.apache.bookkeeper.net.BookieId;
import org.apache.zookeeper.ZooKeeper;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One ZooKeeper session: our client of it, the writer identity that lives as long, and BookKeeper's client on top of
 * it. That is made when it is first needed: who only looks at names needs no bookies.
 */
final class Session {
    private static final Logger LOG = LoggerFactory.getLogger(Session.class);
    private static final long ANSWERS_MS = 1_000;
    private static final long LOOK_MS = 5;

    private final Settings settings;
    private final ZooKeeper zk;
    private final String process;
    private final String rootId;
    private final Object ending = new Object();
    private final Set<BookieId> written = ConcurrentHashMap.newKeySet();
    private volatile BookKeeper bk;
    private volatile boolean ended;

    Session(Settings settings, ZooKeeper zk, String process, String rootId) {
        this.settings = settings;
        this.zk = zk;
        this.process = process;
        this.rootId = rootId;
    }

    ZooKeeper zk() {
        return zk;
    }

    /** The writer's name, of which there is only one. */
    String process() {
        return process;
    }

    /** Whether there is a writer: who may only read has none. */
    boolean mayWrite() {
        return process != null;
    }

    /** The identity of the root, which each of its ledgers carries. */
    String rootId() {
        return rootId;
    }

    boolean isAlive() {
        return zk.getState().isAlive();
    }

    BookKeeper bk() throws IOException {
        BookKeeper made = bk;
        return made == null ? makeBookKeeper() : made;
    }

    private synchronized BookKeeper makeBookKeeper() throws IOException {
        if (bk == null && !ended) {
            bk = Zk.uninterrupted(() -> {
                try {
                    return BookKeeper.forConfig(settings.bookkeeperConfiguration())
                            .zk(zk)
                            .build();
                } catch (BKException e) {
                    throw new IOException(
                            "Can't use BookKeeper at " + settings.zkServers + settings.ledgersPath + ": "
                                    + e.getMessage(),
                            e);
                }
            });
        }
        if (ended) {
            end(); // Whoever ended it may not have seen what was just made.
            throw over();
        }
        return bk;
    }

    /** Sends an entry, but none once the session has been ended: what is under way then would be lost. */
    CompletableFuture<Long> append(WriteHandle handle, ByteBuf data) {
        if (ended) {
            return CompletableFuture.failedFuture(over());
        }
        written.addAll(handle.getLedgerMetadata().getAllEnsembles().lastEntry().getValue());
        return handle.appendAsync(data);
    }

    private IOException over() {
        return new IOException("The session of writer " + process + " is over");
    }

    /** Ends it: the client's next call starts another. Whoever calls it while it ends waits until it has. */
    void end() {
        ended = true;
        synchronized (ending) {
            BookKeeper made = bk;
            if (made != null) {
                awaitAnswers(made);
                close(made);
            }
            Zk.uninterrupted(() -> {
                zk.close();
                return null;
            });
        }
    }

    /** In a thread that nobody interrupts: BookKeeper would leave its threads running, and can't be closed again. */
    private static void close(BookKeeper made) {
        var closing = Client.daemon("bk-end", () -> {
            try {
                made.close();
            } catch (BKException | InterruptedException e) {
                LOG.info("BookKeeper's client did not close cleanly: {}", e.toString());
            }
        });
        closing.start();
        Zk.uninterrupted(() -> {
            closing.join();
            return null;
        });
    }

    /**
     * Waits, not for long, until the bookies have answered what was sent: the last copy of an entry is acknowledged
     * after its writer was told. In BookKeeper 4.17.3 an answer that arrives while its connection closes is taken
     * twice: PerChannelBookieClient hands it to a worker before it takes it off its list, where closing finds it again.
     * By then the worker may have given the AddCompletion back, to be used for another entry of the process.
     */
    private void awaitAnswers(BookKeeper made) {
        var bookies = made.getClientCtx().getBookieClient();
        for (var patience = new Patience(ANSWERS_MS); !patience.isOver(); ) {
            if (written.stream().allMatch(bookie -> bookies.getNumPendingRequests(bookie, 0) == 0)) {
                return;
            }
            Zk.pause(LOOK_MS);
        }
    }
}

package eos.bk;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.zip.CRC32C;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.api.LedgerEntries;
import org.apache.bookkeeper.client.api.LedgerEntry;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.bookkeeper.client.api.ReadHandle;
import org.apache.bookkeeper.client.api.WriteHandle;
import org.apache.bookkeeper.net.BookieId;
import org.apache.bookkeeper.versioning.Versioned;
import org.apache.hadoop.security.AccessControlException;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Ledgers: made and registered, read without recovery. Readers never fence a writer: they read the exact published
 * range beyond the visible last entry, which always trails.
 */
final class Ledgers {
    private static final Logger LOG = LoggerFactory.getLogger(Ledgers.class);
    private static final int OPEN_LEDGERS = 64;
    private static final long ANSWER_S = 90;
    /** Of a file in the cache: the cache's entry, the heads of two arrays, a String. */
    private static final int KEPT_BESIDE = 160;

    static final String ROOT_KEY = "eos.root";
    static final String PROCESS_KEY = "eos.process";

    private record Open(Session session, ReadHandle handle) {}

    private final Client client;
    private final Cache<Long, Open> open = CacheBuilder.newBuilder()
            .maximumSize(OPEN_LEDGERS)
            .<Long, Open>removalListener(gone -> gone.getValue().handle().closeAsync())
            .build();
    private final Cache<String, byte[]> cache;
    private final UnreadEntries unread;
    private boolean quorumTold;

    Ledgers(Client client) {
        this.client = client;
        cache = readCache(client.settings.cacheBytes);
        unread = new UnreadEntries(client);
    }

    static Cache<String, byte[]> readCache(long room) {
        // One segment: several would share the room out, and refuse a file that is larger than their part.
        return CacheBuilder.newBuilder()
                .concurrencyLevel(1)
                .maximumWeight(room)
                .weigher(Ledgers::onTheHeap)
                .build();
    }

    /** About how many bytes a file in the cache takes: of a small one, most are not its own. */
    static int onTheHeap(String write, byte[] bytes) {
        return KEPT_BESIDE + write.length() + bytes.length;
    }

    /** A new ledger, registered under our name, so that the sweeper knows whose it is. */
    WriteHandle create(Session session) throws IOException {
        client.mustNotClose();
        Settings settings = client.settings;
        if (!session.mayWrite()) {
            throw new AccessControlException("This client may only read under " + settings.root
                    + " in ZooKeeper: it is " + settings.security.principal());
        }
        BookKeeper bk = session.bk();
        int[] quorum = quorum(bk);
        WriteHandle handle = await(start(() -> bk.newCreateLedgerOp()
                .withEnsembleSize(quorum[0])
                .withWriteQuorumSize(quorum[1])
                .withAckQuorumSize(quorum[2])
                .withDigestType(settings.digest)
                .withPassword(settings.password)
                .withCustomMetadata(Map.of(
                        ROOT_KEY,
                        session.rootId().getBytes(StandardCharsets.UTF_8),
                        PROCESS_KEY,
                        session.process().getBytes(StandardCharsets.UTF_8)))
                .execute()));
        String znode = client.names.ledger(handle.getId());
        List<Op> register = List.of(
                Op.check(settings.root + "/w/" + session.process(), -1),
                Op.create(znode, LedgerState.open(session.process()).encode(), settings.acl, CreateMode.PERSISTENT));
        if (!client.zk.write(register, () -> client.zk.stat(znode) != null)) {
            // We were taken for dead. The ledger is ours alone: no other process has seen it.
            delete(session, handle.getId());
            session.end();
            throw new IOException("Writer " + session.process() + " was taken for dead; a new one starts");
        }
        return handle;
    }

    /** Says in ZooKeeper that the ledger gets no more entries: without references it may be freed, or is already. */
    void markSealed(long ledger, String process) throws IOException {
        byte[] sealed = LedgerState.sealed(process).encode();
        client.zk.write(List.of(Op.setData(client.names.ledger(ledger), sealed, -1)), () -> true);
    }

    /** What BookKeeper knows of the ledger, or null when it has none such. */
    static LedgerMetadata metadata(Session session, long ledger) throws IOException {
        BookKeeper bk = session.bk();
        return unlessMissing(start(() -> bk.getLedgerMetadata(ledger)));
    }

    /** Deletes the ledger, if it is still there. */
    static void delete(Session session, long ledger) throws IOException {
        BookKeeper bk = session.bk();
        unlessMissing(start(() -> bk.newDeleteLedgerOp().withLedgerId(ledger).execute()));
    }

    static <T> T unlessMissing(CompletableFuture<T> answer) throws BookKeeperException {
        try {
            return await(answer);
        } catch (BookKeeperException e) {
            if (e.isMissing()) {
                return null;
            }
            throw e;
        }
    }

    private int[] quorum(BookKeeper bk) throws IOException {
        Settings s = client.settings;
        int ensemble = s.ensemble;
        if (ensemble == 0) {
            var bookies = bk.getMetadataClientDriver().getRegistrationClient();
            ensemble = Math.max(1, Math.min(3, count(bookies.getAllBookies())));
            // One of three bookies away: two copies, both awaited, are as safe as 3/3/2. Never fewer.
            if (ensemble == 3 && count(bookies.getWritableBookies()) == 2) {
                ensemble = 2;
            }
        }
        int write = s.writeQuorum > 0 ? s.writeQuorum : ensemble;
        int ack = s.ackQuorum > 0 ? s.ackQuorum : Math.min(2, write);
        if (write > ensemble || ack > write) {
            String said = "fs.bk.write-quorum must be at most the bookies of a ledger (fs.bk.ensemble), and "
                    + "fs.bk.ack-quorum at most fs.bk.write-quorum. Here they are " + write + ", " + ensemble + " and "
                    + ack + ". Start more bookies, or set fewer copies";
            // Without fs.bk.ensemble a ledger has as many as there are, and some may come back.
            throw s.ensemble == 0 ? new IOException(said) : new Failed(Failed.Kind.InvalidInput, said);
        }
        if (s.ensemble == 0 && ensemble < 3 && !quorumTold) {
            quorumTold = true;
            LOG.warn(
                    "Too few bookies for 3/3/2 (ensemble/write/ack): ledgers are written {}/{}/{}{}",
                    ensemble,
                    write,
                    ack,
                    ack < 2 ? "; losing that bookie loses the state" : "");
        }
        return new int[] {ensemble, write, ack};
    }

    private static int count(CompletableFuture<Versioned<Set<BookieId>>> bookies) throws BookKeeperException {
        return await(bookies).getValue().size();
    }

    /** All bytes of a small file, checked against its CRC32C; kept for the next reader. */
    byte[] readSmall(String path, FileEntry file) throws IOException {
        byte[] known = cache.getIfPresent(file.origin());
        if (known != null) {
            return known;
        }
        byte[] bytes = new byte[(int) file.length()];
        int at = file.length() == 0 ? 0 : read(path, file, file.first(), file.last(), bytes);
        var crc = new CRC32C();
        crc.update(bytes, 0, at);
        mustBeWhole(path, file, at == bytes.length && (int) crc.getValue() == file.crc());
        cache.put(file.origin(), bytes);
        return bytes;
    }

    static void mustBeWhole(String path, FileEntry file, boolean whole) throws IOException {
        if (!whole) {
            throw new Failed(
                    Failed.Kind.Damaged,
                    path + " is damaged: its bytes in ledger " + file.ledger() + ", entries " + file.first() + " to "
                            + file.last() + ", don't have its length and CRC32C");
        }
    }

    /**
     * Reads entries {@code first…last} of the file's ledger into the buffer; returns the number of bytes. While bookies
     * are away it waits for them, for {@code fs.bk.patience.ms}.
     *
     * @throws FileNotFoundException the file has been deleted or replaced since it was opened
     * @throws AccessControlException the bookies refuse this client
     * @throws IOException no bookie gives a good copy of an entry: it is named, with what each of them says
     */
    int read(String path, FileEntry file, long first, long last, byte[] into) throws IOException {
        FileEntry now = file;
        long begunMs = Patience.nowMs();
        for (int attempt = 1; ; attempt++) {
            long shift = now.first() - file.first();
            try {
                int bytes = readOnce(now.ledger(), first + shift, last + shift, into);
                if (attempt > 1) {
                    unread.areRead();
                }
                return bytes;
            } catch (BookKeeperException e) {
                // Our view of the ledger may be old (a bookie was replaced), or the name has moved on (a compaction).
                open.invalidate(now.ledger());
                long ledger = now.ledger();
                now = asItIsNow(path, file, e);
                if (now.ledger() == ledger) {
                    unread.mayBeReadLater(path, ledger, first + shift, last + shift, attempt, begunMs, e);
                }
            }
        }
    }

    private FileEntry asItIsNow(String path, FileEntry file, BookKeeperException unread) throws IOException {
        client.zk.sync();
        Names.Status status = client.names.find(path);
        if (!Names.sameBytes(status, file)) {
            throw (IOException) new FileNotFoundException(path + " was deleted, moved or replaced while it was read")
                    .initCause(unread);
        }
        return status.file();
    }

    private int readOnce(long ledger, long first, long last, byte[] into) throws IOException {
        ReadHandle handle = handle(client.session(), ledger);
        try (LedgerEntries entries = await(start(() -> handle.readUnconfirmedAsync(first, last)))) {
            int at = 0;
            for (LedgerEntry entry : entries) {
                // Not getLength(): that is the length of the ledger so far.
                ByteBuf data = entry.getEntryBuffer();
                int length = data.readableBytes();
                if (at + length > into.length) {
                    throw new IOException(
                            "Entry " + entry.getEntryId() + " of ledger " + ledger + " is longer than its file says");
                }
                data.getBytes(data.readerIndex(), into, at, length);
                at += length;
            }
            return at;
        }
    }

    private ReadHandle handle(Session session, long ledger) throws IOException {
        Open known = open.getIfPresent(ledger);
        if (known != null && known.session() == session) {
            return known.handle();
        }
        ReadHandle handle = openLedger(session, ledger, false);
        open.put(ledger, new Open(session, handle));
        return handle;
    }

    /** Closes a ledger whose writer is gone or fenced: nothing can be appended afterwards. */
    void recover(long ledger) throws IOException {
        openLedger(client.session(), ledger, true).closeAsync();
    }

    private ReadHandle openLedger(Session session, long ledger, boolean recovery) throws IOException {
        BookKeeper bk = session.bk();
        return await(start(() -> bk.newOpenLedgerOp()
                .withLedgerId(ledger)
                .withDigestType(client.settings.digest)
                .withPassword(client.settings.password)
                .withRecovery(recovery)
                .execute()));
    }

    static CompletableFuture<Long> append(Session session, WriteHandle handle, byte[] data, int offset, int length) {
        return start(() -> session.append(handle, Unpooled.wrappedBuffer(data, offset, length)));
    }

    /** An answer of BookKeeper that says no. */
    static final class BookKeeperException extends IOException {
        BookKeeperException(Throwable cause) {
            super("BookKeeper: " + cause + advice(cause) + BookieTls.refusals(), cause);
        }

        private static String advice(Throwable cause) {
            return switch (code(cause)) {
                case BKException.Code.UnauthorizedAccessException ->
                    ": fs.bk.password is not the ledger's, or the bookies let this client in only with TLS (fs.bk.tls)"
                            + " and a certificate of a role that they know (its OU)";
                case BKException.Code.ZKException, BKException.Code.MetaStoreException ->
                    ": may this client use " + "BookKeeper's own znodes (fs.bk.ledgers)? See fs.bk.zookeeper-auth";
                case BKException.Code.NotEnoughBookiesException ->
                    ": a ledger needs as many bookies that can be written to as fs.bk.ensemble says. Start those that "
                            + "are down or full, or set fewer";
                default -> "";
            };
        }

        private static int code(Throwable cause) {
            return cause instanceof BKException refusal ? refusal.getCode() : BKException.Code.OK;
        }

        boolean isUnauthorized() {
            return code(getCause()) == BKException.Code.UnauthorizedAccessException;
        }

        /** Whether it is about one ledger, whose znode is another's or can't be read, and ZooKeeper has answered. */
        boolean isOfItsZnode() {
            int code = code(getCause());
            // Of a deletion BookKeeper does not tell what ZooKeeper has said.
            Throwable why = getCause().getCause();
            return (code == BKException.Code.ZKException || code == BKException.Code.MetaStoreException)
                    && (!(why instanceof KeeperException) || why instanceof KeeperException.NoAuthException);
        }

        boolean isMissing() {
            int code = code(getCause());
            return code == BKException.Code.NoSuchLedgerExistsException
                    || code == BKException.Code.NoSuchLedgerExistsOnMetadataServerException;
        }
    }

    /** BookKeeper's calls fail at once, and an append fails its ledger, when they find the thread interrupted. */
    static <T> CompletableFuture<T> start(Supplier<CompletableFuture<T>> call) {
        return Zk.uninterrupted(call::get);
    }

    /** Waits for BookKeeper, with an end: an error inside its client can lose an answer. */
    static <T> T await(CompletableFuture<T> answer) throws BookKeeperException {
        try {
            return Zk.uninterrupted(answer.orTimeout(ANSWER_S, TimeUnit.SECONDS)::get);
        } catch (ExecutionException e) {
            throw new BookKeeperException(e.getCause());
        }
    }
}

package eos.bk;

import eos.bk.Client.Session;
import io.netty.buffer.Unpooled;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.zip.CRC32C;
import org.apache.bookkeeper.client.api.LedgerEntries;
import org.apache.bookkeeper.client.api.LedgerEntry;
import org.apache.bookkeeper.client.api.ReadHandle;
import org.apache.bookkeeper.client.api.WriteHandle;
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
    private static final int READ_ATTEMPTS = 4;
    private static final long ANSWER_S = 90;
    static final String ROOT_KEY = "eos.root";
    static final String PROCESS_KEY = "eos.process";

    private record Open(Session session, ReadHandle handle) {}

    private final Client client;
    private boolean quorumTold;
    private final Map<Long, Open> open = new LinkedHashMap<>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Long, Open> eldest) {
            if (size() <= OPEN_LEDGERS) {
                return false;
            }
            eldest.getValue().handle().closeAsync();
            return true;
        }
    };
    private final LinkedHashMap<String, byte[]> cache = new LinkedHashMap<>(16, 0.75f, true);
    private long cached;

    Ledgers(Client client) {
        this.client = client;
    }

    /** A new ledger, registered under our name, so that the sweeper knows whose it is. */
    WriteHandle create(Session session) throws IOException {
        Settings settings = client.settings;
        int[] quorum = quorum(session);
        WriteHandle handle = await(start(() -> session.bk
                .newCreateLedgerOp()
                .withEnsembleSize(quorum[0])
                .withWriteQuorumSize(quorum[1])
                .withAckQuorumSize(quorum[2])
                .withDigestType(settings.digest)
                .withPassword(settings.password)
                .withCustomMetadata(Map.of(
                        ROOT_KEY,
                        session.rootId.getBytes(StandardCharsets.UTF_8),
                        PROCESS_KEY,
                        session.process.getBytes(StandardCharsets.UTF_8)))
                .execute()));
        String znode = client.names.ledger(Long.toString(handle.getId()));
        try {
            client.zk.write(
                    List.of(
                            Op.check(settings.root + "/w/" + session.process, -1),
                            Op.create(
                                    znode,
                                    LedgerState.open(session.process).encode(),
                                    settings.acl,
                                    CreateMode.PERSISTENT)),
                    () -> client.zk.stat(znode) != null);
            return handle;
        } catch (KeeperException e) {
            // We were taken for dead. The ledger is ours alone: nobody has seen it.
            session.over = true;
            session.bk.newDeleteLedgerOp().withLedgerId(handle.getId()).execute();
            throw new IOException("Writer " + session.process + " was taken for dead; a new one starts", e);
        }
    }

    /** Says in ZooKeeper that the ledger gets no more entries: without references it may be freed. */
    void markSealed(long ledger, String process) throws IOException {
        try {
            client.zk.write(List.of(seal(ledger, process)), () -> true);
        } catch (KeeperException.NoNodeException e) {
            LOG.debug("Ledger {} was freed before it was sealed", ledger);
        } catch (KeeperException e) {
            throw Zk.failed(e);
        }
    }

    private Op seal(long ledger, String process) {
        return Op.setData(
                client.names.ledger(Long.toString(ledger)),
                LedgerState.sealed(process).encode(),
                -1);
    }

    private int[] quorum(Session session) throws IOException {
        Settings s = client.settings;
        int ensemble = s.ensemble > 0 ? s.ensemble : Math.max(1, Math.min(3, session.bookies));
        if (s.ensemble == 0 && ensemble == 3) {
            // One of three bookies away: two copies, both awaited, are as safe as 3/3/2. Never fewer.
            int writable = await(session.bk
                    .getMetadataClientDriver()
                    .getRegistrationClient()
                    .getWritableBookies()
                    .thenApply(bookies -> bookies.getValue().size()));
            ensemble = writable == 2 ? 2 : 3;
        }
        int write = s.writeQuorum > 0 ? s.writeQuorum : ensemble;
        int ack = s.ackQuorum > 0 ? s.ackQuorum : Math.min(2, write);
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

    /** All bytes of a small file, checked against its CRC32C; kept for the next reader. */
    byte[] readSmall(String path, FileEntry file) throws IOException {
        synchronized (cache) {
            byte[] bytes = cache.get(file.origin());
            if (bytes != null) {
                return bytes;
            }
        }
        byte[] bytes = new byte[(int) file.length()];
        int at = 0;
        if (file.ledger() != FileEntry.NO_LEDGER) {
            at = read(path, file, file.first(), file.last(), bytes);
        }
        var crc = new CRC32C();
        crc.update(bytes, 0, bytes.length);
        if (at != bytes.length || (int) crc.getValue() != file.crc()) {
            throw new IOException(
                    path + " is damaged: its bytes in ledger " + file.ledger() + " don't have its CRC32C");
        }
        synchronized (cache) {
            if (bytes.length <= client.settings.cacheBytes && cache.put(file.origin(), bytes) == null) {
                cached += bytes.length;
                for (var eldest = cache.entrySet().iterator(); cached > client.settings.cacheBytes; eldest.remove()) {
                    cached -= eldest.next().getValue().length;
                }
            }
        }
        return bytes;
    }

    /**
     * Reads entries {@code first…last} of the file's ledger into the buffer; returns the number of bytes.
     *
     * @throws FileNotFoundException the file has been deleted or replaced since it was opened
     */
    int read(String path, FileEntry file, long first, long last, byte[] into) throws IOException {
        FileEntry now = file;
        for (int attempt = 1; ; attempt++) {
            Session session = client.session();
            long shift = now.first() - file.first();
            try (LedgerEntries entries = await(startRead(handle(session, now.ledger()), first + shift, last + shift))) {
                int at = 0;
                for (LedgerEntry entry : entries) {
                    // Not getLength(): that is the length of the ledger so far.
                    int length = entry.getEntryBuffer().readableBytes();
                    if (at + length > into.length) {
                        throw new IOException(path + " is damaged: entry " + entry.getEntryId() + " of ledger "
                                + now.ledger() + " is longer than the file says");
                    }
                    entry.getEntryBuffer().getBytes(entry.getEntryBuffer().readerIndex(), into, at, length);
                    at += length;
                }
                return at;
            } catch (BookKeeperException e) {
                // Our view of the ledger may be old (a bookie was replaced), or the name has moved on (a compaction).
                forget(now.ledger());
                client.zk.sync();
                Names.Status status = client.names.find(path);
                if (status == null
                        || status.isDirectory()
                        || !status.file().origin().equals(file.origin())) {
                    throw (IOException)
                            new FileNotFoundException(path + " was deleted, moved or replaced while it was read")
                                    .initCause(e);
                }
                now = status.file();
                if (attempt == READ_ATTEMPTS) {
                    throw new IOException(
                            path + " can't be read from ledger " + now.ledger() + ": " + e.getMessage(), e);
                }
            }
        }
    }

    private static CompletableFuture<LedgerEntries> startRead(ReadHandle handle, long first, long last) {
        return start(() -> handle.readUnconfirmedAsync(first, last));
    }

    private ReadHandle handle(Session session, long ledger) throws IOException {
        synchronized (open) {
            Open known = open.get(ledger);
            if (known != null && known.session() == session) {
                return known.handle();
            }
        }
        ReadHandle handle = await(start(() -> session.bk
                .newOpenLedgerOp()
                .withLedgerId(ledger)
                .withDigestType(client.settings.digest)
                .withPassword(client.settings.password)
                .withRecovery(false)
                .execute()));
        synchronized (open) {
            open.put(ledger, new Open(session, handle));
        }
        return handle;
    }

    private void forget(long ledger) {
        synchronized (open) {
            Open known = open.remove(ledger);
            if (known != null) {
                known.handle().closeAsync();
            }
        }
    }

    /** Closes a ledger whose writer is gone or fenced: nothing can be appended afterwards. */
    void recover(long ledger) throws IOException {
        Session session = client.session();
        var handle = await(start(() -> session.bk
                .newOpenLedgerOp()
                .withLedgerId(ledger)
                .withDigestType(client.settings.digest)
                .withPassword(client.settings.password)
                .withRecovery(true)
                .execute()));
        handle.closeAsync();
    }

    static CompletableFuture<Long> append(WriteHandle handle, byte[] data, int offset, int length) {
        return start(() -> handle.appendAsync(Unpooled.wrappedBuffer(data, offset, length)));
    }

    /** An answer of BookKeeper that says no. */
    static final class BookKeeperException extends IOException {
        BookKeeperException(Throwable cause) {
            super("BookKeeper: " + cause, cause);
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

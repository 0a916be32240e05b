package eos.bk;

import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.concurrent.CompletableFuture;
import java.util.zip.CRC32C;
import org.apache.bookkeeper.client.api.WriteHandle;
import org.apache.hadoop.fs.Abortable;

/**
 * A file being written. It becomes visible when {@code close} returns, whole, and never if writing or closing failed.
 * Whoever closes it again after a failure is told again: who missed the first would take the file for written.
 * Up to {@code fs.bk.pack.file.bytes} it is kept in memory and goes into a pack; a larger one gets its own ledger, with
 * {@code fs.bk.window} entries on their way at a time.
 */
final class BkOutputStream extends OutputStream implements Abortable {
    private static final int FIRST_BUFFER = 8192;

    private final Client client;
    private final String path;
    private final boolean overwrite;
    private final Deque<CompletableFuture<Long>> underWay = new ArrayDeque<>();
    private final CRC32C crc = new CRC32C();
    private byte[] buffer = new byte[FIRST_BUFFER];
    private int filled;
    private long written;
    private Session session;
    private WriteHandle own;
    private Throwable failure;
    private String whatFailed = " was not made visible: writing it failed";
    private boolean closed;

    BkOutputStream(Client client, String path, boolean overwrite) {
        this.client = client;
        this.path = path;
        this.overwrite = overwrite;
    }

    @Override
    public void write(int b) throws IOException {
        write(new byte[] {(byte) b}, 0, 1);
    }

    @Override
    public synchronized void write(byte[] data, int offset, int length) throws IOException {
        if (closed) {
            throw new IOException(path + " is closed");
        }
        if (failure != null) {
            throw new IOException(path + " can't be written to any more: a write to it failed", failure);
        }
        java.util.Objects.checkFromIndexSize(offset, length, data.length);
        try {
            for (int from = offset, end = offset + length; from < end; ) {
                if (own == null && filled == client.settings.packFileLimit) {
                    startOwnLedger();
                }
                int limit = own == null ? client.settings.packFileLimit : client.settings.entrySize;
                int part = Math.min(end - from, limit - filled);
                if (filled + part > buffer.length) {
                    buffer = Arrays.copyOf(buffer, Math.min(limit, Math.max(filled + part, 2 * buffer.length)));
                }
                System.arraycopy(data, from, buffer, filled, part);
                filled += part;
                from += part;
                if (own != null && filled == client.settings.entrySize) {
                    send();
                }
            }
        } catch (IOException | RuntimeException | Error e) {
            failure = e;
            throw e;
        }
    }

    private void startOwnLedger() throws IOException {
        byte[] begun = buffer;
        int length = filled;
        session = client.session();
        own = client.ledgers.create(session);
        buffer = new byte[client.settings.entrySize];
        filled = 0;
        write(begun, 0, length);
    }

    /** Sends the buffer as an entry; BookKeeper keeps it until all copies are acknowledged, so a new one is begun. */
    private void send() throws IOException {
        if (underWay.size() == client.settings.window) {
            Ledgers.await(underWay.poll());
        }
        crc.update(buffer, 0, filled);
        underWay.add(Ledgers.append(session, own, buffer, 0, filled));
        written += filled;
        buffer = new byte[client.settings.entrySize];
        filled = 0;
    }

    @Override
    public synchronized void close() throws IOException {
        if (!closed) {
            closed = true;
            if (failure != null) {
                release();
            } else {
                try {
                    publish();
                } catch (IOException | RuntimeException | Error e) {
                    failure = e;
                    whatFailed = " could not be closed";
                    throw e;
                }
            }
        }
        if (failure != null) {
            throw new IOException(path + whatFailed, failure);
        }
    }

    private void publish() throws IOException {
        if (own == null) {
            client.unnamed.close(path, Arrays.copyOf(buffer, filled), overwrite);
            return;
        }
        try {
            if (filled > 0) {
                send();
            }
            while (!underWay.isEmpty()) {
                Ledgers.await(underWay.poll());
            }
            Ledgers.await(Ledgers.start(own::closeAsync));
        } catch (IOException e) {
            release();
            throw e;
        }
        long last = own.getLastAddConfirmed();
        client.ledgers.markSealed(own.getId(), session.process());
        client.names.publish(
                path,
                new FileEntry(
                        client.nextWrite(),
                        0,
                        own.getId(),
                        0,
                        last,
                        client.settings.entrySize,
                        written,
                        (int) crc.getValue(),
                        System.currentTimeMillis()),
                overwrite);
        client.unnamed.delete(path); // A small one that was held there would hide it.
    }

    /** Ends writing; the file doesn't become visible. */
    @Override
    public synchronized AbortableResult abort() {
        boolean already = closed;
        closed = true;
        failure = null; // Its end is as it was asked for.
        return new Aborted(already, already ? null : release());
    }

    private record Aborted(boolean alreadyClosed, IOException anyCleanupException) implements AbortableResult {}

    /** Leaves the ledger to the sweeper: sealed, without a reference. */
    private IOException release() {
        if (own != null) {
            try {
                client.ledgers.recover(own.getId());
                client.ledgers.markSealed(own.getId(), session.process());
            } catch (IOException e) {
                return e;
            }
        }
        return null;
    }
}

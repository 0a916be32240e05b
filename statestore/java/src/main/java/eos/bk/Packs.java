package eos.bk;

import eos.bk.Ledgers.BookKeeperException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.zip.CRC32C;
import org.apache.bookkeeper.client.api.WriteHandle;
import org.apache.hadoop.security.AccessControlException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Small files share a ledger: a pack. A pack is rolled by size, age and number of files, and whenever an append to it
 * fails (AutoRecovery may fence a live pack): what isn't acknowledged is written again to the next, what is published
 * stays valid.
 */
final class Packs {
    private static final Logger LOG = LoggerFactory.getLogger(Packs.class);
    private static final int ATTEMPTS = 5;
    private static final long PAUSE_MS = 200;

    /** Files that live equally long share a pack: RocksDB's SST files, or all others. */
    private enum Kind {
        SST,
        OTHER
    }

    private static final class Pack {
        final Session session;
        final WriteHandle handle;
        final Patience age;
        long bytes;
        int files;
        int users;
        boolean retired;

        Pack(Session session, WriteHandle handle, long longestMs) {
            this.session = session;
            this.handle = handle;
            age = new Patience(longestMs);
        }
    }

    private final Client client;
    private final Map<Kind, Pack> current = new EnumMap<>(Kind.class);

    Packs(Client client) {
        this.client = client;
    }

    /** Writes a small file's bytes, all acknowledged on return, and describes it; it doesn't have its name yet. */
    FileEntry append(String path, byte[] data) throws IOException {
        return append(path, data, client.settings.entrySize);
    }

    /** The same, in entries of so many bytes. */
    FileEntry append(String path, byte[] data, int entrySize) throws IOException {
        Kind kind = path.endsWith(".sst") ? Kind.SST : Kind.OTHER;
        var crc = new CRC32C();
        crc.update(data, 0, data.length);
        long now = System.currentTimeMillis();
        if (data.length == 0) {
            return new FileEntry(
                    client.nextWrite(), 0, FileEntry.NO_LEDGER, 0, -1, entrySize, 0, (int) crc.getValue(), now);
        }
        for (int attempt = 1; ; attempt++) {
            try {
                Pack pack = enter(kind, data.length);
                try {
                    long last = append(pack, data, entrySize);
                    long first = last - (data.length - 1) / entrySize;
                    return new FileEntry(
                            client.nextWrite(),
                            0,
                            pack.handle.getId(),
                            first,
                            last,
                            entrySize,
                            data.length,
                            (int) crc.getValue(),
                            now);
                } catch (BookKeeperException e) {
                    LOG.warn("Pack {} takes no more ({}): rolling", pack.handle.getId(), e.getMessage());
                    retire(kind, pack);
                    throw e;
                } finally {
                    leave(pack);
                }
            } catch (AccessControlException | Failed e) {
                throw e; // Waiting gives no right.
            } catch (IOException e) {
                boolean hopeless = e instanceof BookKeeperException answer && answer.isUnauthorized();
                if (attempt == ATTEMPTS || hopeless || client.isClosing()) {
                    throw e;
                }
                Zk.pause(PAUSE_MS << attempt);
            }
        }
    }

    private static long append(Pack pack, byte[] data, int entrySize) throws BookKeeperException {
        List<CompletableFuture<Long>> answers = new ArrayList<>();
        // One lock around all entries of a file: they get consecutive numbers.
        synchronized (pack.handle) {
            for (int at = 0; at < data.length; at += entrySize) {
                answers.add(Ledgers.append(pack.session, pack.handle, data, at, Math.min(entrySize, data.length - at)));
            }
        }
        long last = -1;
        for (var answer : answers) {
            last = Ledgers.await(answer);
        }
        return last;
    }

    private synchronized Pack enter(Kind kind, int bytes) throws IOException {
        Session session = client.session();
        Pack pack = current.get(kind);
        if (pack != null && (pack.session != session || isFull(pack))) {
            retire(kind, pack);
            pack = null;
        }
        if (pack == null) {
            pack = new Pack(session, client.ledgers.create(session), client.settings.packAgeMs);
            current.put(kind, pack);
        }
        pack.users++;
        pack.files++;
        pack.bytes += bytes;
        return pack;
    }

    private boolean isFull(Pack pack) {
        Settings settings = client.settings;
        return pack.bytes >= settings.packBytes || pack.files >= settings.packFiles || pack.age.isOver();
    }

    private synchronized void leave(Pack pack) {
        pack.users--;
        sealIfLeft(pack);
    }

    private synchronized void retire(Kind kind, Pack pack) {
        if (!pack.retired) {
            pack.retired = true;
            current.remove(kind, pack);
            sealIfLeft(pack);
        }
    }

    private void sealIfLeft(Pack pack) {
        if (pack.retired && pack.users == 0 && !client.background.isShutdown()) {
            client.background.execute(sealing(pack));
        }
    }

    private Runnable sealing(Pack pack) {
        long ledger = pack.handle.getId();
        return new BackgroundTask("Pack " + ledger + " stays open until its writer is gone", () -> {
            try {
                Ledgers.await(Ledgers.start(pack.handle::closeAsync));
            } catch (BookKeeperException e) {
                client.ledgers.recover(ledger);
            }
            client.ledgers.markSealed(ledger, pack.session.process());
        });
    }

    /** Rolls the packs that are old or full, so that what they hold can be freed once it is deleted. */
    synchronized void rollFull() {
        Map.copyOf(current).forEach((kind, pack) -> {
            if (isFull(pack)) {
                retire(kind, pack);
            }
        });
    }

    void close() {
        List<Pack> left;
        synchronized (this) {
            left = List.copyOf(current.values());
            current.clear();
        }
        left.forEach(pack -> sealing(pack).run());
    }
}

package eos.bk;

import eos.bk.Names.Status;
import eos.bk.Zk.Node;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Empties sparse packs: one long-lived file would keep all its dead neighbours. Each file's bytes are copied into a
 * fresh pack, then one multi swaps its locator and its reference, unless the file has changed meanwhile. Readers that
 * have the file open find it again by its name. Left alone: packs that a savepoint holds, and files that were published
 * or moved within the grace time, whose writer may still be reading its reference to learn what happened.
 */
final class Compactor {
    private static final Logger LOG = LoggerFactory.getLogger(Compactor.class);

    private final Client client;

    Compactor(Client client) {
        this.client = client;
    }

    /** {@code now}: when the round began, by ZooKeeper's clock. */
    void compact(long now) throws IOException {
        for (long ledger : client.names.ledgers()) {
            try {
                compact(ledger, now);
            } catch (IOException e) {
                LOG.warn("Ledger {} can't be compacted now: {}", ledger, e.getMessage());
            }
        }
    }

    private void compact(long ledger, long now) throws IOException {
        Node node = client.zk.node(client.names.ledger(ledger));
        if (node == null || !LedgerState.decode(node.data()).sealed()) {
            return;
        }
        List<Status> files = filesOf(ledger, now);
        long live = files.stream().mapToLong(status -> status.file().length()).sum();
        LedgerMetadata metadata = files.isEmpty() ? null : Ledgers.metadata(client.session(), ledger);
        if (metadata == null || live >= client.settings.compactBelow * metadata.getLength()) {
            return;
        }
        for (Status status : files) {
            FileEntry old = status.file();
            try {
                byte[] bytes = client.ledgers.readSmall(status.path(), old);
                // In entries as before: who has the file open knows of no others.
                FileEntry copy = client.packs.append(status.path(), bytes, old.entrySize());
                client.names.replace(status.path(), old, old.copiedTo(copy, status.mtime()));
            } catch (FileNotFoundException e) {
                LOG.debug("{} was deleted meanwhile: nothing to keep", status.path());
            }
        }
    }

    /** The ledger's files; none when it is to be left alone. */
    private List<Status> filesOf(long ledger, long now) throws IOException {
        var files = new ArrayList<Status>();
        List<String> references = client.zk.children(client.names.ledger(ledger));
        for (String write : references == null ? List.<String>of() : references) {
            Node reference = client.zk.node(client.names.ledger(ledger) + "/" + write);
            if (reference == null) {
                continue;
            }
            if (write.startsWith("s-") || now - reference.stat().getMtime() < client.settings.graceMs) {
                return List.of();
            }
            Status status = client.names.find(Names.referencedPath(reference.data()));
            if (status != null && !status.isDirectory() && status.file().write().equals(write)) {
                files.add(status);
            }
        }
        return files;
    }
}

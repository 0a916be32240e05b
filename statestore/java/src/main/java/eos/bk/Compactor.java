package eos.bk;

import eos.bk.Names.Status;
import eos.bk.Packs.Kind;
import eos.bk.Zk.Node;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.zookeeper.KeeperException;

/**
 * Empties sparse packs: one long-lived file would keep all its dead neighbours. Each file's bytes are copied into a
 * fresh pack, then one multi swaps its locator and its reference, unless the file has changed meanwhile. Readers that
 * have the file open find it again by its name. Left alone: packs that a savepoint holds, and files that were published
 * or moved within the grace time, whose writer may still be reading its reference to learn what happened.
 */
final class Compactor {
    private final Client client;

    Compactor(Client client) {
        this.client = client;
    }

    void compact() throws IOException {
        try {
            for (String id : client.zk.children(client.settings.root + "/L")) {
                if (!id.equals("empty")) {
                    compact(id);
                }
            }
        } catch (KeeperException e) {
            throw Zk.failed(e);
        }
    }

    private void compact(String id) throws IOException, KeeperException {
        Node ledger = client.zk.node(client.names.ledger(id));
        if (ledger == null || !LedgerState.decode(ledger.data()).sealed()) {
            return;
        }
        List<Status> files = filesOf(id);
        long live = files.stream().mapToLong(status -> status.file().length()).sum();
        if (files.isEmpty()
                || live
                        >= client.settings.compactBelow
                                * Ledgers.await(client.session().bk.getLedgerMetadata(Long.parseLong(id)))
                                        .getLength()) {
            return;
        }
        for (Status status : files) {
            FileEntry old = status.file();
            try {
                byte[] bytes = client.ledgers.readSmall(status.path(), old);
                FileEntry copy =
                        client.packs.append(bytes, status.path().endsWith(".sst") ? Kind.COPIED : Kind.WRITTEN);
                client.names.replace(status.path(), old, old.copiedTo(copy));
            } catch (FileNotFoundException e) {
                // Deleted meanwhile: nothing to keep.
                continue;
            }
        }
    }

    /** The ledger's files; none when it is to be left alone. */
    private List<Status> filesOf(String id) throws IOException, KeeperException {
        var files = new ArrayList<Status>();
        for (String write : client.zk.children(client.names.ledger(id))) {
            Node reference = client.zk.node(client.names.ledger(id) + "/" + write);
            if (reference == null) {
                continue;
            }
            if (write.startsWith("s-")
                    || System.currentTimeMillis() - reference.stat().getMtime() < client.settings.graceMs) {
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

package eos.bk;

import static eos.bk.Failed.Kind.CutFailed;
import static eos.bk.Failed.Kind.Unavailable;

import com.google.common.collect.Lists;
import eos.bk.Zk.Node;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Op;

/**
 * A savepoint that is being made. Every step checks the znode that says so.
 *
 * @param token that znode: it ends with the maker's session, and when a deletion begins
 */
record Building(Savepoints all, String name, Savepoint savepoint, String token) {
    Savepoint finish(long batch, String query, Map<String, FileEntry> files) throws IOException {
        hold(Savepoint.ledgersOf(files));
        byte[] list = Savepoint.list(files);
        List<byte[]> chunks = Savepoint.pack(list);
        for (int number = 0; number < chunks.size(); number++) {
            if (!write(List.of(create(all.chunk(name, number), chunks.get(number))))) {
                throw ended();
            }
        }
        Savepoint ready = savepoint.ready(batch, query, files, list, chunks.size());
        String path = all.path(name);
        var ops = List.of(Op.delete(token, -1), Op.setData(path, ready.encode(), 0));
        boolean done = all.zk.write(ops, () -> {
            Node node = all.zk.node(path);
            return node != null && Arrays.equals(node.data(), ready.encode());
        });
        if (!done) {
            throw ended();
        }
        return ready;
    }

    void hold(List<Long> ledgers) throws IOException {
        for (List<Long> some : Lists.partition(ledgers, all.atOnce)) {
            if (!write(some.stream()
                    .map(ledger -> create(all.reference(name, ledger), Names.NOTHING))
                    .toList())) {
                for (long ledger : some) {
                    if (all.zk.stat(token) != null && all.zk.stat(all.names.ledger(ledger)) == null) {
                        throw new Failed(CutFailed, "Ledger " + ledger + " was freed before it was held");
                    }
                }
                throw ended();
            }
        }
    }

    private Op create(String path, byte[] data) {
        return Op.create(path, data, all.client.settings.acl, CreateMode.PERSISTENT);
    }

    private boolean write(List<Op> more) throws IOException {
        var ops = new ArrayList<Op>(List.of(Op.check(token, -1)));
        ops.addAll(more);
        String last = more.get(more.size() - 1).getPath();
        // With the token gone, what is there may be a later savepoint's of that name.
        return all.zk.write(ops, () -> all.zk.stat(last) != null && all.zk.stat(token) != null);
    }

    private Failed ended() {
        return new Failed(
                Unavailable,
                "Savepoint " + name + " cannot be finished: the ZooKeeper session that began it has ended, or its "
                        + "deletion has begun. Create it again");
    }
}

package eos.bk;

import com.google.common.collect.Lists;
import eos.bk.Zk.Node;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** What Python asks to see, as JSON, of many names in one answer: a call for each would take a round trip each. */
public final class Look {
    private static final int AT_ONCE = 500;

    private Look() {}

    private record Entry(String uri, String path, String name, long length, long mtimeMs, boolean isDirectory) {}

    private record File(
            String path,
            String write,
            int generation,
            long ledger,
            long first,
            long last,
            int entrySize,
            long length,
            long crc32c,
            long mtimeMs) {}

    private record Ledger(long id, String owner, boolean sealed, List<String> references, Stored stored) {}

    private record Stored(
            int ensemble, int writeQuorum, int ackQuorum, boolean closed, long length, List<String> bookies) {}

    /** What is in a directory of any file system; of a file, the file itself. */
    public static String list(FileSystem fs, Path path) throws IOException {
        var found = new ArrayList<Entry>();
        for (FileStatus status : fs.listStatus(path)) {
            Path at = status.getPath();
            found.add(new Entry(
                    at.toString(),
                    at.toUri().getPath(),
                    at.getName(),
                    status.getLen(),
                    status.getModificationTime(),
                    status.isDirectory()));
        }
        return Json.write(found);
    }

    /** The records of those that are files of a JSON list of paths. */
    public static String files(FileSystem fs, String paths) throws IOException {
        List<String> wanted = Arrays.asList(Json.MAPPER.readValue(paths, String[].class));
        return Json.write(Maintenance.client(fs).names.find(wanted).stream()
                .filter(status -> status != null && !status.isDirectory())
                .map(status -> {
                    FileEntry file = status.file();
                    return new File(
                            status.path(),
                            file.write(),
                            file.generation(),
                            file.ledger(),
                            file.first(),
                            file.last(),
                            file.entrySize(),
                            file.length(),
                            Integer.toUnsignedLong(file.crc()),
                            status.mtime());
                })
                .toList());
    }

    /** Ledgers that are registered, by a JSON list of their ids; an empty one asks for all. */
    public static String ledgers(FileSystem fs, String ids) throws IOException {
        Client client = Maintenance.client(fs);
        List<Long> wanted = Arrays.asList(Json.MAPPER.readValue(ids, Long[].class));
        if (wanted.isEmpty()) {
            wanted = client.names.ledgers();
        }
        var bk = client.session().bk();
        var found = new ArrayList<Ledger>();
        for (List<Long> some : Lists.partition(wanted, AT_ONCE)) {
            var asked = new LinkedHashMap<Long, CompletableFuture<LedgerMetadata>>();
            for (long id : some) {
                asked.put(id, Ledgers.start(() -> bk.getLedgerMetadata(id)));
            }
            for (var one : asked.entrySet()) {
                String path = client.names.ledger(one.getKey());
                Node node = client.zk.node(path);
                List<String> references = client.zk.children(path);
                if (node != null && references != null) {
                    LedgerState state = LedgerState.decode(node.data());
                    LedgerMetadata metadata = Ledgers.unlessMissing(one.getValue());
                    found.add(new Ledger(one.getKey(), state.process(), state.sealed(), references, stored(metadata)));
                }
            }
        }
        return Json.write(found);
    }

    private static Stored stored(LedgerMetadata metadata) {
        return metadata == null
                ? null
                : new Stored(
                        metadata.getEnsembleSize(),
                        metadata.getWriteQuorumSize(),
                        metadata.getAckQuorumSize(),
                        metadata.isClosed(),
                        metadata.getLength(),
                        metadata.getAllEnsembles().values().stream()
                                .flatMap(List::stream)
                                .map(Object::toString)
                                .distinct()
                                .sorted()
                                .toList());
    }
}

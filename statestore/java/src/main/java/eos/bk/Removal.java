package eos.bk;

import eos.bk.Names.Status;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;

/**
 * Names that are removed in one multi: all of them or, when one has changed since it was read, none.
 *
 * @param statuses as they were read, what is in a directory before the directory
 */
record Removal(Names names, List<Status> statuses) {
    /** ZooKeeper takes a request of 1 MiB; a file is two operations with some 150 bytes each. */
    private static final int AT_ONCE = 300;

    private static final int BYTES_AT_ONCE = 256 << 10;

    /** All that is below the directory, children before parents, some hundreds of names each. */
    static List<Removal> below(Names names, String directory) throws IOException {
        var all = new ArrayDeque<Status>();
        var directories = new ArrayDeque<>(List.of(directory));
        while (!directories.isEmpty()) {
            try {
                for (Status status : names.list(directories.poll())) {
                    all.push(status);
                    if (status.isDirectory()) {
                        directories.add(status.path());
                    }
                }
            } catch (FileNotFoundException e) {
                continue; // It went meanwhile.
            }
        }
        var parts = new ArrayList<Removal>();
        while (!all.isEmpty()) {
            var some = new ArrayList<Status>();
            for (int bytes = 0; !all.isEmpty() && some.size() < AT_ONCE && bytes < BYTES_AT_ONCE; ) {
                Status one = all.poll();
                some.add(one);
                bytes += names.name(one.path()).length();
            }
            parts.add(new Removal(names, some));
        }
        return parts;
    }

    List<Op> ops() {
        var ops = new ArrayList<Op>();
        for (Status one : statuses) {
            if (one.isDirectory()) {
                ops.add(Op.delete(names.name(one.path()), 1));
            } else {
                names.addRemoval(ops, one);
            }
        }
        return ops;
    }

    /** The trace: neither the directories are there, nor the files' references, nor names that show their bytes. */
    boolean hasHappened() throws IOException {
        List<Status> now = names.find(statuses.stream().map(Status::path).toList());
        for (int i = 0; i < statuses.size(); i++) {
            Status before = statuses.get(i);
            if (before.isDirectory() ? now.get(i) != null : Names.sameBytes(now.get(i), before.file())) {
                return false;
            }
        }
        return names.references(statuses).stream().noneMatch(OpResult.GetDataResult.class::isInstance);
    }
}

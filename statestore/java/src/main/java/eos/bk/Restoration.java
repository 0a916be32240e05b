package eos.bk;

import com.google.common.collect.Lists;
import eos.bk.Names.Status;
import eos.bk.Savepoints.Ready;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.zookeeper.Op;

/**
 * A savepoint that is being restored as a new checkpoint, whose files are in the savepoint's own ledgers. Each step is
 * one multi, or some of the same kind, and checks that the savepoint is still ready: its references keep the ledgers,
 * so that the new ones can be made.
 *
 * <pre>
 * parents      the directories above the target                    a crash leaves empty directories
 * take         create(target), create(target/metadata, empty)      the name is taken; Spark doesn't start a query on a
 *                                                                  checkpoint whose metadata it can't read
 * fill         directories, then files, each with a new write id;  a crash leaves a target that Spark refuses: delete
 *              those of commits/ late                              it, and restore again
 * (the caller  writes anew the few files that name the checkpoint's own address)
 * finish       the true metadata in place of the empty one         after it the checkpoint is whole
 * </pre>
 */
public final class Restoration {
    private static final String METADATA = "metadata";

    private final Savepoints savepoints;
    private final Names names;
    private final String name;
    private final String target;
    private final Ready ready;
    private final FileEntry guard;

    private Restoration(Savepoints savepoints, String name, String target, Ready ready) throws IOException {
        this.savepoints = savepoints;
        this.names = savepoints.names;
        this.name = name;
        this.target = target;
        this.ready = ready;
        guard = savepoints.client.packs.append(METADATA, Names.NOTHING);
    }

    static Restoration begin(Savepoints savepoints, String name, String target, Ready ready) throws IOException {
        var restoration = new Restoration(savepoints, name, target, ready);
        restoration.take();
        try {
            restoration.fill();
        } catch (IOException | RuntimeException | Error e) {
            try {
                restoration.abandon();
            } catch (IOException left) {
                e.addSuppressed(left);
            }
            throw e;
        }
        return restoration;
    }

    /** The savepoint, as JSON. */
    public String savepoint() {
        return Json.write(ready.savepoint().told(name));
    }

    /** The lengths of its files by their paths below the checkpoint, as JSON. */
    public String files() {
        var lengths = new TreeMap<String, Long>();
        ready.files().forEach((path, file) -> lengths.put(path, file.length()));
        return Json.write(lengths);
    }

    /** Makes the checkpoint whole. */
    public void finish() throws IOException {
        var ops = new ArrayList<Op>();
        names.addRemoval(ops, new Status(at(METADATA), guard, 0));
        FileEntry metadata = ready.files().get(METADATA);
        if (metadata != null) {
            addCopy(ops, METADATA, metadata);
        }
        put(ops, () -> savepoints.zk.stat(names.reference(guard)) == null);
    }

    /** Removes what was begun. */
    public void abandon() throws IOException {
        names.delete(target, true);
    }

    private void take() throws IOException {
        var ops = new ArrayList<Op>(List.of(Op.check(names.name(Names.parent(target)), 1)));
        names.addDirectory(ops, target);
        names.addFile(ops, at(METADATA), guard);
        try {
            put(ops, () -> savepoints.zk.stat(names.reference(guard)) != null);
        } catch (Failed e) {
            throw names.find(target) == null
                    ? e
                    : new Failed(
                            Failed.Kind.InvalidInput,
                            "There is something at " + target + ": a savepoint is restored to a new place");
        }
    }

    private void fill() throws IOException {
        var directories = new TreeSet<String>();
        for (String path : ready.files().keySet()) {
            for (int end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
                directories.add(path.substring(0, end));
            }
        }
        for (List<String> some : Lists.partition(List.copyOf(directories), savepoints.atOnce)) {
            var ops = new ArrayList<Op>();
            some.forEach(path -> names.addDirectory(ops, at(path)));
            put(ops, () -> names.find(at(some.get(0))) != null);
        }
        var files = new ArrayList<>(ready.files().entrySet());
        files.removeIf(file -> file.getKey().equals(METADATA));
        files.sort(Comparator.comparing(file -> file.getKey().startsWith("commits/")));
        for (List<Map.Entry<String, FileEntry>> some : Lists.partition(files, savepoints.atOnce)) {
            var ops = new ArrayList<Op>();
            some.forEach(file -> addCopy(ops, file.getKey(), file.getValue()));
            put(ops, () -> names.find(at(some.get(0).getKey())) != null);
        }
    }

    /** The same bytes under a new reference. */
    private void addCopy(List<Op> ops, String path, FileEntry file) {
        names.addFile(ops, at(path), file.as(savepoints.client.nextWrite()));
    }

    private void put(List<Op> more, Zk.Trace trace) throws IOException {
        var ops = new ArrayList<Op>(List.of(ready.check()));
        ops.addAll(more);
        if (!savepoints.zk.write(ops, trace)) {
            throw failed();
        }
    }

    private Failed failed() throws IOException {
        Savepoint now = savepoints.find(name);
        if (now == null || !now.equals(ready.savepoint())) {
            return new Failed(
                    Failed.Kind.Unavailable, "Savepoint " + name + " was deleted while it was being restored");
        }
        for (long ledger : Savepoint.ledgersOf(ready.files())) {
            if (savepoints.zk.stat(names.ledger(ledger)) == null) {
                return new Failed(Failed.Kind.Damaged, "A ledger that savepoint " + name + " holds is gone: " + ledger);
            }
        }
        return new Failed(
                Failed.Kind.Unavailable, target + " was changed while savepoint " + name + " was being restored");
    }

    private String at(String path) {
        return Names.child(target, path);
    }
}

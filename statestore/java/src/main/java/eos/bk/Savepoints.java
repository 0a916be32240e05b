package eos.bk;

import static eos.bk.Failed.Kind.CutFailed;
import static eos.bk.Failed.Kind.InvalidInput;
import static eos.bk.Failed.Kind.NotFound;
import static eos.bk.Failed.Kind.Unavailable;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.common.collect.Lists;
import eos.bk.Names.Status;
import eos.bk.Zk.Node;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.FileSystem;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.data.Stat;

/**
 * Savepoints: named, immutable cuts of a checkpoint that hold its ledgers. How they lie in ZooKeeper:
 *
 * <pre>
 * /sp/NAME              building, of what and since when; later ready, with batch and counts; or deleting
 * /sp/NAME/build-ID     ephemeral: its maker lives, and no deletion has begun
 * /sp/NAME/files-00000  the list of files, in chunks
 * /sp/NAME/delete-ID    a deletion has begun
 * /L/id/s-NAME          a ledger that is held
 * </pre>
 *
 * The steps, each one multi or some of the same kind; those of {@link Building} begin here, and {@link Restoration}
 * tells its own:
 *
 * <pre>
 * begin    create(/sp/NAME, building), create(build-ID)             the name is taken, nothing is held
 * hold     check(build-ID), create(/L/id/s-NAME)                    refused where the ledger was freed: a newer cut is
 *                                                                   needed; so what is held can be read
 * list     check(build-ID), create(files-…)
 * ready    delete(build-ID), set(/sp/NAME, ready, 0)                all that it needs is held; nothing can be added
 *
 * mark     set(/sp/NAME, deleting, its version), create(delete-ID), delete(build-ID)
 * release  sync, then for every ledger check(delete-ID), delete(/L/id/s-NAME)
 * remove   check(delete-ID), delete(files-…); at last delete(delete-ID), delete(/sp/NAME)
 * </pre>
 *
 * {@code build-ID} and {@code delete-ID} are new for each making and each deletion, and every step checks its own: a
 * process that slept through the end of a savepoint can't touch a later one of that name. A maker that dies leaves
 * references of a savepoint that never gets ready; a deletion finds them, since it asks every ledger. A deletion that
 * dies is taken up by the next one.
 */
public final class Savepoints {
    private static final String BUILD = "build-";
    private static final String DELETE = "delete-";
    private static final int ATTEMPTS = 30;
    /** Names or references in one multi: far below the 1 MiB that ZooKeeper takes. */
    private static final int AT_ONCE = 200;

    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?");

    final Client client;
    final Zk zk;
    final Names names;
    final int atOnce;

    Savepoints(Client client, int atOnce) {
        this.client = client;
        this.zk = client.zk;
        this.names = client.names;
        this.atOnce = atOnce;
    }

    private static Savepoints of(FileSystem fs) {
        return new Savepoints(Maintenance.client(fs), AT_ONCE);
    }

    /** The savepoints of a tree in whatever state, oldest first by ZooKeeper's own order, as JSON. */
    public static String list(FileSystem fs) throws IOException {
        return Json.write(of(fs).all());
    }

    /** A savepoint that can be restored, as JSON. */
    public static String ready(FileSystem fs, String name) throws IOException {
        return Json.write(of(fs).read(name).savepoint().told(name));
    }

    /**
     * Makes a savepoint of files of a checkpoint, and returns it as JSON. What a maker that died has left under the name
     * is replaced. If it fails, nothing is left, or, when ZooKeeper was lost, what shows as abandoned.
     *
     * @param source the checkpoint's address, for people
     * @param top its path
     * @param files the files that the batch needs: by their paths below the checkpoint when each was written, in ms since
     *     the epoch, as a JSON object
     * @throws Failed CutFailed: a file is gone or was replaced, or its ledger was freed: choose the files again
     */
    public static String create(
            FileSystem fs, String name, String source, String top, long batch, String query, String files)
            throws IOException {
        var writtenMs = Json.MAPPER.readValue(files, new TypeReference<TreeMap<String, Long>>() {});
        return Json.write(
                of(fs).create(name, source, top, batch, query, writtenMs).told(name));
    }

    /**
     * Takes a name for as long as this process lives: by a savepoint that is being made, holds nothing, and never gets
     * ready. When the process is dead it shows as abandoned, and whoever finds it may remove what goes by that name.
     */
    public static void take(FileSystem fs, String name, String source) throws IOException {
        of(fs).begin(name, source);
    }

    /** Begins to restore a savepoint to a path where nothing is: all but the true {@code metadata}. */
    public static Restoration restore(FileSystem fs, String name, String target) throws IOException {
        return of(fs).restore(name, target);
    }

    /** Deletes a savepoint in whatever state; a deletion that was begun is finished. */
    public static void delete(FileSystem fs, String name) throws IOException {
        of(fs).delete(name, true, null);
    }

    /** A savepoint that can be restored, its files by their paths below the checkpoint, and the check that it still can. */
    record Ready(Savepoint savepoint, Map<String, FileEntry> files, Op check) {}

    /** Not by the makers' clocks: one that was ahead would make its savepoints the newest, and others be deleted. */
    List<ObjectNode> all() throws IOException {
        var all = new TreeMap<Long, ObjectNode>();
        for (String name : zk.part("/sp")) {
            Savepoint found = find(name);
            Stat stat = found == null ? null : zk.stat(path(name));
            if (stat != null) {
                all.put(stat.getCzxid(), found.told(name));
            }
        }
        return List.copyOf(all.values());
    }

    Savepoint find(String name) throws IOException {
        String path = path(name);
        for (Node node = zk.node(path); node != null; node = zk.node(path)) {
            Savepoint found = Savepoint.decode(name, node.data());
            if (!found.state().equals("building") || !children(name, BUILD).isEmpty()) {
                return found;
            }
            // Without its maker and still not ready, once and again: it was not made ready in between, and never will
            // be.
            Node again = zk.node(path);
            if (again != null && again.stat().getVersion() == node.stat().getVersion()) {
                return found.in("abandoned");
            }
        }
        return null;
    }

    Ready read(String name) throws IOException {
        String path = path(name);
        Node node = zk.node(path);
        if (node == null) {
            var known = all().stream().map(one -> one.get("name").asText()).toList();
            throw new Failed(
                    NotFound,
                    "There is no savepoint " + name + " in this tree. There are: "
                            + (known.isEmpty() ? "none" : String.join(", ", known)));
        }
        return read(name, node);
    }

    Ready read(String name, Node node) throws IOException {
        String path = path(name);
        Savepoint savepoint = Savepoint.decode(name, node.data());
        if (!savepoint.isReady()) {
            throw new Failed(
                    InvalidInput,
                    "Savepoint " + name + " is not ready but " + savepoint.state() + ": it cannot be restored");
        }
        var packed = new ArrayList<byte[]>();
        for (int number = 0; number < savepoint.chunks(); number++) {
            Node chunk = zk.node(chunk(name, number));
            if (chunk != null) {
                packed.add(chunk.data());
            } else if (isChanged(path, node)) {
                throw new Failed(Unavailable, "Savepoint " + name + " was deleted while it was being read");
            }
        }
        return new Ready(
                savepoint,
                savepoint.unpack(name, packed),
                Op.check(path, node.stat().getVersion()));
    }

    private boolean isChanged(String path, Node node) throws IOException {
        Stat now = zk.stat(path);
        return now == null || now.getMzxid() != node.stat().getMzxid();
    }

    Savepoint create(String name, String source, String top, long batch, String query, Map<String, Long> writtenMs)
            throws IOException {
        Savepoint before = find(name);
        if (before != null && (before.isReady() || before.state().equals("building"))) {
            throw taken(name, before.state());
        }
        if (before != null) {
            delete(name, false, null);
        }
        Building build = begin(name, source);
        try {
            return build.finish(batch, query, look(top, batch, writtenMs));
        } catch (IOException | RuntimeException | Error e) {
            try {
                delete(name, false, build.token());
            } catch (IOException left) {
                e.addSuppressed(left);
            }
            throw e;
        }
    }

    Building begin(String name, String source) throws IOException {
        String path = path(name);
        Savepoint savepoint = Savepoint.building(source, System.currentTimeMillis());
        String token = path + "/" + BUILD + UUID.randomUUID();
        var ops = List.of(
                Op.create(path, savepoint.encode(), client.settings.acl, CreateMode.PERSISTENT),
                Op.create(token, Names.NOTHING, client.settings.acl, CreateMode.EPHEMERAL));
        if (!zk.write(ops, () -> zk.stat(token) != null)) {
            throw taken(name, "being made");
        }
        return new Building(this, name, savepoint, token);
    }

    private static Failed taken(String name, String state) {
        return new Failed(
                InvalidInput,
                "There is a savepoint " + name + " in this tree already, " + state
                        + ": take another name, or delete it first");
    }

    private Map<String, FileEntry> look(String top, long batch, Map<String, Long> writtenMs) throws IOException {
        var paths = List.copyOf(writtenMs.keySet());
        List<Status> found =
                names.find(paths.stream().map(path -> Names.child(top, path)).toList());
        var files = new TreeMap<String, FileEntry>();
        for (int i = 0; i < paths.size(); i++) {
            if (found.get(i) == null || found.get(i).isDirectory()) {
                throw new Failed(CutFailed, "Batch " + batch + " can't be restored: " + paths.get(i) + " is not there");
            }
            // A snapshot that a second task uploads has other tables than the one that the files were chosen by.
            if (found.get(i).mtime() != writtenMs.get(paths.get(i))) {
                throw new Failed(
                        CutFailed,
                        "Batch " + batch + " can't be held: " + paths.get(i) + " was replaced at "
                                + found.get(i).mtime() + " ms");
            }
            files.put(paths.get(i), found.get(i).file());
        }
        return files;
    }

    Restoration restore(String name, String target) throws IOException {
        Ready ready = read(name);
        names.mkdirs(Names.parent(target));
        return Restoration.begin(this, name, target, ready);
    }

    /**
     * Deletes a savepoint.
     *
     * @param evenReady whether it may be one that is ready
     * @param build the only making whose savepoint may be deleted; null: any
     */
    void delete(String name, boolean evenReady, String build) throws IOException {
        String token = mark(name, evenReady, build);
        if (token == null) {
            return;
        }
        zk.sync(); // A reference made a moment ago must be seen.
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            // Without the token another deletion has finished it.
            if (zk.stat(token) == null || (release(name, token) && remove(name, token))) {
                return;
            }
        }
        throw new Failed(Unavailable, "Others keep changing savepoint " + name + ": delete it again");
    }

    /** The znode of the deletion; null when the making is over whose savepoint alone was meant. */
    private String mark(String name, boolean evenReady, String build) throws IOException {
        String path = path(name);
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            Node node = zk.node(path);
            List<String> builds = children(name, BUILD);
            if (build != null && !builds.contains(build)) {
                return null;
            }
            if (node == null) {
                throw new Failed(NotFound, "There is no savepoint " + name + " in this tree");
            }
            Savepoint savepoint = Savepoint.decode(name, node.data());
            if (savepoint.isReady() && !evenReady) {
                throw taken(name, savepoint.state());
            }
            List<String> begun = children(name, DELETE);
            if (!begun.isEmpty()) {
                return begun.get(0);
            }
            String token = path + "/" + DELETE + UUID.randomUUID();
            var ops = new ArrayList<Op>();
            ops.add(Op.setData(
                    path, savepoint.in("deleting").encode(), node.stat().getVersion()));
            ops.add(Op.create(token, Names.NOTHING, client.settings.acl, CreateMode.PERSISTENT));
            builds.forEach(one -> ops.add(Op.delete(one, -1)));
            if (zk.write(ops, () -> zk.stat(token) != null)) {
                return token;
            }
        }
        throw new Failed(Unavailable, "Others keep changing savepoint " + name + ": delete it again");
    }

    /** Deletes its references; false when the tree has changed meanwhile. */
    private boolean release(String name, String token) throws IOException {
        var references =
                names.ledgers().stream().map(ledger -> reference(name, ledger)).toList();
        var there = zk.readAll(references.stream().map(Op::getData).toList());
        var held = new ArrayList<String>();
        for (int i = 0; i < references.size(); i++) {
            if (there.get(i) instanceof OpResult.GetDataResult) {
                held.add(references.get(i));
            }
        }
        return deleteAll(held, token);
    }

    /** Deletes its znodes; false when the tree has changed meanwhile. */
    private boolean remove(String name, String token) throws IOException {
        var chunks = new ArrayList<>(children(name, ""));
        chunks.remove(token);
        return deleteAll(chunks, token)
                && zk.write(List.of(Op.delete(token, -1), Op.delete(path(name), -1)), () -> zk.stat(token) == null);
    }

    private boolean deleteAll(List<String> paths, String token) throws IOException {
        for (List<String> some : Lists.partition(paths, atOnce)) {
            var ops = new ArrayList<Op>(List.of(Op.check(token, -1)));
            some.forEach(path -> ops.add(Op.delete(path, -1)));
            if (!zk.write(ops, () -> zk.stat(some.get(0)) == null)) {
                return false;
            }
        }
        return true;
    }

    String path(String name) throws Failed {
        if (!NAME.matcher(name).matches()) {
            throw new Failed(
                    InvalidInput,
                    "'" + name + "' cannot name a savepoint: use up to 100 letters, digits, '.', '_' and '-', with a "
                            + "letter or digit at both ends");
        }
        return client.settings.root + "/sp/" + name;
    }

    String chunk(String name, int number) throws Failed {
        // Without a locale some languages write other digits, and a JVM of another language would not find the chunk.
        return path(name) + String.format(Locale.ROOT, "/files-%05d", number);
    }

    String reference(String name, long ledger) {
        return names.ledger(ledger) + "/s-" + name;
    }

    private List<String> children(String name, String prefix) throws IOException {
        String path = path(name);
        List<String> children = zk.children(path);
        return children == null
                ? List.of()
                : children.stream()
                        .filter(child -> child.startsWith(prefix))
                        .map(child -> path + "/" + child)
                        .toList();
    }
}

package eos.bk;

import eos.bk.Zk.Node;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.ParentNotDirectoryException;
import org.apache.hadoop.fs.PathIsNotEmptyDirectoryException;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Stat;

/**
 * The tree of names in ZooKeeper. Each change is one multi: it happens whole or not at all.
 *
 * <pre>
 * /n/path   file: its FileEntry, znode version 0            directory: empty, znode version 1
 * /L/id     ledger: owner and state; child w = a reference: "generation path", znode version = generation
 * </pre>
 *
 * Why so: ZooKeeper lets a file have children, so whatever is put into a directory checks the directory's version. A
 * version doesn't identify a file (one deleted and made again has version 0 too), its reference's version, the
 * generation, does. References keep a ledger's znode from being deleted, and a missing one stops a late publisher.
 * Every operation reads, decides, and tries its multi; when the tree has changed in between, it starts again.
 */
final class Names {
    private static final int ATTEMPTS = 30;
    private static final int BYTES_OF_A_NAME = 100;
    static final byte[] NOTHING = new byte[0];

    /** A file, or a directory when {@code file} is null; mtime in ms since the epoch. */
    record Status(String path, FileEntry file, long mtime) {
        boolean isDirectory() {
            return file == null;
        }
    }

    /** The ledger of a file about to be published was freed: its bytes must be written again. */
    static final class LedgerGoneException extends IOException {
        LedgerGoneException(long ledger) {
            super("Ledger " + ledger + " was freed before its file was published");
        }
    }

    private final Zk zk;
    private final String root;
    private final List<ACL> acl;
    private final int renameLimit;
    private final int listLimit;

    Names(Zk zk, Settings settings) {
        this.zk = zk;
        this.root = settings.root;
        this.acl = settings.acl;
        this.renameLimit = settings.renameLimit;
        this.listLimit = Integer.parseInt(settings.zkConfig.getProperty("jute.maxbuffer")) / BYTES_OF_A_NAME;
    }

    /** What is at the path, or null. */
    Status find(String path) throws IOException {
        Node node = zk.node(name(path));
        return node == null ? null : status(path, node.data(), node.stat());
    }

    /** What is in the directory, read in chunks; names that go meanwhile are left out. */
    List<Status> list(String directory) throws IOException {
        Stat stat = zk.stat(name(directory));
        if (stat != null && stat.getNumChildren() > listLimit) {
            throw new IOException(
                    directory + " has " + stat.getNumChildren() + " names; one listing holds " + listLimit);
        }
        List<String> names = stat == null ? null : zk.children(name(directory));
        if (names == null) {
            throw new FileNotFoundException(directory + " does not exist");
        }
        var found = find(names.stream()
                .map(name -> child(directory, Percent.decode(name)))
                .toList());
        found.removeIf(status -> status == null);
        return found;
    }

    /** What is at each of the paths, null where nothing is. */
    List<Status> find(List<String> paths) throws IOException {
        var results =
                zk.readAll(paths.stream().map(path -> Op.getData(name(path))).toList());
        var found = new ArrayList<Status>();
        for (int i = 0; i < paths.size(); i++) {
            found.add(
                    results.get(i) instanceof OpResult.GetDataResult it
                            ? status(paths.get(i), it.getData(), it.getStat())
                            : null);
        }
        return found;
    }

    /** Makes the directory and those above it, in one multi. */
    void mkdirs(String path) throws IOException {
        change("mkdirs " + path, () -> {
            var missing = new ArrayList<String>();
            String at = path;
            Status above = find(at);
            for (; above == null; above = find(at)) {
                if (at.equals("/")) {
                    throw zk.removed();
                }
                missing.add(0, at);
                at = parent(at);
            }
            if (!above.isDirectory()) {
                throw above.path().equals(path)
                        ? new FileAlreadyExistsException(path + " is a file")
                        : new ParentNotDirectoryException(above.path() + " is a file");
            }
            var ops = new ArrayList<Op>();
            if (!missing.isEmpty()) {
                ops.add(Op.check(name(at), 1));
                missing.forEach(directory -> addDirectory(ops, directory));
            }
            return new Change(ops, () -> isDirectory(find(path)));
        });
    }

    /**
     * Makes a closed file visible.
     *
     * @throws LedgerGoneException its bytes have to be written again
     * @throws FileAlreadyExistsException there is a directory, or a file that mustn't be overwritten
     */
    void publish(String path, FileEntry file, boolean overwrite) throws IOException {
        var blind = new boolean[] {true};
        change("publish " + path, () -> {
            // The first attempt expects the common case, a new name, and saves the reads.
            Status target = null;
            if (!blind[0]) {
                target = overwritable(path, overwrite);
                mustBeDirectory(parent(path));
                if (zk.stat(ledger(file.ledger())) == null) {
                    throw new LedgerGoneException(file.ledger());
                }
            }
            blind[0] = false;
            var ops = new ArrayList<Op>();
            ops.add(Op.check(name(parent(path)), 1));
            addRemoval(ops, target);
            addFile(ops, path, file);
            return new Change(ops, () -> zk.stat(reference(file)) != null);
        });
    }

    /** Moves a file, or a directory of at most {@code fs.bk.rename.limit} names. */
    void rename(String from, String to, boolean overwrite) throws IOException {
        change("rename " + from + " to " + to, () -> {
            Status source = find(from);
            if (source == null) {
                throw new FileNotFoundException(from + " does not exist");
            }
            Status target = source.isDirectory() ? find(to) : overwritable(to, overwrite);
            mustBeDirectory(parent(to));
            var ops = new ArrayList<Op>();
            ops.add(Op.check(name(parent(to)), 1));
            if (target != null && source.isDirectory()) {
                if (!overwrite || !target.isDirectory() || !list(to).isEmpty()) {
                    throw new FileAlreadyExistsException(
                            to + (overwrite ? " is not an empty directory" : " already exists"));
                }
                ops.add(Op.delete(name(to), 1));
            } else {
                addRemoval(ops, target);
            }
            if (!source.isDirectory()) {
                addMove(ops, source, to);
                return new Change(ops, () -> hasMoved(source.file(), to));
            }
            var lost = new ArrayList<Op>();
            for (Status status : tree(source)) {
                String place = to + status.path().substring(from.length());
                if (status.isDirectory()) {
                    addDirectory(ops, place);
                    lost.add(0, Op.delete(name(status.path()), 1));
                } else {
                    addMove(ops, status, place);
                }
            }
            ops.addAll(lost);
            return new Change(ops, () -> find(from) == null && isDirectory(find(to)));
        });
    }

    /** Removes what is there; false where nothing is. */
    boolean delete(String path, boolean recursive) throws IOException {
        Status status = find(path);
        if (status == null) {
            return false;
        }
        if (!status.isDirectory()) {
            change("delete " + path, () -> {
                Status now = find(path);
                var removal = new Removal(this, now == null || now.isDirectory() ? List.of() : List.of(now));
                return new Change(removal.ops(), removal::hasHappened);
            });
            return true;
        }
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            // Each time: what another process has put there since is not what was asked to go.
            if (!recursive && !list(path).isEmpty()) {
                throw new PathIsNotEmptyDirectoryException(path);
            }
            for (Removal some : recursive ? Removal.below(this, path) : List.<Removal>of()) {
                if (!zk.write(some.ops(), some::hasHappened)) {
                    // Something of it has changed meanwhile: then nothing of it was done.
                    for (Status one : some.statuses()) {
                        delete(one.path(), true);
                    }
                }
            }
            if (path.equals("/")
                    || zk.write(List.of(Op.delete(name(path), 1)), () -> find(path) == null)
                    || find(path) == null) {
                return true;
            }
        }
        throw new IOException("Others keep putting files into " + path);
    }

    /** Lets the file's name point to a copy of its bytes; false when it has changed since {@code old} was read. */
    boolean replace(String path, FileEntry old, FileEntry copy) throws IOException {
        var ops = new ArrayList<Op>();
        addRemoval(ops, new Status(path, old, 0));
        addFile(ops, path, copy);
        return zk.write(ops, () -> zk.stat(reference(copy)) != null);
    }

    /** The directory and all below it, parents first. */
    private List<Status> tree(Status top) throws IOException {
        var tree = new ArrayList<Status>(List.of(top));
        for (int i = 0; i < tree.size(); i++) {
            if (tree.get(i).isDirectory()) {
                tree.addAll(list(tree.get(i).path()));
            }
            if (tree.size() > renameLimit) {
                throw new IOException("Renaming " + top.path() + " would move more than " + renameLimit
                        + " names; fs.bk.rename.limit bounds it, because ZooKeeper takes it as one request");
            }
        }
        return tree;
    }

    private Status overwritable(String path, boolean overwrite) throws IOException {
        Status target = find(path);
        mustBeFree(target, overwrite);
        return target;
    }

    /** Refuses a place where a file can't be put: {@code there} is null, or what is at it. */
    static void mustBeFree(Status there, boolean overwrite) throws IOException {
        if (there != null && (there.isDirectory() || !overwrite)) {
            throw new FileAlreadyExistsException(
                    there.path() + (there.isDirectory() ? " is a directory" : " already exists"));
        }
    }

    void mustBeDirectory(String path) throws IOException {
        Status status = find(path);
        if (status == null) {
            throw new FileNotFoundException("Parent directory " + path + " does not exist");
        }
        if (!status.isDirectory()) {
            throw new ParentNotDirectoryException(path + " is a file");
        }
    }

    /** A rename's trace. A compaction could have taken the reference away; then the name tells. */
    private boolean hasMoved(FileEntry source, String to) throws IOException {
        Node node = zk.node(reference(source));
        if (node != null) {
            return node.stat().getVersion() > source.generation()
                    && new String(node.data(), StandardCharsets.UTF_8)
                            .equals(referenceText(source.generation() + 1, to));
        }
        Status target = find(to);
        return target != null && !target.isDirectory() && target.file().origin().equals(source.origin());
    }

    static boolean sameBytes(Status now, FileEntry before) {
        return now != null && !now.isDirectory() && now.file().origin().equals(before.origin());
    }

    private static boolean isDirectory(Status status) {
        return status != null && status.isDirectory();
    }

    void addDirectory(List<Op> ops, String path) {
        ops.add(Op.create(name(path), NOTHING, acl, CreateMode.PERSISTENT));
        ops.add(Op.setData(name(path), NOTHING, 0));
    }

    void addRemoval(List<Op> ops, Status file) {
        if (file != null) {
            ops.add(Op.delete(reference(file.file()), file.file().generation()));
            ops.add(Op.delete(name(file.path()), 0));
        }
    }

    private void addMove(List<Op> ops, Status source, String to) {
        FileEntry file = source.file();
        ops.add(Op.setData(
                reference(file),
                referenceText(file.generation() + 1, to).getBytes(StandardCharsets.UTF_8),
                file.generation()));
        ops.add(Op.delete(name(source.path()), 0));
        ops.add(Op.create(name(to), file.moved(source.mtime()).encode(), acl, CreateMode.PERSISTENT));
    }

    /** The file becomes visible, and refers to its ledger; its {@code write} is a new one. */
    void addFile(List<Op> ops, String path, FileEntry file) {
        ops.add(Op.create(name(path), file.encode(), acl, CreateMode.PERSISTENT));
        byte[] text = referenceText(0, path).getBytes(StandardCharsets.UTF_8);
        ops.add(Op.create(reference(file), text, acl, CreateMode.PERSISTENT));
    }

    private static String referenceText(int generation, String path) {
        return generation + " " + path;
    }

    /** The path that a reference's text names. */
    static String referencedPath(byte[] text) {
        var words = new String(text, StandardCharsets.UTF_8);
        return words.substring(words.indexOf(' ') + 1);
    }

    String ledger(long id) {
        return root + "/L/" + (id == FileEntry.NO_LEDGER ? "empty" : id);
    }

    /** The registered ledgers. */
    List<Long> ledgers() throws IOException {
        return zk.part("/L").stream()
                .filter(id -> !id.equals("empty"))
                .map(Long::valueOf)
                .toList();
    }

    String reference(FileEntry file) {
        return ledger(file.ledger()) + "/" + file.write();
    }

    /** What ZooKeeper says of the references of those that are files. */
    List<OpResult> references(List<Status> statuses) throws IOException {
        return zk.readAll(statuses.stream()
                .filter(status -> !status.isDirectory())
                .map(status -> Op.getData(reference(status.file())))
                .toList());
    }

    String name(String path) {
        return path.equals("/") ? root + "/n" : root + "/n" + Percent.encode(path);
    }

    static String parent(String path) {
        int slash = path.lastIndexOf('/');
        return slash <= 0 ? "/" : path.substring(0, slash);
    }

    static String child(String directory, String name) {
        return directory.equals("/") ? "/" + name : directory + "/" + name;
    }

    private static Status status(String path, byte[] data, Stat stat) throws IOException {
        if (stat.getVersion() > 0) {
            return new Status(path, null, stat.getMtime());
        }
        FileEntry file = FileEntry.decode(path, data);
        return new Status(path, file, file.published(stat));
    }

    /** An attempt: what to write, and the trace it would leave. */
    private record Change(List<Op> ops, Zk.Trace trace) {}

    private interface Attempt {
        Change prepare() throws IOException;
    }

    private void change(String what, Attempt attempt) throws IOException {
        for (int i = 0; i < ATTEMPTS; i++) {
            Change change = attempt.prepare();
            if (change.ops().isEmpty() || zk.write(change.ops(), change.trace())) {
                return;
            }
        }
        throw new IOException("Gave up: " + what + " lost against others " + ATTEMPTS + " times");
    }
}

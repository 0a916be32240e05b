package eos.bk;

import eos.bk.Names.Status;
import java.io.File;
import java.io.FileInputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CommonPathCapabilities;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.ParentNotDirectoryException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathExistsException;
import org.apache.hadoop.fs.PathIsNotEmptyDirectoryException;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.io.IOUtils;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.util.Progressable;

/**
 * {@code bk://host:port/path} or {@code bk://NAME/path}: files in BookKeeper ledgers, names in ZooKeeper.
 *
 * <p>Guarantees. A file becomes visible when its close returns, whole, and then survives the loss of as many bookies
 * as its quorum allows. From then on every process can open it; its own process lists it too, others when the
 * ZooKeeper server that they talk to has caught up. No process sees the tree go back. Renaming a file, with or without
 * overwriting, is atomic: a reader sees the old file or the new one. Each operation has happened when it returns and
 * has not when it throws, but for one error that says that its outcome isn't known (ZooKeeper stayed away for {@code
 * fs.bk.patience.ms}). Reading never disturbs a writer. Bytes are checked against a CRC32C.
 *
 * <p>Not offered: append, truncate and hsync (nothing is visible before close), permissions, owners and setTimes. A
 * temporary name as Spark makes them ({@code .name.UUID.tmp}) is seen by its own process only until it is renamed.
 */
public final class BookKeeperFileSystem extends FileSystem {
    private static final String SCHEME = "bk";
    private static final int COPY_BUFFER = 1 << 16;

    private URI uri;
    private Path workingDirectory;
    private String owner;
    private Client client;

    /** Made by Hadoop, which calls {@link #initialize} next. */
    public BookKeeperFileSystem() {}

    @Override
    public void initialize(URI name, Configuration conf) throws IOException {
        super.initialize(name, conf);
        setConf(conf);
        client = Client.of(new Settings(name, conf));
        uri = URI.create(SCHEME + "://" + name.getAuthority());
        owner = UserGroupInformation.getCurrentUser().getShortUserName();
        workingDirectory = getHomeDirectory();
    }

    Client client() {
        return client;
    }

    @Override
    public String getScheme() {
        return SCHEME;
    }

    @Override
    public URI getUri() {
        return uri;
    }

    /** No tokens: null keeps Hadoop from looking for them. */
    @Override
    public String getCanonicalServiceName() {
        return null;
    }

    @Override
    public Path getWorkingDirectory() {
        return workingDirectory;
    }

    @Override
    public void setWorkingDirectory(Path directory) {
        workingDirectory = makeQualified(directory);
    }

    private String pathOf(Path path) {
        checkPath(path);
        return makeQualified(path).toUri().getPath();
    }

    private Status find(String path) throws IOException {
        Status held = client.unnamed.find(path);
        return held != null ? held : client.names.find(path);
    }

    private Status require(String path) throws IOException {
        Status status = find(path);
        if (status == null) {
            throw new FileNotFoundException(path + " does not exist");
        }
        return status;
    }

    @Override
    public FSDataInputStream open(Path file, int bufferSize) throws IOException {
        String path = pathOf(file);
        byte[] held = client.unnamed.read(path);
        Status status = find(path);
        if (status == null) {
            // Another process may have closed it, and our ZooKeeper server not know it yet.
            client.zk.sync();
            status = require(path);
        }
        if (status.isDirectory()) {
            throw new FileNotFoundException(path + " is a directory");
        }
        return new FSDataInputStream(
                held == null
                        ? new BkInputStream(client, path, status.file())
                        : new BkInputStream(client, path, status.file(), held));
    }

    @Override
    public FSDataOutputStream create(
            Path file,
            FsPermission permission,
            boolean overwrite,
            int bufferSize,
            short replication,
            long blockSize,
            Progressable progress)
            throws IOException {
        return create(pathOf(file), overwrite, true);
    }

    @Override
    @SuppressWarnings("deprecation")
    public FSDataOutputStream createNonRecursive(
            Path file,
            FsPermission permission,
            EnumSet<CreateFlag> flags,
            int bufferSize,
            short replication,
            long blockSize,
            Progressable progress)
            throws IOException {
        return create(pathOf(file), flags.contains(CreateFlag.OVERWRITE), false);
    }

    private FSDataOutputStream create(String path, boolean overwrite, boolean parents) throws IOException {
        Status status = find(path);
        Names.mustBeFree(status, overwrite);
        if (status == null && parents) {
            client.names.mkdirs(Names.parent(path));
        } else if (status == null) {
            client.names.mustBeDirectory(Names.parent(path));
        }
        return new FSDataOutputStream(new BkOutputStream(client, path, overwrite), statistics);
    }

    /** Not offered. */
    @Override
    public FSDataOutputStream append(Path file, int bufferSize, Progressable progress) {
        throw new UnsupportedOperationException("bk:// has no append: a file is immutable once it is visible");
    }

    @Override
    public boolean rename(Path from, Path to) throws IOException {
        String source = pathOf(from);
        String target = pathOf(to);
        Status moved = find(source);
        if (moved == null || source.equals("/")) {
            return false;
        }
        Status there = find(target);
        if (there != null && there.isDirectory()) {
            target = Names.child(target, from.getName());
        }
        if (source.equals(target)) {
            return !moved.isDirectory();
        }
        if (target.startsWith(source + "/")) {
            return false;
        }
        try {
            move(source, target, false);
            return true;
        } catch (FileAlreadyExistsException | FileNotFoundException | ParentNotDirectoryException e) {
            LOG.debug("Rename of {} to {} refused: {}", source, target, e.getMessage());
            return false;
        }
    }

    /** Atomic, also when it overwrites a file. */
    @Override
    protected void rename(Path from, Path to, Options.Rename... options) throws IOException {
        String source = pathOf(from);
        String target = pathOf(to);
        require(source);
        if (source.equals(target)) {
            throw new FileAlreadyExistsException(source + " and " + target + " are the same");
        }
        if (target.startsWith(Names.child(source, ""))) {
            throw new IOException(source + " can't be moved below itself");
        }
        move(source, target, List.of(options).contains(Options.Rename.OVERWRITE));
    }

    private void move(String source, String target, boolean overwrite) throws IOException {
        client.unnamed.publishBelow(source);
        if (!client.unnamed.rename(source, target, overwrite)) {
            client.names.rename(source, target, overwrite);
        }
    }

    @Override
    public boolean delete(Path file, boolean recursive) throws IOException {
        String path = pathOf(file);
        if (client.unnamed.delete(path)) {
            return true;
        }
        if (recursive) {
            client.unnamed.deleteBelow(path);
        } else if (!client.unnamed.list(path).isEmpty()) {
            throw new PathIsNotEmptyDirectoryException(path);
        }
        return client.names.delete(path, recursive);
    }

    @Override
    public FileStatus[] listStatus(Path file) throws IOException {
        String path = pathOf(file);
        Status status = require(path);
        if (!status.isDirectory()) {
            return new FileStatus[] {status(status)};
        }
        var all = new ArrayList<>(client.names.list(path));
        all.addAll(client.unnamed.list(path));
        return all.stream().map(this::status).toArray(FileStatus[]::new);
    }

    @Override
    public boolean mkdirs(Path directory, FsPermission permission) throws IOException {
        client.names.mkdirs(pathOf(directory));
        return true;
    }

    @Override
    public FileStatus getFileStatus(Path file) throws IOException {
        return status(require(pathOf(file)));
    }

    private FileStatus status(Status status) {
        boolean directory = status.isDirectory();
        return new FileStatus(
                directory ? 0 : status.file().length(),
                directory,
                1,
                directory ? 0 : getDefaultBlockSize(new Path(status.path())),
                status.mtime(),
                status.mtime(),
                directory ? FsPermission.getDirDefault() : FsPermission.getFileDefault(),
                owner,
                owner,
                new Path(uri.getScheme(), uri.getAuthority(), status.path()));
    }

    /** A copy that fails leaves nothing behind: the file is visible only when all its bytes were copied. */
    @Override
    public void copyFromLocalFile(boolean deleteSource, boolean overwrite, Path source, Path target)
            throws IOException {
        File local = getLocal(getConf()).pathToFile(source);
        if (!local.isFile()) {
            super.copyFromLocalFile(deleteSource, overwrite, source, target);
            return;
        }
        String path = pathOf(target);
        Status status = find(path);
        if (status != null && status.isDirectory()) {
            path = Names.child(path, source.getName());
            status = find(path);
        }
        if (status != null && !overwrite) {
            throw new PathExistsException(path);
        }
        try (var in = new FileInputStream(local);
                var out = create(path, overwrite, true)) {
            try {
                IOUtils.copyBytes(in, out, COPY_BUFFER);
            } catch (IOException | RuntimeException | Error e) {
                out.abort();
                throw e;
            }
        }
        if (deleteSource) {
            Files.delete(local.toPath());
        }
    }

    @Override
    public boolean hasPathCapability(Path path, String capability) throws IOException {
        return capability.equals(CommonPathCapabilities.ABORTABLE_STREAM) || super.hasPathCapability(path, capability);
    }
}

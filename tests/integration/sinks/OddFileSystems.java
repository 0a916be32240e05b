import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.util.Arrays;
import java.util.Collections;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;

/** File systems without an AbstractFileSystem, on this machine's disk: what Hadoop's contract leaves open differs. */
public class OddFileSystems {
    /** plain:///path: a rename replaces a file, as on POSIX. */
    public static class Plain extends RawLocalFileSystem {
        @Override
        public URI getUri() {
            return URI.create(getScheme() + ":///");
        }

        @Override
        public String getScheme() {
            return "plain";
        }
    }

    /**
     * odd:///path: as object stores and their connectors do. A rename leaves a file that is there, and returns false;
     * a file that is missing is found out at the first read; a listing has no order.
     */
    public static class Odd extends Plain {
        @Override
        public String getScheme() {
            return "odd";
        }

        @Override
        public boolean rename(Path source, Path target) throws IOException {
            return !exists(target) && super.rename(source, target);
        }

        @Override
        public FSDataInputStream open(Path path, int bufferSize) throws IOException {
            return exists(path) ? super.open(path, bufferSize) : new FSDataInputStream(new Missing(path));
        }

        @Override
        public FileStatus[] listStatus(Path path) throws IOException {
            FileStatus[] listed = super.listStatus(path);
            Collections.shuffle(Arrays.asList(listed));
            return listed;
        }
    }

    private static class Missing extends FSInputStream {
        private final Path path;

        Missing(Path path) {
            this.path = path;
        }

        @Override
        public int read() throws IOException {
            throw new FileNotFoundException(path.toString());
        }

        @Override
        public void seek(long position) {
        }

        @Override
        public long getPos() {
            return 0;
        }

        @Override
        public boolean seekToNewSource(long position) {
            return false;
        }
    }
}

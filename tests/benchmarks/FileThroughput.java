import java.io.BufferedReader;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import io.netty.buffer.Unpooled;
import org.apache.bookkeeper.client.api.BookKeeper;
import org.apache.bookkeeper.client.api.DigestType;
import org.apache.bookkeeper.client.api.LedgerEntries;
import org.apache.bookkeeper.client.api.ReadHandle;
import org.apache.bookkeeper.client.api.WriteHandle;
import org.apache.bookkeeper.conf.ClientConfiguration;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Writes and reads one large file, through Hadoop's FileSystem or as a ledger by the official BookKeeper client, told
 * what to do by lines on standard input.
 *
 * <pre>
 *   write URI        → done BYTES        raw-write        → done BYTES
 *   read URI         → done BYTES        raw-read         → done BYTES
 * </pre>
 *
 * The file consists of blocks of random bytes; each begins with its number, which is looked at when it is read. It ends
 * with its input. Arguments: BookKeeper's metadata service URI, blocks of the file, bytes of a block, which is the
 * client's entry too, blocks that the client has on their way, and Hadoop options as name=value.
 */
public final class FileThroughput {
    private static final byte[] PASSWORD = {};

    private final BookKeeper client;
    private final Configuration conf = new Configuration();
    private final int blocks;
    private final int window;
    private final byte[][] block; // one more than may be on their way
    private long ledger = -1;

    private FileThroughput(String[] args) throws Exception {
        blocks = Integer.parseInt(args[1]);
        window = Integer.parseInt(args[3]);
        block = new byte[window + 1][Integer.parseInt(args[2])];
        for (byte[] one : block) {
            new Random(7).nextBytes(one);
        }
        for (int at = 4; at < args.length; at++) {
            String[] option = args[at].split("=", 2);
            conf.set(option[0], option[1]);
        }
        client = BookKeeper.newBuilder(new ClientConfiguration().setMetadataServiceUri(args[0])).build();
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // what libraries log there is no answer
        FileThroughput peer = new FileThroughput(args);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", 2);
            long bytes =
                    switch (words[0]) {
                        case "write" -> peer.write(new Path(words[1]));
                        case "read" -> peer.read(new Path(words[1]));
                        case "raw-write" -> peer.rawWrite();
                        case "raw-read" -> peer.rawRead();
                        default -> throw new IllegalArgumentException(line);
                    };
            answers.println("done " + bytes);
        }
        peer.client.close();
        FileSystem.closeAll();
        System.exit(0);
    }

    private long write(Path path) throws IOException {
        try (FSDataOutputStream out = path.getFileSystem(conf).create(path, true)) {
            for (int number = 0; number < blocks; number++) {
                out.write(numbered(number));
            }
        }
        return path.getFileSystem(conf).getFileStatus(path).getLen();
    }

    private long read(Path path) throws IOException {
        byte[] into = block[0];
        long bytes = 0;
        try (FSDataInputStream in = path.getFileSystem(conf).open(path)) {
            for (int number = 0; number < blocks; number++) {
                in.readFully(into);
                check(number, ByteBuffer.wrap(into).getInt());
                bytes += into.length;
            }
            if (in.read() >= 0) {
                throw new IOException(path + " is too long");
            }
        }
        return bytes;
    }

    private long rawWrite() throws Exception {
        Deque<CompletableFuture<Long>> underWay = new ArrayDeque<>();
        try (WriteHandle handle = client.newCreateLedgerOp()
                .withEnsembleSize(1)
                .withWriteQuorumSize(1)
                .withAckQuorumSize(1)
                .withDigestType(DigestType.CRC32C)
                .withPassword(PASSWORD)
                .execute()
                .get()) {
            for (int number = 0; number < blocks; number++) {
                if (underWay.size() == window) {
                    underWay.poll().get();
                }
                underWay.add(handle.appendAsync(Unpooled.wrappedBuffer(numbered(number))));
            }
            for (CompletableFuture<Long> answer : underWay) {
                answer.get();
            }
            ledger = handle.getId();
            return handle.getLength();
        }
    }

    private long rawRead() throws Exception {
        Deque<CompletableFuture<LedgerEntries>> underWay = new ArrayDeque<>();
        long bytes = 0;
        try (ReadHandle handle = client.newOpenLedgerOp()
                .withLedgerId(ledger)
                .withDigestType(DigestType.CRC32C)
                .withPassword(PASSWORD)
                .execute()
                .get()) {
            int asked = 0;
            for (int number = 0; number < blocks; number++) {
                for (; asked < blocks && underWay.size() < window; asked++) {
                    underWay.add(handle.readAsync(asked, asked));
                }
                try (LedgerEntries entries = underWay.poll().get()) {
                    ByteBuffer entry = ByteBuffer.wrap(entries.getEntry(number).getEntryBytes());
                    check(number, entry.getInt());
                    bytes += entry.capacity();
                }
            }
        }
        return bytes;
    }

    /** A block that nobody is using: as many as may be on their way, and one. */
    private byte[] numbered(int number) {
        byte[] next = block[number % block.length];
        ByteBuffer.wrap(next).putInt(number);
        return next;
    }

    private static void check(int expected, int number) throws IOException {
        if (number != expected) {
            throw new EOFException("block " + number + " instead of " + expected);
        }
    }
}

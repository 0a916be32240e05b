package eos.bk;

import java.io.EOFException;
import java.io.IOException;
import java.util.zip.CRC32C;
import org.apache.hadoop.fs.FSExceptionMessages;
import org.apache.hadoop.fs.FSInputStream;

/**
 * A file being read: the bytes it had when it was opened. A small file is read at once and checked against its CRC32C;
 * a large one is checked when it is read from begin to end, and in any case by the digest of each entry.
 */
final class BkInputStream extends FSInputStream {
    private static final int MOST_ENTRIES = 4;

    private final Client client;
    private final String path;
    private final FileEntry file;
    private final CRC32C crc = new CRC32C();
    private byte[] block;
    private long blockStart;
    private int blockLength;
    private int entries = 1;
    private long checked;
    private boolean damaged;
    private long position;
    private boolean closed;

    /** Reads from bookies. */
    BkInputStream(Client client, String path, FileEntry file) {
        this.client = client;
        this.path = path;
        this.file = file;
    }

    /** Reads bytes that are in memory. */
    BkInputStream(Client client, String path, FileEntry file, byte[] data) {
        this(client, path, file);
        block = data;
        blockLength = data.length;
    }

    @Override
    public synchronized void seek(long to) throws IOException {
        mustBeOpen();
        if (to < 0) {
            throw new EOFException(FSExceptionMessages.NEGATIVE_SEEK);
        }
        if (to > file.length()) {
            throw new EOFException(FSExceptionMessages.CANNOT_SEEK_PAST_EOF);
        }
        position = to;
    }

    @Override
    public synchronized long getPos() {
        return position;
    }

    @Override
    public boolean seekToNewSource(long target) {
        return false;
    }

    @Override
    public synchronized int available() throws IOException {
        mustBeOpen();
        return (int) Math.min(Integer.MAX_VALUE, file.length() - position);
    }

    @Override
    public synchronized int read() throws IOException {
        byte[] one = new byte[1];
        return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
    }

    @Override
    public synchronized int read(byte[] into, int offset, int length) throws IOException {
        mustBeOpen();
        java.util.Objects.checkFromIndexSize(offset, length, into.length);
        if (length == 0) {
            return 0;
        }
        if (position >= file.length()) {
            return -1;
        }
        if (position < blockStart || position >= blockStart + blockLength) {
            load();
        }
        int from = (int) (position - blockStart);
        int part = Math.min(length, blockLength - from);
        System.arraycopy(block, from, into, offset, part);
        position += part;
        return part;
    }

    private void load() throws IOException {
        if (file.length() <= Settings.MIB && file.length() <= client.settings.cacheBytes) {
            block = client.ledgers.readSmall(path, file);
            blockStart = 0;
            blockLength = block.length;
            return;
        }
        // Reading on takes more at a time; a jump begins small again.
        entries = position == blockStart + blockLength ? Math.min(2 * entries, MOST_ENTRIES) : 1;
        long index = position / file.entrySize();
        long last = Math.min(file.first() + index + entries - 1, file.last());
        int size = (int) Math.min(
                (last - file.first() - index + 1) * file.entrySize(), file.length() - index * file.entrySize());
        if (block == null || block.length < size) {
            block = new byte[size];
        }
        blockLength = 0;
        int got = client.ledgers.read(path, file, file.first() + index, last, block);
        Ledgers.mustBeWhole(path, file, got == size);
        blockStart = index * file.entrySize();
        blockLength = size;
        if (blockStart == checked) {
            crc.update(block, 0, size);
            checked += size;
            damaged = checked == file.length() && (int) crc.getValue() != file.crc();
        }
        if (damaged) {
            blockLength = 0; // Whoever reads again is told again.
        }
        Ledgers.mustBeWhole(path, file, !damaged);
    }

    private void mustBeOpen() throws IOException {
        if (closed) {
            throw new IOException(path + ": " + FSExceptionMessages.STREAM_IS_CLOSED);
        }
    }

    @Override
    public synchronized void close() {
        closed = true;
        block = null;
    }
}

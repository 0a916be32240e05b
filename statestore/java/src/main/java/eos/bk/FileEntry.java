package eos.bk;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import org.apache.zookeeper.data.Stat;

/**
 * A file's record in ZooKeeper, as readable text. {@code write} names the bytes (made once, never used again; a
 * compaction appends {@code ~}); {@code generation} counts its renames, so that (write, generation) names one file at
 * one place for ever. All entries but the last hold {@code entrySize} bytes; an empty file has ledger −1.
 *
 * @param crc CRC32C over all bytes
 * @param mtime ms since the epoch: of the close by the writer's clock, and once the file was renamed or compacted, of its
 *     publication by ZooKeeper's
 */
record FileEntry(
        String write,
        int generation,
        long ledger,
        long first,
        long last,
        int entrySize,
        long length,
        int crc,
        long mtime) {
    static final long NO_LEDGER = -1;

    byte[] encode() {
        return ("v=1 w=" + write + " g=" + generation + " ledger=" + ledger + " first=" + first + " last=" + last
                        + " entry=" + entrySize + " length=" + length + " crc32c=" + Integer.toHexString(crc)
                        + " mtime=" + mtime)
                .getBytes(StandardCharsets.UTF_8);
    }

    static FileEntry decode(String path, byte[] data) throws IOException {
        var text = new String(data, StandardCharsets.UTF_8);
        var fields = new HashMap<String, String>();
        for (String word : text.split(" ")) {
            int equals = word.indexOf('=');
            fields.put(word.substring(0, Math.max(equals, 0)), word.substring(equals + 1));
        }
        try {
            if (!"1".equals(fields.get("v"))) {
                throw new IOException("The record of " + path + " has a version this jar doesn't know: " + text);
            }
            return new FileEntry(
                    fields.get("w"),
                    Integer.parseInt(fields.get("g")),
                    Long.parseLong(fields.get("ledger")),
                    Long.parseLong(fields.get("first")),
                    Long.parseLong(fields.get("last")),
                    Integer.parseInt(fields.get("entry")),
                    Long.parseLong(fields.get("length")),
                    Integer.parseUnsignedInt(fields.get("crc32c"), 16),
                    Long.parseLong(fields.get("mtime")));
        } catch (NumberFormatException e) {
            throw new IOException("The record of " + path + " can't be read: " + text, e);
        }
    }

    /** When the file was published, by ZooKeeper's clock alone: writers' clocks differ, and Spark compares files' ages. */
    long published(Stat znode) {
        boolean isAsPublished = generation == 0 && origin().equals(write);
        return isAsPublished ? znode.getCtime() : mtime;
    }

    FileEntry moved(long published) {
        return new FileEntry(write, generation + 1, ledger, first, last, entrySize, length, crc, published);
    }

    /** The same bytes, copied to another ledger: a new reference, hence generation 0. */
    FileEntry copiedTo(FileEntry copy, long published) {
        return new FileEntry(
                write + "~", 0, copy.ledger, copy.first, copy.last, copy.entrySize, length, crc, published);
    }

    /** The same bytes in the same place, written anew: another file. */
    FileEntry as(String otherWrite) {
        return new FileEntry(otherWrite, 0, ledger, first, last, entrySize, length, crc, mtime);
    }

    /** What a compaction doesn't change: equal for equal bytes of one write. */
    String origin() {
        int mark = write.indexOf('~');
        return mark < 0 ? write : write.substring(0, mark);
    }
}

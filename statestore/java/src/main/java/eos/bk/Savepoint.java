package eos.bk;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.CRC32C;
import java.util.zip.DeflaterOutputStream;
import java.util.zip.InflaterOutputStream;

/**
 * What the znode of a savepoint says, as JSON, and how the list of its files is packed into further znodes: a line for
 * each, its path below the checkpoint and its {@link FileEntry}, compressed by zlib and cut.
 *
 * @param v the version of this format
 * @param state building, ready or deleting; to a reader also abandoned, when its maker ended before it was ready
 * @param source the address of the checkpoint
 * @param createdMs when it was begun
 * @param batch the newest batch in it; −1 unless ready, as the numbers behind it are 0
 * @param query the id of the query that resumes from it
 * @param size bytes of its files
 * @param chunks znodes that the list of files takes
 * @param crc32c over the list of files
 */
record Savepoint(
        int v,
        String state,
        String source,
        long createdMs,
        long batch,
        String query,
        int files,
        long size,
        int ledgers,
        int chunks,
        long crc32c) {
    private static final int VERSION = 1;
    /** Bytes of the list in one znode; ZooKeeper takes 1 MiB with all that is around it. */
    private static final int CHUNK = 400 << 10;

    static Savepoint building(String source, long createdMs) {
        return new Savepoint(VERSION, "building", source, createdMs, -1, "", 0, 0, 0, 0, 0);
    }

    Savepoint in(String otherState) {
        return new Savepoint(v, otherState, source, createdMs, batch, query, files, size, ledgers, chunks, crc32c);
    }

    Savepoint ready(long batch, String query, Map<String, FileEntry> held, byte[] list, int chunks) {
        long size = held.values().stream().mapToLong(FileEntry::length).sum();
        int ledgers = ledgersOf(held).size();
        return new Savepoint(
                VERSION, "ready", source, createdMs, batch, query, held.size(), size, ledgers, chunks, crc32c(list));
    }

    boolean isReady() {
        return state.equals("ready");
    }

    byte[] encode() {
        return Json.write(this).getBytes(StandardCharsets.UTF_8);
    }

    static Savepoint decode(String name, byte[] data) throws IOException {
        try {
            Savepoint found = Json.MAPPER.readValue(data, Savepoint.class);
            if (found.v == VERSION && found.state != null && found.source != null && found.query != null) {
                return found;
            }
        } catch (JsonProcessingException e) {
            throw (IOException) unreadable(name, data).initCause(e);
        }
        throw unreadable(name, data);
    }

    private static Failed unreadable(String name, byte[] data) {
        return new Failed(
                Failed.Kind.Damaged,
                "The record of savepoint " + name + " cannot be read, or is of another version: "
                        + new String(data, StandardCharsets.UTF_8));
    }

    /** All of it, for Python. */
    ObjectNode told(String name) {
        ObjectNode told = Json.MAPPER.valueToTree(this);
        told.remove("v");
        return told.put("name", name);
    }

    /** The ledgers of the files; empty ones have none. */
    static List<Long> ledgersOf(Map<String, FileEntry> files) {
        return files.values().stream()
                .map(FileEntry::ledger)
                .filter(ledger -> ledger != FileEntry.NO_LEDGER)
                .distinct()
                .sorted()
                .toList();
    }

    static byte[] list(Map<String, FileEntry> files) {
        var lines = new ArrayList<String>();
        new TreeMap<>(files)
                .forEach((path, file) ->
                        lines.add(Percent.encode(path) + "\t" + new String(file.encode(), StandardCharsets.UTF_8)));
        return String.join("\n", lines).getBytes(StandardCharsets.UTF_8);
    }

    static List<byte[]> pack(byte[] list) throws IOException {
        var packed = new ByteArrayOutputStream();
        try (var out = new DeflaterOutputStream(packed)) {
            out.write(list);
        }
        byte[] all = packed.toByteArray();
        var chunks = new ArrayList<byte[]>();
        for (int at = 0; at < all.length; at += CHUNK) {
            chunks.add(Arrays.copyOfRange(all, at, Math.min(at + CHUNK, all.length)));
        }
        return chunks;
    }

    /** The files by their paths below the checkpoint. */
    Map<String, FileEntry> unpack(String name, List<byte[]> packed) throws IOException {
        var text = new ByteArrayOutputStream();
        try (var out = new InflaterOutputStream(text)) {
            for (byte[] chunk : packed) {
                out.write(chunk);
            }
        } catch (IOException e) {
            throw new Failed(
                    Failed.Kind.Damaged,
                    "The list of files of savepoint " + name + " cannot be unpacked: " + e.getMessage());
        }
        byte[] list = text.toByteArray();
        if (packed.size() != chunks || crc32c(list) != crc32c) {
            throw new Failed(
                    Failed.Kind.Damaged, "The list of files of savepoint " + name + " does not have its CRC32C");
        }
        var files = new TreeMap<String, FileEntry>();
        for (String line : text.toString(StandardCharsets.UTF_8).split("\n")) {
            int tab = line.indexOf('\t');
            if (tab > 0) {
                String path = Percent.decode(line.substring(0, tab));
                files.put(path, FileEntry.decode(path, line.substring(tab + 1).getBytes(StandardCharsets.UTF_8)));
            }
        }
        return files;
    }

    private static long crc32c(byte[] list) {
        var crc = new CRC32C();
        crc.update(list, 0, list.length);
        return crc.getValue();
    }
}

package eos.bk;

import eos.bk.Names.LedgerGoneException;
import eos.bk.Names.Status;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;

/**
 * Publishes small files, and keeps Spark's temporary ones without a name in ZooKeeper. Spark writes, closes and renames
 * {@code .name.UUID.TID.tmp} in one process; between close and rename only that process sees it, so that a file costs
 * one ZooKeeper write instead of two. The bytes are in the bookies, and in memory in case their ledger is freed; when
 * they would be too many, the next file is given its name at once.
 */
final class Unnamed {
    private static final Pattern TEMPORARY = Pattern.compile(".*/\\.[^/]+\\.[0-9a-f-]{36}(\\.TID\\d+)?\\.tmp");
    private static final int AT_MOST = 256;
    /** About: several threads may look at once. */
    static final long AT_MOST_BYTES = 32L * Settings.MIB;

    private static final int ATTEMPTS = 3;

    private record Held(FileEntry file, byte[] data) {}

    private final Client client;
    private final Map<String, Held> held = new ConcurrentHashMap<>();

    Unnamed(Client client) {
        this.client = client;
    }

    /** Writes the bytes and gives them their name, or holds them until their rename. */
    void close(String path, byte[] data, boolean overwrite) throws IOException {
        var file = new Held(client.packs.append(path, data), data);
        if (TEMPORARY.matcher(path).matches() && hasRoom(data.length)) {
            held.put(path, file);
        } else {
            publish(path, file, overwrite);
            held.remove(path); // It would hide what has replaced it.
        }
    }

    private boolean hasRoom(long bytes) {
        long all = held.values().stream().mapToLong(one -> one.data().length).sum();
        return held.size() < AT_MOST && all + bytes <= AT_MOST_BYTES;
    }

    /** Gives a held file its name; false when none is held under {@code from}. */
    boolean rename(String from, String to, boolean overwrite) throws IOException {
        Held file = held.get(from);
        if (file == null) {
            return false;
        }
        publish(to, file, overwrite);
        held.remove(from, file);
        return true;
    }

    private void publish(String path, Held file, boolean overwrite) throws IOException {
        FileEntry entry = file.file();
        for (int attempt = 1; ; attempt++) {
            try {
                client.names.publish(path, entry, overwrite);
                return;
            } catch (LedgerGoneException e) {
                if (attempt == ATTEMPTS) {
                    throw e;
                }
                entry = client.packs.append(path, file.data());
            }
        }
    }

    Status find(String path) {
        Held file = held.get(path);
        return file == null ? null : new Status(path, file.file(), file.file().mtime());
    }

    /** The bytes of a held file, or null. */
    byte[] read(String path) {
        Held file = held.get(path);
        return file == null ? null : file.data();
    }

    List<Status> list(String directory) {
        var found = new ArrayList<Status>();
        for (String path : held.keySet()) {
            if (Names.parent(path).equals(directory)) {
                found.add(find(path));
            }
        }
        found.removeIf(status -> status == null);
        return found;
    }

    boolean delete(String path) {
        return held.remove(path) != null;
    }

    void deleteBelow(String directory) {
        held.keySet().removeIf(path -> path.startsWith(Names.child(directory, "")));
    }

    /** Publishes what is held below a directory, before the directory is moved. */
    void publishBelow(String directory) throws IOException {
        for (String path : List.copyOf(held.keySet())) {
            if (path.startsWith(Names.child(directory, ""))) {
                rename(path, path, true);
            }
        }
    }
}

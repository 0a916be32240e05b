package eos.bk;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.fs.FileSystem;

/**
 * What an operator asks of a {@code bk://} tree beyond Hadoop's calls. Nothing here changes what a file holds, fences a
 * writer or waits for one; all may run beside writers, readers and sweepers.
 */
public final class Maintenance {
    private Maintenance() {}

    /**
     * Connects, if this process has not done so: a tool asks for it first, and doesn't wait long for what isn't there.
     *
     * @param hopelessMs how long servers are waited for that all refuse connections, or whose names nobody knows; others,
     *     and all once there was a connection, for {@code fs.bk.patience.ms}
     */
    public static void connect(FileSystem fs, long hopelessMs) throws IOException {
        client(fs).connect(hopelessMs);
    }

    /**
     * One thorough round of the sweeper, now: frees what nothing has referred to for the grace time, compacts, and looks
     * for unregistered ledgers. Returns the freed ledgers.
     *
     * @throws IOException also while another sweeper is at work
     */
    public static List<Long> sweep(FileSystem fs) throws IOException {
        return sweep(fs, new TreeMap<>());
    }

    /** As {@link #sweep}, for Python: the ledgers, and by name what was left alone, and why. */
    public static String swept(FileSystem fs) throws IOException {
        var left = new TreeMap<String, String>();
        return Json.write(new Round(sweep(fs, left), left));
    }

    /** As {@link #orphans}, for Python. */
    public static String found(FileSystem fs) throws IOException {
        var left = new TreeMap<String, String>();
        return Json.write(new Round(client(fs).sweeper.orphans("/alive", left), left));
    }

    private record Round(List<Long> ledgers, Map<String, String> left) {}

    private static List<Long> sweep(FileSystem fs, Map<String, String> left) throws IOException {
        List<Long> freed = client(fs).sweeper.sweep(true, left);
        if (freed == null) {
            throw new IOException("Another process is sweeping " + fs.getUri() + ": try again when it is done");
        }
        return freed;
    }

    /** Ledgers of this tree that aren't registered and whose writer is dead: a sweep after the grace time frees them. */
    public static List<Long> orphans(FileSystem fs) throws IOException {
        return client(fs).sweeper.orphans("/alive", new TreeMap<>());
    }

    /**
     * Reads entries {@code first…last} of a ledger from each bookie that should hold a copy, and checks their digests.
     * One line for each entry and bookie: {@code entry bookie good}, or in place of {@code good} what is wrong. While the
     * ledger is open, a copy beyond the ack quorum may still be on its way.
     *
     * @throws Failed NotFound: there is no such ledger
     */
    public static String replicas(FileSystem fs, long ledger, long first, long last) throws IOException {
        Client client = client(fs);
        var copies = new Copies(client.session(), ledger, client.settings.password);
        var lines = new StringBuilder();
        for (long entry = first; entry <= last; entry++) {
            for (var said : copies.ask(entry).entrySet()) {
                lines.append(entry + " " + said.getKey() + " " + said.getValue().words() + "\n");
            }
        }
        return lines.toString();
    }

    static Client client(FileSystem fs) {
        if (fs instanceof BookKeeperFileSystem ours) {
            return ours.client();
        }
        throw new IllegalArgumentException(fs.getUri() + " is not a bk:// file system");
    }
}

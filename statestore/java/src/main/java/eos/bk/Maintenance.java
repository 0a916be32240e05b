package eos.bk;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import java.io.IOException;
import java.security.GeneralSecurityException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.BookKeeper.DigestType;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.bookkeeper.net.BookieId;
import org.apache.bookkeeper.proto.BookieProtocol;
import org.apache.bookkeeper.proto.checksum.DigestManager;
import org.apache.hadoop.fs.FileSystem;

/**
 * What an operator asks of a {@code bk://} tree beyond Hadoop's calls. Nothing here changes what a file holds, fences a
 * writer or waits for one; all may run beside writers, readers and sweepers.
 */
public final class Maintenance {
    private Maintenance() {}

    /**
     * One thorough round of the sweeper, now: frees what nothing has referred to for the grace time, compacts, and looks
     * for unregistered ledgers. Returns the freed ledgers.
     *
     * @throws IOException also while another sweeper is at work
     */
    public static List<Long> sweep(FileSystem fs) throws IOException {
        List<Long> freed = client(fs).sweeper.sweep(true);
        if (freed == null) {
            throw new IOException("Another process is sweeping " + fs.getUri() + ": try again when it is done");
        }
        return freed;
    }

    /** Ledgers of this tree that aren't registered and whose writer is dead: a sweep after the grace time frees them. */
    public static List<Long> orphans(FileSystem fs) throws IOException {
        return client(fs).sweeper.orphans("/alive");
    }

    /**
     * Reads entries {@code first…last} of a ledger from each bookie that should hold a copy, and checks their digests.
     * One line for each entry and bookie: {@code entry bookie good}, or in place of {@code good} what is wrong. While the
     * ledger is open, a copy beyond the ack quorum may still be on its way.
     *
     * @throws IOException there is no such ledger
     */
    public static String replicas(FileSystem fs, long ledger, long first, long last) throws IOException {
        Client client = client(fs);
        Session session = client.session();
        LedgerMetadata metadata = Ledgers.metadata(session, ledger);
        if (metadata == null) {
            throw new IOException("BookKeeper has no ledger " + ledger);
        }
        DigestManager digests = digests(ledger, metadata, client.settings.password);
        var lines = new StringBuilder();
        for (long entry = first; entry <= last; entry++) {
            List<BookieId> ensemble =
                    metadata.getAllEnsembles().floorEntry(entry).getValue();
            var answers = new LinkedHashMap<BookieId, CompletableFuture<String>>();
            // BookKeeper stripes: entry e is on the write quorum's bookies from number e on, round the ensemble.
            for (int i = 0; i < metadata.getWriteQuorumSize(); i++) {
                BookieId bookie = ensemble.get((int) ((entry + i) % ensemble.size()));
                answers.put(bookie, ask(session.bk(), digests, ledger, entry, bookie));
            }
            for (var answer : answers.entrySet()) {
                lines.append(entry + " " + answer.getKey() + " " + Ledgers.await(answer.getValue()) + "\n");
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

    private static DigestManager digests(long ledger, LedgerMetadata metadata, byte[] password) throws IOException {
        var type = DigestType.toProtoDigestType(DigestType.fromApiDigestType(metadata.getDigestType()));
        try {
            return DigestManager.instantiate(ledger, password, type, ByteBufAllocator.DEFAULT, false);
        } catch (GeneralSecurityException e) {
            throw new IOException("This JVM has no " + metadata.getDigestType() + " for ledger " + ledger, e);
        }
    }

    private static CompletableFuture<String> ask(
            BookKeeper bk, DigestManager digests, long ledger, long entry, BookieId bookie) {
        var answer = new CompletableFuture<String>();
        bk.getClientCtx()
                .getBookieClient()
                .readEntry(
                        bookie,
                        ledger,
                        entry,
                        (rc, l, e, data, context) -> answer.complete(verdict(digests, rc, e, data)),
                        null,
                        BookieProtocol.FLAG_NONE);
        return answer;
    }

    private static String verdict(DigestManager digests, int rc, long entry, ByteBuf data) {
        if (rc != BKException.Code.OK) {
            return BKException.getMessage(rc);
        }
        try {
            digests.verifyDigestAndReturnData(entry, data);
            return "good";
        } catch (BKException e) {
            return e.getMessage();
        }
    }
}

package eos.bk;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import java.io.IOException;
import java.security.GeneralSecurityException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.BookKeeper.DigestType;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.bookkeeper.net.BookieId;
import org.apache.bookkeeper.proto.BookieProtocol;
import org.apache.bookkeeper.proto.checksum.DigestManager;

/**
 * The copies of a ledger's entries, each asked of the bookie that should hold it. BookKeeper's own reading doesn't tell
 * what each of them said: opening a ledger without recovery makes one ReadException of all.
 */
final class Copies {
    static final String GOOD = "good";
    static final String REFUSED =
            "refuses this client: it lets in who comes with TLS (fs.bk.tls) and a certificate of a "
                    + "role that it knows (its OU; see " + Security.CERTIFICATE + ")";

    private final Session session;
    private final long ledger;
    private final LedgerMetadata metadata;
    private final DigestManager digests;

    /** Throws an IOException where there is no such ledger. */
    Copies(Session session, long ledger, byte[] password) throws IOException {
        this.session = session;
        this.ledger = ledger;
        metadata = Ledgers.metadata(session, ledger);
        if (metadata == null) {
            throw new IOException("BookKeeper has no ledger " + ledger);
        }
        var type = DigestType.toProtoDigestType(DigestType.fromApiDigestType(metadata.getDigestType()));
        try {
            digests = DigestManager.instantiate(ledger, password, type, ByteBufAllocator.DEFAULT, false);
        } catch (GeneralSecurityException e) {
            throw new IOException("This JVM has no " + metadata.getDigestType() + " for ledger " + ledger, e);
        }
    }

    /** {@link #GOOD} for each bookie that gives a whole copy of the entry, or what is wrong. */
    Map<BookieId, String> ask(long entry) throws IOException {
        List<BookieId> ensemble = metadata.getAllEnsembles().floorEntry(entry).getValue();
        var answers = new LinkedHashMap<BookieId, CompletableFuture<String>>();
        // BookKeeper stripes: entry e is on the write quorum's bookies from number e on, round the ensemble.
        for (int i = 0; i < metadata.getWriteQuorumSize(); i++) {
            BookieId bookie = ensemble.get((int) ((entry + i) % ensemble.size()));
            answers.put(bookie, ask(entry, bookie));
        }
        var said = new LinkedHashMap<BookieId, String>();
        for (var answer : answers.entrySet()) {
            said.put(answer.getKey(), Ledgers.await(answer.getValue()));
        }
        return said;
    }

    private CompletableFuture<String> ask(long entry, BookieId bookie) throws IOException {
        var answer = new CompletableFuture<String>();
        session.bk()
                .getClientCtx()
                .getBookieClient()
                .readEntry(
                        bookie,
                        ledger,
                        entry,
                        (rc, l, e, data, context) -> answer.complete(verdict(rc, e, data)),
                        null,
                        BookieProtocol.FLAG_NONE);
        return answer;
    }

    private String verdict(int rc, long entry, ByteBuf data) {
        if (rc != BKException.Code.OK) {
            return rc == BKException.Code.UnauthorizedAccessException ? REFUSED : BKException.getMessage(rc);
        }
        try {
            digests.verifyDigestAndReturnData(entry, data);
            return GOOD;
        } catch (BKException e) {
            return e.getMessage();
        }
    }
}

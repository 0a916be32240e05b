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
    private static final String GOOD = "good";
    static final String REFUSED =
            "refuses this client: it lets in who comes with TLS (fs.bk.tls) and a certificate of a "
                    + "role that it knows (its OU; see " + Security.CERTIFICATE + ")";

    /** What has been said of a copy: {@link #isAnswer}, or its bookie is away or too slow, and may say else later. */
    record Said(String words, boolean isAnswer) {
        boolean isGood() {
            return words.equals(GOOD);
        }
    }

    private final Session session;
    private final long ledger;
    private final LedgerMetadata metadata;
    private final DigestManager digests;

    /** Throws {@link Failed} where there is no such ledger. */
    Copies(Session session, long ledger, byte[] password) throws IOException {
        this.session = session;
        this.ledger = ledger;
        metadata = Ledgers.metadata(session, ledger);
        if (metadata == null) {
            throw new Failed(Failed.Kind.NotFound, "BookKeeper has no ledger " + ledger);
        }
        var type = DigestType.toProtoDigestType(DigestType.fromApiDigestType(metadata.getDigestType()));
        try {
            digests = DigestManager.instantiate(ledger, password, type, ByteBufAllocator.DEFAULT, false);
        } catch (GeneralSecurityException e) {
            throw new IOException("This JVM has no " + metadata.getDigestType() + " for ledger " + ledger, e);
        }
    }

    /** What each bookie says that should have a copy of the entry: good, where it gives a whole one, or what is wrong. */
    Map<BookieId, Said> ask(long entry) throws IOException {
        List<BookieId> ensemble = metadata.getAllEnsembles().floorEntry(entry).getValue();
        var answers = new LinkedHashMap<BookieId, CompletableFuture<Said>>();
        // BookKeeper stripes: entry e is on the write quorum's bookies from number e on, round the ensemble.
        for (int i = 0; i < metadata.getWriteQuorumSize(); i++) {
            BookieId bookie = ensemble.get((int) ((entry + i) % ensemble.size()));
            answers.put(bookie, ask(entry, bookie));
        }
        var said = new LinkedHashMap<BookieId, Said>();
        for (var answer : answers.entrySet()) {
            said.put(answer.getKey(), Ledgers.await(answer.getValue()));
        }
        return said;
    }

    private CompletableFuture<Said> ask(long entry, BookieId bookie) throws IOException {
        var answer = new CompletableFuture<Said>();
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

    private Said verdict(int rc, long entry, ByteBuf data) {
        switch (rc) {
            case BKException.Code.OK:
                break;
            case BKException.Code.UnauthorizedAccessException:
                return new Said(REFUSED, true);
            case BKException.Code.NoSuchEntryException, BKException.Code.NoSuchLedgerExistsException:
                return new Said(BKException.getMessage(rc), true);
            default:
                return new Said(BKException.getMessage(rc), false);
        }
        try {
            digests.verifyDigestAndReturnData(entry, data);
            return new Said(GOOD, true);
        } catch (BKException e) {
            return new Said(e.getMessage(), true);
        }
    }
}

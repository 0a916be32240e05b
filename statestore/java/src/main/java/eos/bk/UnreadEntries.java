package eos.bk;

import eos.bk.Copies.Said;
import eos.bk.Ledgers.BookKeeperException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.bookkeeper.net.BookieId;
import org.apache.hadoop.security.AccessControlException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What becomes of entries that weren't read: each bookie that should have a copy is asked. While one is away that may
 * come back, as when it is started again, the reader waits; else it is told what each of them says.
 */
final class UnreadEntries {
    private static final Logger LOG = LoggerFactory.getLogger(UnreadEntries.class);
    /** Before: our view of the ledger may have been old. */
    private static final int ATTEMPTS = 2;
    /** Where no copy is bad and no bookie away: the cause may have gone while we asked. */
    private static final int ATTEMPTS_WITHOUT_A_CAUSE = 6;

    private static final long PAUSE_MS = 200;
    private static final long LONGEST_PAUSE_MS = 2_000;

    private final Client client;
    private final Absences absences;

    UnreadEntries(Client client) {
        this.client = client;
        absences = new Absences(client.settings.patienceMs);
    }

    /** What had to be waited for was read. */
    void areRead() {
        absences.forget();
    }

    /**
     * Waits a moment before the next attempt to read entries, where one may help.
     *
     * @param attempt how many there were
     * @param begunMs when the first was begun, see {@link Patience#nowMs}
     * @param answer to the last
     * @throws AccessControlException the bookies refuse this client
     * @throws InterruptedIOException the thread was interrupted; the flag is kept
     * @throws IOException none would help: it says what each bookie says
     */
    void mayBeReadLater(
            String path, long ledger, long first, long last, int attempt, long begunMs, BookKeeperException answer)
            throws IOException {
        if (attempt < ATTEMPTS) {
            return;
        }
        long entry = first;
        Map<BookieId, Said> said = Map.of();
        try {
            Session session = client.session();
            if (Ledgers.metadata(session, ledger) == null) {
                throw new LostException(path + " can't be read: BookKeeper has no ledger " + ledger, answer);
            }
            var copies = new Copies(session, ledger, client.settings.password);
            said = copies.ask(entry);
            while (entry < last && isGood(said)) {
                said = copies.ask(++entry);
            }
        } catch (LostException e) {
            throw e;
        } catch (IOException e) {
            answer.addSuppressed(e);
        }
        long nowMs = Patience.nowMs();
        boolean mayHelp = absences.mayEnd(said, nowMs)
                ? nowMs - begunMs < client.settings.patienceMs
                        && BookieTls.refusals().isEmpty()
                : (said.isEmpty() || isGood(said)) && attempt < ATTEMPTS_WITHOUT_A_CAUSE;
        if (!mayHelp || answer.isUnauthorized() || client.isClosing()) {
            throw unreadable(path, ledger, entry, said, answer);
        }
        if (attempt == ATTEMPTS) {
            LOG.warn("{} can't be read yet, and is tried again: {}", path, told(said));
        }
        try {
            Thread.sleep(Math.min(PAUSE_MS * attempt, LONGEST_PAUSE_MS));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            var interrupted = new InterruptedIOException("Interrupted: "
                    + unreadable(path, ledger, entry, said, answer).getMessage());
            interrupted.initCause(answer);
            throw interrupted;
        }
    }

    private static final class LostException extends IOException {
        LostException(String message, BookKeeperException answer) {
            super(message, answer);
        }
    }

    private static boolean isGood(Map<BookieId, Said> said) {
        return said.values().stream().anyMatch(Said::isGood);
    }

    private static String told(Map<BookieId, Said> said) {
        return said.entrySet().stream()
                .map(one -> one.getKey() + " " + one.getValue().words())
                .collect(Collectors.joining("; "));
    }

    /** What is wrong with an entry: a refusal isn't told as a loss. */
    private static IOException unreadable(
            String path, long ledger, long entry, Map<BookieId, Said> said, BookKeeperException answer) {
        if (!said.isEmpty() && said.values().stream().map(Said::words).allMatch(Copies.REFUSED::equals)) {
            var refused = new AccessControlException(path + " can't be read: every bookie that has entry " + entry
                    + " of ledger " + ledger + " " + Copies.REFUSED);
            refused.initCause(answer);
            return refused;
        }
        return new IOException(
                path + " can't be read: "
                        + (isGood(said) ? "too few bookies answer for" : "no bookie gives a good copy of")
                        + " entry " + entry + " of ledger " + ledger + (said.isEmpty() ? "" : ": " + told(said)) + " ("
                        + answer.getMessage() + ")",
                answer);
    }
}

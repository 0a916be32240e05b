package eos.bk;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.bookkeeper.net.BookieId;

/**
 * Bookies that gave no answer, and since when: who stays away for longer than the patience isn't waited for again, or
 * each of a thousand files on it would take that long to be given up.
 */
final class Absences {
    private record Absence(long sinceMs, long seenMs) {}

    private final long patienceMs;
    private final Map<BookieId, Absence> away = new ConcurrentHashMap<>();

    Absences(long patienceMs) {
        this.patienceMs = patienceMs;
    }

    /** Takes note of what bookies said; whether one of them said nothing, and hasn't stayed away for too long yet. */
    boolean mayEnd(Map<BookieId, Copies.Said> said, long nowMs) {
        boolean may = false;
        for (var one : said.entrySet()) {
            if (one.getValue().isAnswer()) {
                away.remove(one.getKey());
            } else {
                Absence absence = away.compute(one.getKey(), (bookie, before) -> longer(before, nowMs));
                may |= nowMs - absence.sinceMs < patienceMs;
            }
        }
        return may;
    }

    void forget() {
        away.clear();
    }

    private Absence longer(Absence before, long nowMs) {
        // Where nobody looked for so long, it may have been back in between.
        boolean isTheSame = before != null && nowMs - before.seenMs < patienceMs;
        return new Absence(isTheSame ? before.sinceMs : nowMs, nowMs);
    }
}

package eos.bk;

import java.util.concurrent.TimeUnit;

/**
 * A time to wait, which begins now. It goes by a clock that nobody sets: by the clock of the machine a wait would last
 * for hours, or be over at once, when NTP or an operator corrects it.
 */
final class Patience {
    private final long begunMs = nowMs();
    private final long limitMs;

    Patience(long limitMs) {
        this.limitMs = limitMs;
    }

    /** Milliseconds since some moment, the same one for the life of the process. */
    static long nowMs() {
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime());
    }

    boolean isOver() {
        return nowMs() - begunMs >= limitMs;
    }
}

package eos.bk;

import java.nio.charset.StandardCharsets;

/**
 * What a ledger's znode says: who writes it, whether it is sealed, and, once a sweeper has seen it without references,
 * since when ({@code idleSince}, ms) and at which count of child changes ({@code idleAt}).
 */
record LedgerState(boolean sealed, String process, long idleSince, int idleAt) {
    static LedgerState open(String process) {
        return new LedgerState(false, process, 0, -1);
    }

    static LedgerState sealed(String process) {
        return new LedgerState(true, process, 0, -1);
    }

    LedgerState idle(long since, int childChanges) {
        return new LedgerState(sealed, process, since, childChanges);
    }

    byte[] encode() {
        return ((sealed ? "sealed " : "open ") + process + " " + idleSince + " " + idleAt)
                .getBytes(StandardCharsets.UTF_8);
    }

    static LedgerState decode(byte[] data) {
        String[] words = new String(data, StandardCharsets.UTF_8).split(" ");
        return new LedgerState(
                words[0].equals("sealed"), words[1], Long.parseLong(words[2]), Integer.parseInt(words[3]));
    }
}

package eos.bk;

import java.io.IOException;

/** What an operator asked for was not done; {@link #kind} says what is known, by the error of Python's statestore. */
public final class Failed extends IOException {
    /** What is known. */
    enum Kind {
        NotFound,
        InvalidInput,
        CutFailed,
        Damaged,
        Unavailable
    }

    private final Kind kind;

    Failed(Kind kind, String message) {
        super(message);
        this.kind = kind;
    }

    /** The name of Python's error. */
    public String kind() {
        return kind.name();
    }
}

"""The errors of `eos`, ordered by what is known about the micro-batch.

    EosError
    ├── InvalidInput       the caller must change something; nothing of this batch is visible
    │   ├── TopicMissing       the topic does not exist
    │   ├── IdentityMismatch   another query, or other offsets, under the same sink name
    │   ├── StaleBatch         the output is ahead of the batch that Spark hands over
    │   ├── DamagedLog         the control log lost records that the sink had written
    │   └── NewerVersion       a newer version of this library wrote the log or a file of the checkpoint
    ├── NotCommitted       the batch is known not to be visible: write it again
    │   ├── Stopped            the query was stopped, and this call has committed nothing
    │   └── TookTooLong        the batch took longer than its transaction lives: give it more time
    ├── CommitUnknown      the batch may or may not be visible: ask the control log
    ├── Unacknowledged     without a transaction: some rows of the batch may be visible, and some lacking
    ├── ReplayFailed       nothing of the batch was to be written; Spark could not run it for the query's state
    ├── Fenced             another driver owns the sink now: stop
    └── OutOfTurn          a mistake in a program that uses the protocol: never tried again

`Unanswered`, `Refused`, `DamagedFrame` (`DamagedEntry`), `UnexpectedFrame` and `ConnectionLost` (`Unreachable`,
`ConsumerClosed`, `ProducerClosed`) come from the network layer. The driver turns each into one of the above before it
reaches the user.
`RefusedForGood` is both a Refused and an InvalidInput. `BadCredentials` is both a `NoCredentials` (Unreachable) and an
InvalidInput, and `BadCertificates` both an Unreachable and an InvalidInput.
"""

from __future__ import annotations

from typing import Final

INTERRUPTS: Final = (KeyboardInterrupt, SystemExit)
"""The errors by which a signal ends a call: of Ctrl-C, and of a handler that calls `sys.exit`, as for SIGTERM."""


class EosError(Exception):
    """Base of every error that `eos` raises on purpose."""


class InvalidInput(EosError, ValueError):
    """A name, option, column or setting is wrong. Nothing of the batch is visible to a reader.

    Without a transaction, rows that were sent before the wrong one may be visible. Then the message says so.
    """


class TopicMissing(InvalidInput):
    """The topic does not exist on the cluster, and the sink does not create topics."""


class IdentityMismatch(InvalidInput):
    """The control log belongs to another query, or holds this batch id with other offsets."""


class StaleBatch(InvalidInput):
    """The newest committed batch is newer than the batch that Spark hands over."""


class DamagedLog(InvalidInput):
    """The control log is empty or has a hole where this sink had written records."""


class NewerVersion(InvalidInput):
    """The control log, or a file of the checkpoint, was written by a newer version of this library. It is whole."""


class NotCommitted(EosError):
    """The batch is known not to be committed. Writing it again is safe."""


class Stopped(NotCommitted):
    """The streaming query was stopped, and this call has committed nothing."""


class TookTooLong(NotCommitted):
    """The batch took longer than its transaction lives, and would again. The message names the option to raise."""


class CommitUnknown(EosError):
    """The sink asked for the commit and got no answer. The control log decides."""


class Unacknowledged(EosError):
    """Some rows of a batch without a transaction have no receipt. They may be visible or missing.

    The whole batch must be written again.
    """


class ReplayFailed(EosError):
    """A replay or a shadow, which writes no rows, failed in Spark.

    The control log has the batch as committed, or the checkpoint is a shadow. Spark must run the batch to its end all
    the same, since the query's state needs it.

    Attributes:
        stopped: True if the batch failed because the streaming query was stopped.
    """

    def __init__(self, message: str, *, stopped: bool = False) -> None:
        super().__init__(message)
        self.stopped = stopped


class Fenced(EosError):
    """A newer driver has taken the sink over. This one must stop."""


class OutOfTurn(EosError):
    """The program asked for what the protocol does not allow now, such as a send into a transaction it has ended."""


class NetworkError(EosError):
    """Base of the network layer's errors. They are raised inside `eos`, and reach no user unexplained."""


class Unanswered(NetworkError):
    """No answer within the time-out. The message says what was waited for, and for how long."""


class ConnectionLost(NetworkError):
    """The connection ended while something was under way on it."""


class ConsumerClosed(ConnectionLost):
    """The broker closed a consumer, since its topic moves or is closed. It can be joined again."""


class ProducerClosed(ConnectionLost):
    """The broker closed a producer before it had opened: nothing was sent. It can be opened again."""


class DamagedFrame(NetworkError):
    """Received bytes are not a Pulsar frame, or their checksum is wrong. The connection can't be used any longer."""


class DamagedEntry(DamagedFrame):
    """A stored entry cannot be read, each time that the broker sends it. The entries after it can.

    Attributes:
        ledger, entry: where it is stored.
    """

    def __init__(self, why: str, ledger: int, entry: int) -> None:
        super().__init__(why)
        self.ledger, self.entry = ledger, entry

    def __reduce__(self) -> tuple[type[DamagedEntry], tuple[str, int, int]]:
        return type(self), (str(self), self.ledger, self.entry)


class UnexpectedFrame(NetworkError):
    """The broker sent what the protocol does not allow now, such as the answer to another request."""


class EntriesGone(NetworkError):
    """Stored entries cannot be read: the broker deleted them, or hides them from this reader.

    Attributes:
        after: the last entry before the gap; None where it is the first one of the topic.
        found: the entry with which reading would go on; None where nothing comes.
    """

    def __init__(self, topic: str, after: object, found: object) -> None:
        where = "from the start of the topic" if after is None else f"from entry {after} on"
        came = "Nothing comes, although messages are stored there" if found is None else f"The broker gives {found}"
        super().__init__(
            f"reading {topic} {where} leaves out entries. {came}, each time that the reader began again. The entries "
            "were deleted (message TTL, retention, backlog quota, or a command such as expire, skip or truncate), the "
            "reader's position was moved again and again, or an entry filter of the broker hides them"
        )
        self.topic, self.after, self.found = topic, after, found

    def __reduce__(self) -> tuple[type[EntriesGone], tuple[str, object, object]]:
        return type(self), (self.topic, self.after, self.found)


class Unreachable(ConnectionLost):
    """No connection could be made. The message says where to, and what to look at."""


class NoCredentials(Unreachable):
    """No connection could be made, since no token or password was found. Names the place, never a secret."""


class BadCredentials(NoCredentials, InvalidInput):
    """The text that was found is not a token or a password. This stays so until the caller changes something."""


class BadCertificates(Unreachable, InvalidInput):
    """No connection could be made, since a PEM file cannot be used.

    The files are read for each connection. They may change while a commit is under way, and then this says nothing
    about the batch.
    """


class Refused(NetworkError):
    """The broker answered with an error.

    Attributes:
        asked: what was asked for, in words.
        code: the name in `ServerError`, such as "TransactionNotFound".
        detail: the broker's own words.
        advice: what the caller can do, as sentences without the last full stop; "" where that is not known.
    """

    def __init__(self, asked: str, code: str, detail: str, advice: str = "") -> None:
        words = f"{asked}: the broker answered {code}{f': {detail}' if detail else ''}"
        super().__init__(f"{words.removesuffix('.')}. {advice}" if advice else words)
        self.asked = asked
        self.code = code
        self.detail = detail
        self.advice = advice

    def __reduce__(self) -> tuple[type[Refused], tuple[str, str, str, str], dict[str, object]]:
        return type(self), (self.asked, self.code, self.detail, self.advice), vars(self)  # with what subclasses add


class FrameTooLarge(Refused):
    """The topic takes no frame of this size (its policy `maxMessageSize`); the next transaction's are cut smaller.

    Attributes:
        size: the frame's bytes of payload.
    """

    def __init__(self, asked: str, code: str, detail: str, advice: str = "", *, size: int = 0) -> None:
        super().__init__(asked, code, detail, advice)
        self.size = size


class RateLimited(Refused):
    """A rate limit of the broker or of a policy refuses it now. It passes by itself within the period of the rate."""


class AuthorizationUnknown(Refused):
    """The broker could not find out whether the role has the right, as while its metadata store is away. It passes."""


class LimitReached(Refused):
    """A limit or a policy of the topic forbids it until somebody makes room or changes the policy.

    That can happen at any time, so tries go on for a while. Restarting alone does not help.
    """

    def for_good(self, tried_s: float) -> RefusedForGood:
        """Return it as an error that does not pass. Args: the seconds for which it was tried."""
        tried = f"It was refused for {tried_s:.0f} s, so this is not the place of a client that died"
        return RefusedForGood(self.asked, self.code, self.detail, f"{tried}. {self.advice}")


class RefusedForGood(Refused, InvalidInput):
    """The broker refuses it each time, until the caller changes something.

    It is known at once that trying again is of no use, which makes it invalid input. While a commit may be under way
    it says nothing about the batch: there it counts as what the network layer knows.
    """


class EncryptionRequired(RefusedForGood):
    """The namespace takes encrypted messages alone, and this producer does not encrypt."""

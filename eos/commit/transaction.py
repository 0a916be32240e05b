"""A transaction beside a batch's own is opened for a block. Any is ended here, with what an answer to END_TXN proves.

The table's only question is whether the transaction has *ended*. How it ended is for the control log to say, unless
the coordinator itself answered "success": on a finished transaction END_TXN answers TransactionNotFound whether it was
committed, aborted, timed out or never was, and the coordinator keeps no history.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Final, NamedTuple

from eos.commit.ports import CoordinatorsPort
from eos.commit.retry import Retry
from eos.errors import INTERRUPTS, EosError, InvalidInput, NetworkError, Refused
from eos.pulsar.wire.txn import TxnId


class TransactionEnd(Enum):
    """The proof that an answer to END_TXN gives."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    ENDED = "ended"  # how it ended is not known
    NOT_YET = "not yet"  # nothing proven: ask again


SUCCESS: Final = "Success"
SILENCE: Final = "no answer"

# (asked to commit, what was answered) -> what it proves. Anything else proves nothing.
ENDINGS: Final[dict[tuple[bool, str], TransactionEnd]] = {
    (True, SUCCESS): TransactionEnd.COMMITTED,
    (False, SUCCESS): TransactionEnd.ABORTED,
    # Gone from the coordinator, which forgets how. To a principal that may not end the transaction
    # the answer is the same, hence the rule "another principal" of `eos.commit.decision`.
    (True, "TransactionNotFound"): TransactionEnd.ENDED,
    (False, "TransactionNotFound"): TransactionEnd.ENDED,
    # On its way to either end: of four concurrent commits one is answered with success, and the others so.
    (True, "InvalidTxnStatus"): TransactionEnd.NOT_YET,
    (False, "InvalidTxnStatus"): TransactionEnd.NOT_YET,
    # The coordinator moved, or is not loaded yet after a crash.
    (True, "TransactionCoordinatorNotFound"): TransactionEnd.NOT_YET,
    (False, "TransactionCoordinatorNotFound"): TransactionEnd.NOT_YET,
    # The frame may have arrived, or may still arrive.
    (True, SILENCE): TransactionEnd.NOT_YET,
    (False, SILENCE): TransactionEnd.NOT_YET,
}


class EndAnswer(NamedTuple):
    """An answer to END_TXN: what it proves, and the error that it came as; None for success."""

    ending: TransactionEnd
    error: EosError | None


@contextmanager
def open_transaction(
    client: CoordinatorsPort, coordinator: int, topics: Collection[str], ttl_s: float, patience: Callable[[], Retry]
) -> Iterator[TxnId]:
    """Open a transaction on physical topics for a block that may send into it. Abort it where the block fails.

    After a block that did not fail the transaction is open, and the caller asks for its end.

    Nothing of a block that failed is ever read. Its messages can't be read before the transaction's end, since their
    topics are added before the block begins. Nobody asks for a commit, since only the caller could, after the block.
    So the abort, or else the coordinator after `ttl_s` seconds, ends the transaction, and either end hides them.

    Args: who knows the coordinators; the coordinator's number; the topics; seconds until the coordinator aborts it;
        how long to ask for the abort.
    Raises what the coordinator's requests raise, and what the block raises.
    """
    opening = client.coordinator(coordinator)
    txn = opening.new_transaction(round(ttl_s * 1000))
    try:
        opening.add_partitions(txn, sorted(topics))
        yield txn
    except (Exception, *INTERRUPTS):
        end(client, txn, commit=False, patience=patience())
        raise


def ask(client: CoordinatorsPort, txn: TxnId, commit: bool, sent: Callable[[], None] | None = None) -> EndAnswer:
    """Ask once for the end of `txn`, at the coordinator that opened it, which need not be the sink's.

    `sent` is called once the request was handed to the socket. Raises nothing of the network's, and no InvalidInput: a
    request whose answer is lost may have been carried out, so that a refused reconnection says nothing of the batch.
    """
    said: str = SUCCESS
    error: EosError | None = None
    try:
        client.coordinator(txn.coordinator).end(txn, commit, sent)
    except (NetworkError, InvalidInput) as why:
        said, error = why.code if isinstance(why, Refused) else SILENCE, why
    return EndAnswer(ENDINGS.get((commit, said), TransactionEnd.NOT_YET), error)


def end(client: CoordinatorsPort, txn: TxnId, commit: bool, patience: Retry) -> EndAnswer:
    """Ask for the end of `txn` until it has ended; NOT_YET when patience is at an end."""
    while True:
        answer = ask(client, txn, commit)
        if answer.ending is not TransactionEnd.NOT_YET or not patience.pause():
            return answer

from __future__ import annotations

from collections.abc import Callable

import pytest

from eos.commit.end_transaction import ENDINGS, TransactionEnd, ask, end
from eos.commit.ports import CoordinatorPort
from eos.commit.retry import OwnerSettings, Retry
from eos.errors import ConnectionLost, NetworkError, OutOfTurn, Refused, Unanswered
from eos.pulsar.wire.txn import TxnId
from tests.simulation.broker import Broker
from tests.simulation.client import Client
from tests.simulation.world import Alone

NOT_FOUND = Refused("END_TXN", "TransactionNotFound", "")
INVALID = Refused("END_TXN", "InvalidTxnStatus", "")
LOADING = Refused("END_TXN", "TransactionCoordinatorNotFound", "")


class Answers(Client):
    """Coordinators whose answers to END_TXN are given; the rest is success."""

    def __init__(self, *answers: Exception | None) -> None:
        super().__init__(Alone(Broker(coordinators=4)))
        self.answers = list(answers)
        self.asked: list[tuple[int, TxnId, bool]] = []

    def coordinator(self, index: int) -> CoordinatorPort:  # type: ignore[override]
        coordinator = super().coordinator(index)

        def answered(txn: TxnId, commit: bool, sent: Callable[[], None] | None = None) -> None:
            self.asked.append((index, txn, commit))
            answer = self.answers.pop(0) if self.answers else None
            if answer is not None:
                raise answer

        coordinator.end = answered  # type: ignore[method-assign]
        return coordinator


def patience(client: Answers, limit_s: float = 30) -> Retry:
    world = client._world
    return Retry(OwnerSettings(), limit_s, limit_s, sleep=world.sleep, clock=world.clock)


@pytest.mark.parametrize(
    ("commit", "answer", "proves"),
    [
        (True, None, TransactionEnd.COMMITTED),
        (False, None, TransactionEnd.ABORTED),
        (True, NOT_FOUND, TransactionEnd.ENDED),
        (False, NOT_FOUND, TransactionEnd.ENDED),
        (True, INVALID, TransactionEnd.NOT_YET),
        (False, INVALID, TransactionEnd.NOT_YET),
        (True, LOADING, TransactionEnd.NOT_YET),
        (False, LOADING, TransactionEnd.NOT_YET),
        (True, Unanswered("?"), TransactionEnd.NOT_YET),
        (False, ConnectionLost("?"), TransactionEnd.NOT_YET),
        (True, Refused("END_TXN", "UnknownError", ""), TransactionEnd.NOT_YET),
        (False, Refused("END_TXN", "AuthorizationError", ""), TransactionEnd.NOT_YET),
    ],
)
def test_what_an_answer_to_end_txn_proves(commit: bool, answer: NetworkError | None, proves: TransactionEnd) -> None:
    assert ask(Answers(answer), TxnId(0, 1), commit) == (proves, answer)


def test_only_success_says_how_a_transaction_ended() -> None:
    assert {
        answer
        for (_, answer), proves in ENDINGS.items()
        if proves in (TransactionEnd.COMMITTED, TransactionEnd.ABORTED)
    } == {"Success"}


def test_the_coordinator_that_opened_it_is_asked() -> None:
    """The sink's may be another one: to it the transaction is not found, though it is open."""
    client = Answers(LOADING)
    end(client, TxnId(3, 9), commit=True, patience=patience(client))
    assert client.asked == [(3, TxnId(3, 9), True)] * 2


@pytest.mark.parametrize("commit", [True, False])
def test_it_is_asked_for_until_it_has_ended(commit: bool) -> None:
    client = Answers(LOADING, Unanswered("?"), INVALID, NOT_FOUND)
    assert end(client, TxnId(0, 1), commit, patience(client)) == (TransactionEnd.ENDED, NOT_FOUND)
    assert len(client.asked) == 4


def test_patience_has_an_end_and_the_last_answer_is_told() -> None:
    client = Answers(*[INVALID] * 1_000)
    assert end(client, TxnId(0, 1), True, patience(client, 5)) == (TransactionEnd.NOT_YET, INVALID)
    assert 5 <= client._world.clock() < 6


def test_a_mistake_of_the_caller_is_not_asked_again() -> None:
    client = Answers(OutOfTurn("transaction: asked for 'commit' while aborting"))
    with pytest.raises(OutOfTurn):
        end(client, TxnId(0, 1), True, patience(client))
    assert len(client.asked) == 1

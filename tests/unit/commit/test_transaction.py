from __future__ import annotations

from collections.abc import Callable

import pytest

from eos.commit.ports import CoordinatorPort
from eos.commit.retry import Retry
from eos.commit.transaction import ENDINGS, TransactionEnd, ask, end, open_transaction
from eos.errors import ConnectionLost, EosError, InvalidInput, OutOfTurn, Refused, Unanswered
from eos.pulsar.wire.txn import TxnId
from tests.modules import modules_with
from tests.simulation.broker import Broker
from tests.simulation.client import Client
from tests.simulation.world import Alone

NOT_FOUND = Refused("END_TXN", "TransactionNotFound", "")
INVALID = Refused("END_TXN", "InvalidTxnStatus", "")
LOADING = Refused("END_TXN", "TransactionCoordinatorNotFound", "")


class Answers(Client):
    """Coordinators whose answers to END_TXN are given; the rest is success."""

    def __init__(self, *answers: Exception | None) -> None:
        self.world = Alone(Broker(coordinators=4))
        super().__init__(self.world)
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
    world = client.world
    return Retry(limit_s, sleep=world.sleep, clock=world.clock)


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
        (True, InvalidInput("the certificate"), TransactionEnd.NOT_YET),
        (False, InvalidInput("the certificate"), TransactionEnd.NOT_YET),
    ],
)
def test_what_an_answer_to_end_txn_proves(commit: bool, answer: EosError | None, proves: TransactionEnd) -> None:
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
    assert 5 <= client.world.clock() < 6


def test_a_mistake_of_the_caller_is_not_asked_again() -> None:
    client = Answers(OutOfTurn("transaction: asked for 'commit' while aborting"))
    with pytest.raises(OutOfTurn):
        end(client, TxnId(0, 1), True, patience(client))
    assert len(client.asked) == 1


# ---- opening


class Failed(Exception):
    pass


def test_topics_are_in_the_transaction_before_the_block_and_it_is_open_after_it() -> None:
    client = Answers()
    with open_transaction(client, 2, ["b", "a"], 30, lambda: patience(client)) as txn:
        assert client.world.log == ["NEW_TXN", "ADD_PARTITION"]
        assert client.world.broker.coordinators[2].open[txn].partitions == ["a", "b"]
    assert (txn.coordinator, client.asked, client.world.log) == (2, [], ["NEW_TXN", "ADD_PARTITION"])


@pytest.mark.parametrize("error", [Failed(), Unanswered("?"), KeyboardInterrupt(), SystemExit(143)])
def test_a_block_that_fails_leaves_an_aborted_transaction(error: BaseException) -> None:
    client = Answers(LOADING)
    with pytest.raises(type(error)), open_transaction(client, 0, ["t"], 30, lambda: patience(client)) as txn:
        raise error
    assert client.asked == [(0, txn, False)] * 2


def test_topics_that_are_refused_leave_an_aborted_transaction_and_no_block_begins() -> None:
    client = Answers()
    client.world.failing["ADD_PARTITION"] = [(Unanswered("?"), True)]
    with pytest.raises(Unanswered), open_transaction(client, 0, ["t"], 30, lambda: patience(client)):
        pytest.fail("the block began")
    assert [commit for _, _, commit in client.asked] == [False]


def test_where_nothing_was_opened_nothing_is_aborted() -> None:
    client = Answers()
    client.world.failing["NEW_TXN"] = [(Unanswered("?"), True)]
    with pytest.raises(Unanswered), open_transaction(client, 0, ["t"], 30, lambda: patience(client)):
        pytest.fail("the block began")
    assert client.asked == []


def test_a_batch_opens_its_own_transaction_and_everything_else_opens_one_here() -> None:
    """Only then the sentence that proves the abort of what failed holds of each transaction."""
    places = modules_with(r"(?<!def )\bnew_transaction\(", "eos", "statestore")
    assert places == {"eos/commit/owner.py", "eos/commit/transaction.py"}

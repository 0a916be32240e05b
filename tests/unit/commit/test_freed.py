"""After a try that was aborted: no frame that comes later holds readers up, though no batch follows."""

from __future__ import annotations

import pytest

from eos.commit.attempt import attempt
from eos.commit.owner import Owner
from eos.commit.ports import Written
from eos.errors import EosError, InvalidInput, NotCommitted
from eos.pulsar.wire.txn import TxnId
from tests.simulation.client import Client
from tests.simulation.job import DATA, WriteData
from tests.simulation.world import Alone
from tests.unit.commit.driver import LOST, identity, open_transactions


def test_readers_are_freed_where_a_frame_came_after_the_abort_of_the_last_try(world: Alone, owner: Owner) -> None:
    """No batch follows, and the topic has never held a transaction: it has forgotten the abort."""

    class Unsealed(WriteData):
        def send(self, txn: TxnId) -> Written:
            raise InvalidInput("row 3")

        def abandon(self) -> tuple[str, ...]:
            return (DATA[1],)

    zombie, abort = Client(world).producer(DATA[1]), owner.abort

    def abort_before_the_frame() -> None:
        assert owner.in_hand is not None
        txn = owner.in_hand.txn
        abort()
        zombie.send_record(b"late", txn)

    owner.abort = abort_before_the_frame  # type: ignore[method-assign]
    with pytest.raises(InvalidInput):
        attempt(owner, 0, identity(0), Unsealed(Client(world), 0))
    assert open_transactions(world) == 0
    zombie.send_record(b"last", None)
    assert [entry.data for entry in world.broker.topic(DATA[1]).readable()] == [b"last"]


def test_a_try_whose_abort_is_refused_once_is_aborted_and_freed_and_can_be_made_again(
    world: Alone, owner: Owner
) -> None:
    """The refusal says something about the abort, and nothing about the input."""

    class Fails(WriteData):
        def finish(self) -> None:
            raise LOST

        def abandon(self) -> tuple[str, ...]:
            return (DATA[1],)

    world.failing = {"END_TXN abort": [(InvalidInput("a certificate is being replaced"), False)]}
    with pytest.raises(NotCommitted, match="batch 0 was aborted: planned"):
        attempt(owner, 0, identity(0), Fails(Client(world), 0))
    assert open_transactions(world) == 0
    assert world.log[-1] == "END_TXN commit", "the readers of the topic are freed"


@pytest.mark.parametrize("error", [LOST, InvalidInput("a certificate is being replaced")])
def test_what_cannot_be_freed_is_told_and_raises_nothing(
    world: Alone, owner: Owner, caplog: pytest.LogCaptureFixture, error: EosError
) -> None:
    world.failing = {"NEW_TXN": [(error, False)]}
    owner.free([DATA[1]])
    assert f"readers of {DATA[1]} may wait" in "\n".join(caplog.messages)

"""Taking over a log that the end of the last INTENT's transaction doesn't make readable; test_owner has the rest."""

from __future__ import annotations

from eos.commit.control_log import Intent, Marker
from eos.commit.owner import Owner
from eos.commit.patience import Settings
from eos.pulsar.wire.txn import TxnId
from tests.simulation.broker import Broker
from tests.simulation.client import Client
from tests.simulation.job import CONTROL, NAME, InTurn
from tests.simulation.world import Alone


def owning(world: Alone, run_id: str) -> Owner:
    settings = Settings(ttl_s=60, patience_s=30)
    owner = Owner(
        Client(world), NAME, CONTROL, settings, at_once=InTurn(second_first=True), sleep=world.sleep, clock=world.clock
    )
    owner.take_over("query", run_id)
    return owner


def hidden(world: Alone, owner: Owner, txn: TxnId) -> None:
    """End the transaction of a batch before the control topic is part of it, and send its MARKER late."""
    owner.log.append(Intent(owner.log.next_number(), "query", "run-1", 0, 1, txn, None))
    world.broker.start_end(txn, False)  # by its ttl, before it was told of the control topic
    while world.broker.work():
        pass
    late = Marker(owner.log.next_number(), "query", "run-1", 0, 1, txn, None, {}, {}, "offsets 0")
    owner.log.append(late, txn)
    assert world.broker.topic(CONTROL).ongoing
    world.log.clear()


def test_a_late_marker_is_freed_by_another_transaction_once_its_own_has_ended() -> None:
    """Asking for its end again and again would free nothing: the coordinator has forgotten it."""
    world = Alone(Broker(coordinators=4))
    first = owning(world, "run-1")
    hidden(world, first, first.coordinator().new_transaction(60_000))
    second = owning(world, "run-2")
    assert not world.broker.topic(CONTROL).ongoing
    assert second.view.newest is None
    assert second.view.owner is not None
    assert second.view.owner.run_id == "run-2"
    assert world.log.count("END_TXN abort") == 1, "what has ended is asked for once"
    assert world.log.count("NEW_TXN") == 1, "one empty transaction is enough"


def test_an_owner_that_settles_knows_that_the_transaction_in_hand_has_ended() -> None:
    world = Alone(Broker(coordinators=4))
    owner = owning(world, "run-1")
    hidden(world, owner, owner.open())
    owner.settle()
    assert not owner.unsettled
    assert not world.broker.topic(CONTROL).ongoing
    assert owner.view.newest is None
    assert world.log.count("END_TXN abort") == 1, "what has ended is asked for once"
    assert world.log.count("NEW_TXN") == 1, "one empty transaction is enough"

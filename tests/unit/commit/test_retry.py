"""A limit that a policy sets: waited for as long as a dead client may have the place, and then named."""

from __future__ import annotations

import pytest

from eos.commit.retry import OwnerSettings
from eos.errors import CommitUnknown, ConnectionLost, LimitReached, RefusedForGood
from tests.simulation.broker import Broker
from tests.simulation.world import Alone
from tests.unit.commit.test_owner import owning

SETTINGS = OwnerSettings(ttl_s=60, patience_s=30, limit_s=10)
LIMIT = LimitReached("open", "ProducerBusy", "Topic reached max producers limit", "Raise the limit")
LOST = ConnectionLost("planned")


@pytest.fixture
def world() -> Alone:
    return Alone(Broker(coordinators=4))


@pytest.mark.parametrize("label", ["SUBSCRIBE", "SUBSCRIBE durable", "PRODUCER exclusive-with-fencing"])
def test_a_takeover_ends_with_the_limit_in_words(world: Alone, label: str) -> None:
    world.failing = {label: [(LIMIT, False)] * 10_000}
    with pytest.raises(RefusedForGood, match=r"refused for 10 s, .*a client that died\. Raise the limit") as caught:
        owning(world, settings=SETTINGS)
    assert "starting again is safe" not in str(caught.value)
    assert 10 <= world.clock() < 12


@pytest.mark.parametrize("label", ["SUBSCRIBE", "SUBSCRIBE durable", "PRODUCER exclusive-with-fencing"])
def test_a_takeover_goes_on_once_there_is_room(world: Alone, label: str) -> None:
    world.failing = {label: [(LOST, False)] * 20 + [(LIMIT, False)] * 15}  # of both some 8 s, more than 10 s in all
    assert owning(world, settings=SETTINGS).view.owner is not None
    assert world.clock() > 10


def test_a_limit_says_nothing_of_a_commit_that_was_sent(world: Alone) -> None:
    owner = owning(world, settings=SETTINGS)
    owner.open()
    world.failing = {"END_TXN commit": [(LOST, True)], "SEND": [(LOST, False)] * 10_000}
    owner.commit(lambda: None)
    world.failing["PRODUCER exclusive-with-fencing"] = [(LIMIT, False)] * 10_000
    with pytest.raises(CommitUnknown, match=r"Raise the limit\. Whether the batch is committed is not known"):
        owner.settle()

"""Drivers of one sink on a simulated cluster, and the batches that they write."""

from __future__ import annotations

from typing import Any

from eos.commit.attempt import attempt
from eos.commit.decision import Action, Identity
from eos.commit.owner import Owner
from eos.commit.retry import OwnerSettings
from eos.errors import ConnectionLost
from tests.simulation.client import Client
from tests.simulation.job import CONTROL, NAME, InTurn, WriteData
from tests.simulation.world import Alone

SETTINGS = OwnerSettings(ttl_s=60, patience_s=30)
LOST = ConnectionLost("planned")


def driver(world: Alone, client: Client | None = None, **parts: Any) -> Owner:
    """Return a driver that owns nothing yet."""
    given = {"settings": SETTINGS, "at_once": InTurn(second_first=True), "sleep": world.sleep, "clock": world.clock}
    return Owner(client or Client(world), NAME, CONTROL, **{**given, **parts})


def owning(world: Alone, run_id: str = "run-1", client: Client | None = None, **parts: Any) -> Owner:
    """Return a driver that has taken the sink over."""
    owner = driver(world, client, **parts)
    owner.take_over("query", run_id)
    return owner


def identity(batch_id: int) -> Identity:
    """Return what the query of all drivers says of itself with a batch."""
    return Identity("query", "run-1", f"offsets {batch_id}", "me")


def commit(world: Alone, owner: Owner, *batches: int) -> list[Action]:
    """Write and commit batches."""
    return [attempt(owner, batch, identity(batch), WriteData(Client(world), batch)) for batch in batches]


def open_transactions(world: Alone) -> int:
    """Count them on all coordinators."""
    return sum(len(coordinator.open) for coordinator in world.broker.coordinators)

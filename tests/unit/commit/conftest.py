"""A simulated cluster, and a driver that owns its sink."""

from __future__ import annotations

import pytest

from eos.commit.owner import Owner
from tests.simulation.broker import Broker
from tests.simulation.world import Alone
from tests.unit.commit.driver import owning


@pytest.fixture
def world() -> Alone:
    """A cluster of its own."""
    return Alone(Broker(coordinators=4))


@pytest.fixture
def owner(world: Alone) -> Owner:
    """A driver that has taken the sink over."""
    return owning(world)

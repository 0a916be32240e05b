"""How large the modelled world is, and which rules hold in it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.models.sink_rules import ALL, Rule
from tests.models.sink_world import World

Step = tuple[str, World]


@dataclass(frozen=True)
class Bounds:
    """How large the world is, and which rules hold in it.

    Attributes:
        rules: those that are kept.
        drivers, batches, partitions, transactions: how many there are at most. Each batch has one row for each
            partition.
        silences: how often a driver or task waits for an answer in vain, or Spark fails.
        swallows: how often user code hides from Spark that a batch failed, so that Spark notes it.
        primed: the control topic has held a transaction before the start.
        data_held: so have the data's partitions.
        marker_beside: the MARKER may be sent as soon as the control topic is added, beside the data.
        predicted: the driver may add data partitions with the control topic, before the tasks ask for them.
        frozen: a stranger's transaction has held the log up since before the start.
        waits: readers that wait for what the sink's driver should have ended are a fault.
        shortcuts: drivers that can do nothing any more but notice it are taken there at once.
    """

    rules: frozenset[Rule] = field(default=ALL, repr=False)
    drivers: int = 3
    batches: int = 2
    partitions: int = 2
    transactions: int = 3
    silences: int = 1
    swallows: int = 0
    primed: bool = True
    data_held: bool = True
    marker_beside: bool = True
    predicted: bool = True
    frozen: bool = False
    waits: bool = True
    shortcuts: bool = True

    def may_be_silent(self, w: World) -> bool:
        """Tell whether a driver or task may still wait in vain."""
        return w.silences < self.silences

    def coordinator_of(self, d: int) -> int:
        """Give the coordinator that a driver uses; they could choose differently, had their number changed."""
        return 0 if Rule.ONE_COORDINATOR in self.rules else d % 2


def silent(w: World) -> World:
    """Count that a driver or task has waited in vain."""
    return w._replace(silences=w.silences + 1)

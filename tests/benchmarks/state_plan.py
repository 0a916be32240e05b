"""How much of the state's benchmark is measured, and on which file systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from statestore.hadoop.options import OPTIONS
from tests.benchmarks.plan import Tell

FILE, BK, HDFS = "file", "bk", "hdfs"
ENTRY_BYTES = int(OPTIONS["entry.bytes"].default)
WINDOW = int(OPTIONS["window"].default)
MANY, FEW = 200, 8
"""State partitions."""


@dataclass(frozen=True)
class StatePlan:
    """The plan of one run of the benchmark.

    Attributes:
        roots: of each file system by its name, the folder for what is written there.
        zookeeper: host:port of the bookies' ZooKeeper.
        tell: takes a line about what has been done.
        rounds, warm_ups: turns of each file system that count, and those before that don't.
        batches: of each turn that count, by the number of state partitions.
        batch_warm_ups: batches of each turn before those, besides the first one.
        rows, keys: of each micro-batch, and of the state when each key has come.
        file_blocks: the length of the large file, in entries of bk://.
    """

    roots: Mapping[str, str]
    zookeeper: str
    tell: Tell
    rounds: int = 5
    warm_ups: int = 1
    batches: Mapping[int, int] = field(default_factory=lambda: {FEW: 15, MANY: 4})
    batch_warm_ups: int = 1
    rows: int = 2_000
    keys: int = 20_000
    file_blocks: int = 256

    @property
    def file_bytes(self) -> int:
        """The length of the large file."""
        return self.file_blocks * ENTRY_BYTES

    def turn(self, number: int) -> Sequence[str]:
        """The file systems in the order of one turn: each is the first in its turn."""
        names = list(self.roots)
        first = number % len(names)
        return names[first:] + names[:first]

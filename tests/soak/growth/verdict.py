"""Whether figures grow: the slope through their readings, beside what is allowed for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

Flat = Mapping[str, float]

WARM_UP_SHARE = 1 / 6
"""Of the whole run: twenty minutes of two hours. Until then caches fill, pools come to their size, code is compiled."""


@dataclass(frozen=True)
class Limit:
    """What a figure may grow by in an hour.

    Attributes:
        an_hour: in the figure's own unit; or, with `share`, as a share of its median.
        share: see there.
    """

    an_hour: float
    share: bool = False

    def of(self, middle: float) -> float:
        """The limit in the figure's unit."""
        return self.an_hour * middle if self.share else self.an_hour


_PROCESS = {"threads": Limit(2), "fds": Limit(3), "sockets": Limit(2)}
LIMITS: Mapping[str, Limit] = {
    **{f"{one}.{name}": limit for one in ("driver", "jvm", "workers", "broker") for name, limit in _PROCESS.items()},
    "driver.rss_mib": Limit(5),
    "workers.processes": Limit(1),
    "workers.largest_rss_mib": Limit(5),
    "jvm.rss_mib": Limit(30),
    "jvm.heap_mib": Limit(5),
    "jvm.classes_mib": Limit(3),
    "broker.rss_mib": Limit(40),
    "broker.heap_mib": Limit(10),
    "broker.classes_mib": Limit(3),
    "broker.fds": Limit(10),  # ledgers, each a file, are made and deleted
    "zookeeper.nodes": Limit(20),
    "control_log.records": Limit(5),
    "control_log.cpu_ms": Limit(0.25, share=True),
}
"""What is judged. What is not named here is shown only: times on a machine that does other things as well."""


@dataclass(frozen=True)
class Verdict:
    """One figure over the run.

    Attributes:
        name: the figure's.
        middle: its median after the warm-up.
        an_hour: by how much it grows in an hour.
        limit: how much that may be; None where it is not judged.
    """

    name: str
    middle: float
    an_hour: float
    limit: float | None

    @property
    def grows(self) -> bool:
        """Whether it grows by more than it may."""
        return self.limit is not None and self.an_hour > self.limit


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The median of the slopes through each two points (Theil-Sen): no single reading moves it far; 0 for one point."""
    between = [(later - earlier) / (end - begin) for (begin, earlier), (end, later) in combinations(points, 2)]
    return median(between) if between else 0.0


def judge(readings: Sequence[Flat], minutes: float, limits: Mapping[str, Limit] = LIMITS) -> list[Verdict]:
    """Judge each figure by the readings after the warm-up.

    Args: the readings, each with "minute"; how long the run was to be; what is allowed.

    Raises:
        ValueError: fewer than three readings are left, or a figure that is to be judged is missing.
    """
    counted = [one for one in readings if one["minute"] >= minutes * WARM_UP_SHARE]
    if len(counted) < 3:
        raise ValueError(f"{len(counted)} readings after the warm-up; three are needed")
    names = [name for name in counted[0] if name != "minute"]
    if missing := limits.keys() - set(names):
        raise ValueError(f"no figure {', '.join(sorted(missing))}")
    return [_judged(name, counted, limits.get(name)) for name in names]


def _judged(name: str, counted: Sequence[Flat], limit: Limit | None) -> Verdict:
    points = [(one["minute"] / 60, one[name]) for one in counted]
    middle = median(value for _, value in points)
    return Verdict(name, middle, slope(points), None if limit is None else limit.of(middle))

"""How long the driver waits, and how it waits: pauses that double, on a clock that tests replace."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from eos.backoff import Backoff
from eos.errors import EosError, InvalidInput, LimitReached, NetworkError

T = TypeVar("T")

_FIRST_PAUSE_S: Final = 0.02
_LONGEST_PAUSE_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class OwnerSettings:
    """How long to wait, and how much of the log to retain.

    Attributes:
        ttl_s: seconds after which the coordinator aborts a batch's transaction. Default 600.
        patience_s: the longest wait for any one thing, such as the end of a transaction. Default 120.
        limit_s: the longest wait while the broker refuses by a limit that a policy sets. The room may belong to a
            client that is dead: a broker closes a silent connection after at most twice its keepAliveIntervalSeconds
            (30). Later only a change of the policy helps. Default 65.
        stop_patience_s: the same, once the query was stopped. Default 5.
        read_timeout_s: seconds without a record after which a reader asks whether there is more, and gives up if there
            is. Default 1.
        housekeeping_ttl_s: ttl of the empty transactions that free the log. Default 30.
        markers_retained: how many of the newest markers are retained. Default 1000.
        markers_retained_since: retain all markers from this batch on as well, or None.
    """

    ttl_s: float = 600.0
    patience_s: float = 120.0
    limit_s: float = 65.0
    stop_patience_s: float = 5.0
    read_timeout_s: float = 1.0
    housekeeping_ttl_s: float = 30.0
    markers_retained: int = 1000
    markers_retained_since: int | None = None


ONE_READ: Final = OwnerSettings(read_timeout_s=10.0)
"""Of a command that reads a log, and does not try again as a driver does: a dispatch rate lets records wait."""


class Retry:
    """Pauses between tries that double, until the time is up or the query was stopped.

    Args:
        limit_s: seconds to wait in all.
        stopped_s: the same, once the query was stopped. Default: `limit_s`.
        settings: how long a limit is waited for. Default: as an owner does.
        sleep, clock: seconds. Default: the machine's.
        stopped: says whether the query was stopped. Default: there is none that could be.
    """

    def __init__(
        self,
        limit_s: float,
        stopped_s: float | None = None,
        settings: OwnerSettings = OwnerSettings(),
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._backoff = Backoff(limit_s, _FIRST_PAUSE_S, _LONGEST_PAUSE_S, sleep=sleep, clock=clock)
        self._limit_s, self._policy_s = limit_s, settings.limit_s
        self._stopped_s = limit_s if stopped_s is None else stopped_s
        self._stopped = stopped
        self._limited_since: float | None = None

    def pause(self, problem: Exception | None = None) -> bool:
        """Sleep a little; False when there is nothing left to wait for.

        Args: what failed. An InvalidInput does not pass. A LimitReached counts as passing for `settings.limit_s`.
        """
        if isinstance(problem, InvalidInput):
            return False
        limit_s = min(self._limit_s, self._stopped_s) if self._stopped() else self._limit_s
        if isinstance(problem, LimitReached):
            self._limited_since = self._backoff.passed_s if self._limited_since is None else self._limited_since
            limit_s = min(limit_s, self._limited_since + self._policy_s)
        else:
            self._limited_since = None
        return self._backoff.pause(limit_s)


class GaveUp(EosError):
    """Patience is at an end. The message says what was waited for; `Owner` turns it into what is known then."""


@dataclass(slots=True)
class Waits:
    """How one driver waits.

    Attributes:
        settings: how long.
        sleep, clock: seconds; replaced by tests.
        stopped: says whether the query was stopped; waits end soon after.
    """

    settings: OwnerSettings
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    stopped: Callable[[], bool] = lambda: False

    def patience(self, stopped_s: float = 0.0) -> Retry:
        """Begin to wait; `stopped_s` is the longest once the query was stopped."""
        limit_s = self.settings.patience_s
        return Retry(
            limit_s, stopped_s, self.settings, sleep=self.sleep, clock=self.clock, stopped=lambda: self.stopped()
        )

    def insist(self, action: Callable[[], T], what: str) -> T:
        """Try until it works, or is refused for good. Raises GaveUp with `what` it was for."""
        patience = self.patience()
        while True:
            try:
                return action()
            except NetworkError as why:
                if not patience.pause(why):
                    raise GaveUp(what) from why

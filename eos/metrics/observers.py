"""Gives a sink's batches to observers, and keeps the observers' faults away from the sink.

The sink calls an observer when the outcome of a batch is known. No transaction is open then, and readers see the rows.
The observer runs in a thread of its own. The sink waits for this thread, so the observer's notes are there when the
batch returns.

- An error of the observer is logged, the first time with its traceback, and has no other effect.
- The sink waits for an observer for `PATIENCE_S` at most. A slower observer gets no further batch until it has
  returned. So an observer that hangs costs the query these seconds once, and one thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Final

from eos.config import name_of
from eos.metrics.batch import BatchObserver, FinishedBatch, LiveSink, Observers, SinkWatcher

log = logging.getLogger("eos.sink")

PATIENCE_S: Final = 5.0
"""Seconds that a batch waits for an observer, once it is committed."""


class ObserverNotifier:
    """The observers of one sink.

    Args:
        observers: one, several, or None.
        patience_s: how long a batch waits for each.
    """

    def __init__(self, observers: Observers | None, patience_s: float = PATIENCE_S) -> None:
        several = () if observers is None else (observers,) if callable(observers) else observers
        self._each = [_Apart(one, patience_s) for one in several]

    def watch(self, sink: LiveSink) -> None:
        """Show a sink that has just been made to those who want to ask it. Raises nothing."""
        for one in self._each:
            if isinstance(one.observer, SinkWatcher):
                one.call(partial(one.observer.watch, sink))

    def finished(self, batch: FinishedBatch) -> None:
        """Tell of a batch whose outcome is known. Raises nothing."""
        for one in self._each:
            one.call(partial(one.observer, batch))


class _Apart:
    """One observer, kept apart from the sink."""

    def __init__(self, observer: BatchObserver, patience_s: float) -> None:
        self.observer, self._name, self._patience_s = observer, name_of(observer), patience_s
        self._under_way: threading.Thread | None = None
        self._raised = False

    def call(self, what: Callable[[], object]) -> None:
        """Call the observer, unless an earlier call has not returned yet."""
        if self._under_way is not None and self._under_way.is_alive():
            return
        thread = threading.Thread(target=self._run, args=(what,), name="eos-observer", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the system has no thread left, or Python is ending
            log.warning("metrics=%s was not called (%s). No batch is affected.", self._name, error)
            return
        self._under_way = thread
        thread.join(self._patience_s)
        if thread.is_alive():
            log.warning(
                "metrics=%s has not returned for %g s. The batch is not affected, and no longer waits. The sink "
                "reports no other batch to this observer until it returns. Let the observer do slow work in a thread "
                "of its own.",
                self._name,
                self._patience_s,
            )

    def _run(self, what: Callable[[], object]) -> None:
        try:
            what()
        except BaseException as error:  # SystemExit too: it ends this thread, and nobody would know
            if self._raised:
                log.debug("metrics=%s raised again: %s", self._name, error)
                return
            self._raised = True
            log.warning(
                "metrics=%s raised %s. The batch is not affected. Further errors of this observer are logged at DEBUG.",
                self._name,
                type(error).__name__,
                exc_info=error,
            )

"""The one place that says how long the pauses between tries are."""

from __future__ import annotations

import pytest

from eos.backoff import Backoff, retried
from tests.modules import modules_with
from tests.unit.pulsar.net.clock import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("eos.backoff.time", clock)
    return clock


def test_pauses_double_up_to_the_longest_and_the_last_ends_with_the_time(clock: Clock) -> None:
    backoff, pauses = Backoff(10, 0.5, 3), []
    before = clock.now
    while backoff.pause():
        pauses.append(clock.now - before)
        before = clock.now
    assert pauses == [0.5, 1, 2, 3, 3, 0.5]


def test_another_limit_counts_for_one_pause(clock: Clock) -> None:
    backoff = Backoff(10, 1, 1)
    assert (backoff.pause(), backoff.pause(1), backoff.pause(1.5), backoff.pause()) == (True, False, True, True)
    assert backoff.passed_s == 2.5


def test_without_time_there_is_no_pause(clock: Clock) -> None:
    assert not Backoff(0, 1, 1).pause()
    assert clock.passed == 0


def failing(clock: Clock, times: int, error: Exception, tries: list[float]) -> int:
    @retried(lambda error: isinstance(error, OSError), 10, 1, 4)
    def called(more: int) -> int:
        tries.append(clock.passed)
        if len(tries) <= times:
            raise error
        return more

    return called(more=7)


def test_an_error_that_may_pass_is_tried_again_and_the_last_one_is_raised(clock: Clock) -> None:
    tries: list[float] = []
    assert failing(clock, 3, OSError(), tries) == 7
    assert tries == [0, 1, 3, 7]
    tries = []
    with pytest.raises(OSError, match="the last"):
        failing(clock, 100, OSError("the last"), tries)
    assert [at - 7 for at in tries] == [0, 1, 3, 7, 10]


@pytest.mark.parametrize(
    ("took", "tries"),
    [
        ([300], [0, 300]),
        ([300, 0, 0, 0, 0, 0], [0, 300, 301, 303, 307, 310, None]),  # as long as without the stop, and then raised
        ([300, 300], [0, 300, None]),  # slow, and not stopped
        ([9, 300], [0, 10, None]),
    ],
)
def test_a_process_that_was_stopped_in_its_first_try_waits_as_long_as_another(
    clock: Clock, took: list[int], tries: list[int | None]
) -> None:
    """A query ended if its driver was paused in a question, and the broker had cut the connection without an answer.

    Tried with four processes that were stopped for 68 s: all of them ended, and with this rule none.
    """
    seen: list[float | None] = []

    @retried(lambda error: isinstance(error, OSError), 10, 1, 4)
    def called() -> None:
        seen.append(clock.passed)
        if len(seen) <= len(took):
            clock.now += took[len(seen) - 1]
            raise OSError("no answer")

    try:
        called()
    except OSError:
        seen.append(None)
    assert seen == tries


def test_any_other_error_is_raised_at_once(clock: Clock) -> None:
    tries: list[float] = []
    with pytest.raises(ValueError, match="no"):
        failing(clock, 3, ValueError("no"), tries)
    assert tries == [0]


def test_no_other_module_doubles_its_pauses() -> None:
    assert modules_with(r"\bpause\w* = min\(2 \*|\btenacity\b", "eos", "statestore") == set()

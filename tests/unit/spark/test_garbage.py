"""Old garbage is collected now and then, as the clock says, and not where Python is to collect nothing."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from eos.spark.garbage import OldGarbage


class Knot:
    """An object that refers to itself, as those of py4j do."""

    def __init__(self) -> None:
        self.own = self


def old_knot() -> weakref.ref[Knot]:
    """Return a reference to garbage in the oldest generation."""
    knot = Knot()
    gc.collect()
    return weakref.ref(knot)


@pytest.fixture
def only_by_us() -> Iterator[None]:
    """Python collects nothing old by itself meanwhile."""
    before = gc.get_threshold()
    gc.set_threshold(before[0], before[1], 1_000_000)
    yield
    gc.set_threshold(*before)


def test_what_is_old_is_freed_when_its_time_has_come(only_by_us: None) -> None:
    now = [1_000.0]
    old = OldGarbage(300.0, lambda: now[0])
    first = old_knot()
    now[0] += 299
    old.collect()
    assert first() is not None, "it was not time"
    now[0] += 1
    old.collect()
    assert first() is None
    second = old_knot()
    now[0] += 299
    old.collect()
    assert second() is not None, "it counts from the collection before"


def test_a_program_that_has_switched_the_collector_off_is_left_alone(only_by_us: None) -> None:
    old = OldGarbage(0.0)
    knot = old_knot()
    gc.disable()
    try:
        old.collect()
        assert knot() is not None
    finally:
        gc.enable()
    old.collect()
    assert knot() is None

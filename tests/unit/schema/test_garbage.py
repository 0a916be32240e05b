"""When Python may collect garbage while values and entries are made."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

import pytest

from eos.schema.garbage import few_collections

USUAL = (700, 10, 10)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(("around", "fewest", "most"), [(few_collections, 0, 1), (nullcontext, 31, 100)])
def test_objects_that_are_kept_for_a_moment_are_looked_at_seldom(
    around: Callable[[], AbstractContextManager[None]], fewest: int, most: int
) -> None:
    gc.collect()
    gc.set_threshold(*USUAL)
    began = gc.get_stats()[0]["collections"]
    with around():
        kept = [[number] for number in range(50_000)]
    assert len(kept) == 50_000
    assert fewest <= gc.get_stats()[0]["collections"] - began <= most


def test_the_settings_are_as_before_after_an_error_too() -> None:
    gc.set_threshold(700, 11, 12)

    def fails() -> None:
        with few_collections():
            assert gc.get_threshold() == (100_000, 11, 12)
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        fails()
    assert gc.get_threshold() == (700, 11, 12)


@pytest.mark.parametrize("own", [0, 1_000_000])
def test_a_program_that_wants_fewer_or_none_keeps_its_setting(own: int) -> None:
    gc.set_threshold(own, 10, 10)
    with few_collections():
        assert gc.get_threshold() == (own, 10, 10)

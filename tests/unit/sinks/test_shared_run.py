"""What the sinks of a query tell it of failures, beside one another."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from py4j.protocol import Py4JError

from eos.errors import InvalidInput, NotCommitted
from eos.sinks import shared_run
from tests.unit.sinks.test_failed_batches import World
from tests.unit.sinks.test_failed_batches import world as world
from tests.waiting import until


def test_a_file_system_that_fails_while_a_batch_is_passed_is_asked_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a store that is slow for a moment: the query would go on, and nobody would learn that rows are missing."""
    looks, read = iter((Py4JError("timed out"), OSError("reset"))), world.query.read

    def fail_twice(name: str) -> str | None:
        if name.startswith("commits/") and (error := next(looks, None)):
            raise error
        return read(name)

    monkeypatch.setattr(shared_run, "_LOOK_S", 0.01)
    monkeypatch.setattr(world.query, "read", fail_twice)
    world.fails = {5: NotCommitted("aborted")}
    world.query.files["commits/5"] = "v1"
    run = world.run()
    world.take(run, 5)
    until(lambda: world.query.ends_after_batch, "the query goes on")
    assert next(looks, None) is None


def not_made(world: World) -> None:
    """Have the function fail to make a sink."""
    shared_run.failed_without_a_sink(world.query, "others", InvalidInput("no such option"))  # type: ignore[arg-type]


def not_written(world: World) -> None:
    """Have another sink of the function fail."""
    world.fails = {5: InvalidInput("no such option")}
    world.take(world.beside(name="others"), 5)


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
@pytest.mark.parametrize("lose", [not_made, not_written])
def test_a_sink_that_wrote_after_all_does_not_clear_what_another_one_has_lost(
    world: World, lose: Callable[[World], None], guarantee: str
) -> None:
    """The last batch of a run would end the query as if all were well."""
    run, world.query.in_hand = world.run(guarantee=guarantee, topic="t"), 5
    lose(world)
    world.fails = {5: NotCommitted("aborted")}
    assert world.take(run, 5) == "aborted"
    world.fails = {}
    assert world.take(run, 5) == ""
    assert world.query.ends_with == "Batch 5 failed: no such option"
    assert world.noted == [("others", 5, 5)]


def test_what_a_sink_has_lost_is_made_good_where_the_next_run_writes_the_batch(world: World) -> None:
    """Its function calls all of its sinks again."""
    world.query.in_hand = 5
    world.run()
    not_made(world)
    assert [world.take(world.run(), 5), world.noted] == ["", []]

"""Which savepoints a schedule makes and deletes; the tree is played."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from statestore.bk.address import BkAddress
from statestore.errors import CutFailed, InvalidInput, Unavailable
from statestore.hadoop.file_systems import Hadoop
from statestore.savepoints import bookkeeper, periodic
from statestore.savepoints.periodic import Periodic, Schedule, periodic_savepoints
from statestore.savepoints.savepoint import Savepoint
from statestore.savepoints.store import SavepointStore
from tests.waiting import until

SOURCE = "bk://zk:2181/q"
START = 1_800_000_000
QUERY = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"


class Tree(SavepointStore):
    """Savepoints of a tree, oldest first."""

    def __init__(self) -> None:
        super().__init__(cast(Hadoop, None), BkAddress.parse(SOURCE))
        object.__setattr__(self, "there", [])
        object.__setattr__(self, "undeletable", "")

    there: list[Savepoint]
    undeletable: str

    def all(self) -> list[Savepoint]:
        return list(self.there)

    def delete(self, name: str) -> None:
        if name == self.undeletable:
            raise Unavailable("ZooKeeper is away")
        self.there[:] = [one for one in self.there if one.name != name]

    def tell_sink(self, checkpoint: BkAddress, query: str) -> None:
        pass

    @property
    def names(self) -> list[str]:
        return [one.name for one in self.there]


class World:
    """A checkpoint that goes on, and its tree. Attributes: batch: its newest; fails: what the next `create` raises."""

    def __init__(self) -> None:
        self.tree = Tree()
        self.batch, self.now, self.query = 0, float(START), QUERY
        self.fails: Exception | None = None

    def create(
        self, name: str, source: str, operators: int | None = None, options: Mapping[str, object] | None = None
    ) -> Savepoint:
        if name in self.tree.names:
            raise InvalidInput(f"There is a savepoint {name} already")
        if self.fails is not None:
            if not isinstance(self.fails, InvalidInput):
                self.tree.there.append(Savepoint(name, "abandoned", SOURCE, 0))
            raise self.fails
        self.tree.there.append(Savepoint(name, "ready", source, 0, self.batch, self.query))
        return self.tree.there[-1]

    def round(self, keep: int = 2) -> periodic.Round:
        self.now += 60
        self.batch += 1
        return Schedule(SOURCE, keep, "p", now=lambda: self.now).run_once()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    monkeypatch.setattr(SavepointStore, "of", lambda *_, **__: world.tree)
    monkeypatch.setattr(bookkeeper, "create", world.create)
    monkeypatch.setattr(bookkeeper, "delete", lambda name, *_, **__: world.tree.delete(name))
    monkeypatch.setattr(periodic, "read_query_id", lambda _: world.query)
    return world


def test_the_newest_are_kept(world: World) -> None:
    rounds = [world.round() for _ in range(4)]
    assert [one.made.batch_id for one in rounds if one.made] == [1, 2, 3, 4]
    assert [one.batch_id for one in world.tree.there] == [3, 4]
    assert [len(one.deleted) for one in rounds] == [0, 0, 1, 1]
    assert world.tree.names[-1] == "p-1b4e28ba-20270115T080400Z"


def test_two_queries_of_a_tree_in_one_second_have_each_a_name(world: World) -> None:
    world.round()
    world.now -= 60
    world.query = "2c5f39cb-2fa1-11d2-883f-0016d3cca427"
    world.round()
    assert world.tree.names == ["p-1b4e28ba-20270115T080100Z", "p-2c5f39cb-20270115T080100Z"]


def test_two_processes_of_one_query_in_one_second_have_each_a_name(world: World) -> None:
    for _ in range(3):
        world.round(keep=9)
        world.now -= 60
    assert world.tree.names == [f"p-1b4e28ba-20270115T08010{second}Z" for second in range(3)]


def test_a_failure_that_is_not_about_the_name_is_not_tried_again(world: World) -> None:
    world.fails = InvalidInput("no batch is committed")
    with pytest.raises(InvalidInput, match="no batch is committed"):
        world.round()


def test_those_with_the_id_of_another_query_or_none_are_left_alone(world: World) -> None:
    old = Savepoint("p-1b4e28ba-20200101T000000Z", "ready", SOURCE, 0, 3, QUERY)
    names = ["p-deadbeef-20200101T000000Z", "p-x-y-20200101T000000Z", "p-20200101T000000Z"]
    world.tree.there += [old, *(replace(old, name=name) for name in names)]
    assert world.round(keep=1).deleted == (old.name,)
    assert world.tree.names[:3] == names


def test_nothing_is_deleted_when_none_could_be_made(world: World) -> None:
    world.round(keep=1)
    only = world.tree.names
    world.fails = CutFailed("files are missing")
    for _ in range(3):
        with pytest.raises(CutFailed):
            world.round(keep=1)
    assert [one.name for one in world.tree.there if one.state == "ready"] == only
    world.fails = None
    done = world.round(keep=1)
    assert len(done.deleted) == 4, "the old one, and what the failures left"
    assert world.tree.names == [done.made.name if done.made else ""]


def test_savepoints_of_others_are_left_alone(world: World) -> None:
    old = Savepoint("p-20200101T000000Z", "ready", "bk://zk:2181/other", 0, 3, "query")
    world.tree.there += [old, replace(old, name="by-hand", source=SOURCE), replace(old, name="q-20200101T000000Z")]
    world.round(keep=1)
    world.round(keep=1)
    assert world.tree.names[:3] == ["p-20200101T000000Z", "by-hand", "q-20200101T000000Z"]
    assert len(world.tree.there) == 4


def test_those_made_by_another_address_of_the_tree_are_counted(world: World) -> None:
    for batch in (3, 4):
        name = f"p-1b4e28ba-2020010{batch}T000000Z"
        world.tree.there.append(Savepoint(name, "ready", "bk://prod/q", 0, batch, QUERY))
    world.tree.there.append(replace(world.tree.there[0], name="p-1b4e28ba-20200109T000000Z", source="bk://prod/q/q"))
    assert world.round(keep=1).deleted == ("p-1b4e28ba-20200103T000000Z", "p-1b4e28ba-20200104T000000Z")


def test_a_batch_is_held_once(world: World) -> None:
    first = world.round(keep=1)
    world.batch -= 1
    assert world.round(keep=1).made is None
    assert first.made is not None
    assert world.tree.names == [first.made.name]


def test_a_batch_of_a_restored_savepoint_is_held_once_though_later_ones_were_held_before(world: World) -> None:
    """A savepoint was restored to the address, and the query on it commits nothing."""
    before = [world.round(keep=5).made for _ in range(4)]
    world.batch = 1
    restored = world.round(keep=5)
    assert restored.made is not None
    assert restored.made.batch_id == 2
    for _ in range(3):
        world.batch = 1
        assert world.round(keep=5).made is None
    assert world.tree.there == [*before, restored.made]


def test_a_query_that_begins_at_the_same_address_leaves_the_newest_of_the_one_before(world: World) -> None:
    """As where the checkpoint was lost, and the job has started on an empty folder."""
    for _ in range(3):
        world.round(keep=2)
    before = world.tree.names
    world.query, world.batch = "2c5f39cb-2fa1-11d2-883f-0016d3cca427", -1
    rounds = [world.round(keep=2) for _ in range(5)]
    assert [one.made.batch_id for one in rounds if one.made] == [0, 1, 2, 3, 4], "also the batches that it had, too"
    assert world.tree.names[0] == before[-1]
    assert [one.batch_id for one in world.tree.there] == [3, 3, 4]


def test_one_that_cannot_be_deleted_is_told_and_the_rest_is_done(world: World) -> None:
    first = world.round(keep=1)
    assert first.made is not None
    object.__setattr__(world.tree, "undeletable", first.made.name)
    done = world.round(keep=1)
    assert done.made is not None
    assert done.failures == (f"savepoint {first.made.name} could not be deleted: ZooKeeper is away",)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        *(({"keep": keep}, "keep is .*. Give a whole number, 1 or more") for keep in (0, 5.0, "3", None, True)),
        *(({"operators": number}, "operators is .*. Give a whole number, 0 or more") for number in (-1, 1.0, "1")),
        *(({"prefix": prefix}, "prefix is .*. Give a text") for prefix in (None, 5)),
        ({"prefix": "no name"}, "cannot name a savepoint"),
    ],
)
def test_wrong_schedules_are_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        Schedule(SOURCE, **fields)


@pytest.mark.parametrize("minutes", [0, -1, float("nan"), float("inf"), 525_601, "5", None])
def test_a_time_that_is_none_is_refused(minutes: Any) -> None:
    with pytest.raises(InvalidInput, match=r"minutes is .*. Give a number above 0 and up to 525,600, a year"):
        periodic_savepoints(cast(StreamingQuery, None), minutes=minutes)


def test_the_thread_in_the_driver_survives_failures_and_ends_with_the_query(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    ended = False
    world.fails = RuntimeError("anything")
    periodic_ = Periodic(Schedule(SOURCE, 2, "p", now=lambda: world.now), 0.01, lambda: ended)
    until(lambda: "no savepoint was made of bk://zk:2181/q: anything" in "\n".join(caplog.messages))
    world.fails = None
    until(lambda: any(one.state == "ready" for one in world.tree.all()))
    ended = True
    until(lambda: not periodic_._thread.is_alive())
    periodic_.stop()

"""Whoever makes, deletes or restores a savepoint dies before and after each multi."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from statestore.bk.names import FileRecord
from statestore.savepoints import deleting, restoring, store
from tests.unit.statestore.bk.fake_zookeeper import Killed
from tests.unit.statestore.savepoints.savepoint_world import FILES, World


def multis(work: Callable[[World], object], prepare: Callable[[World], object]) -> int:
    world = World()
    prepare(world)
    world.zookeeper.writes = 0
    work(world)
    return world.zookeeper.writes


def moments(work: Callable[[World], object], prepare: Callable[[World], object]) -> list[tuple[int, str]]:
    return [(number, moment) for number in range(multis(work, prepare)) for moment in ("before", "after")]


def die(world: World, moment: tuple[int, str], work: Callable[[World], object]) -> None:
    world.zookeeper.writes = 0
    world.zookeeper.dies = moment
    with pytest.raises(Killed):
        work(world)
    world.zookeeper.end_session()
    world.sweep()
    world.check()


def nothing(_: World) -> None:
    pass


def small_multis(monkeypatch: pytest.MonkeyPatch) -> None:
    """One group of operations in each multi, so that there is a death between any two."""
    monkeypatch.setattr("statestore.bk.zookeeper.MULTI_BYTES", 1)


MAKING = [(number, moment) for number in range(5) for moment in ("before", "after")]


@pytest.mark.parametrize("moment", MAKING)
def test_a_maker_may_die_at_any_moment(moment: tuple[int, str], monkeypatch: pytest.MonkeyPatch) -> None:
    small_multis(monkeypatch)
    assert moments(World.create, nothing) == MAKING
    world = World()
    die(world, moment, World.create)
    states = [savepoint.state for savepoint in store.all_savepoints(world.names)]
    assert states == ([] if moment == (0, "before") else ["ready"] if moment == (4, "after") else ["abandoned"])
    if states == ["abandoned"]:
        assert world.create().state == "ready", "made again under the same name"
    if states:
        deleting.delete(world.names, "one")
    assert world.held() == []
    assert world.zookeeper.children("/eos-bk/sp") == []


DELETING = [(number, moment) for number in range(5) for moment in ("before", "after")]


@pytest.mark.parametrize("moment", DELETING)
def test_a_deleter_may_die_at_any_moment(moment: tuple[int, str], monkeypatch: pytest.MonkeyPatch) -> None:
    small_multis(monkeypatch)

    def delete(world: World) -> None:
        deleting.delete(world.names, "one")

    assert moments(delete, World.create) == DELETING
    world = World()
    world.create()
    world.delete_query()
    die(world, moment, delete)
    states = [savepoint.state for savepoint in store.all_savepoints(world.names)]
    assert states == (["ready"] if moment == (0, "before") else [] if moment == (4, "after") else ["deleting"])
    if states:
        delete(world)
    world.sweep()
    assert list(world.names.ledgers()) == []
    assert world.zookeeper.children("/eos-bk/sp") == []


RESTORING = [(number, moment) for number in range(12) for moment in ("before", "after")]


@pytest.mark.parametrize("moment", RESTORING)
def test_a_restorer_may_die_at_any_moment(moment: tuple[int, str], monkeypatch: pytest.MonkeyPatch) -> None:
    small_multis(monkeypatch)

    def restore(world: World) -> None:
        restoring.restore(world.names, "one", "/deep/new")

    assert moments(restore, World.create) == RESTORING
    world = World()
    world.create()
    world.delete_query()
    die(world, moment, restore)
    metadata = world.names.find("/deep/new/metadata")
    files = dict(world.names.walk("/deep/new")) if world.names.find("/deep/new") else {}
    whole = isinstance(metadata, FileRecord) and metadata.length > 0
    assert whole == (moment == (11, "after")), "Spark must refuse what is half restored"
    assert not whole or len(files) == len(FILES)
    if "/deep/new/commits/0" in files:
        assert len(files) == len(FILES), "a commit comes after all that it stands for"
    if files and not whole:
        world.names.remove_tree("/deep/new")
    if not whole:
        restore(world)
    deleting.delete(world.names, "one")
    world.sweep()
    world.check()
    assert len(dict(world.names.walk("/deep/new"))) == len(FILES)

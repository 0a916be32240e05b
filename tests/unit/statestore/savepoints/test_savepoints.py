"""Savepoints on a ZooKeeper in memory: each step, and what is refused."""

from __future__ import annotations

from typing import cast

import pytest

from statestore.bk.address import Address
from statestore.bk.names import FileRecord
from statestore.bk.zookeeper import Operation
from statestore.errors import CutFailed, Damaged, InvalidInput, NotFound, Unavailable
from statestore.hadoop.file_systems import Hadoop, Status
from statestore.savepoints import building, creating, deleting, keeping, manifest, restoring, store
from statestore.savepoints.manifest import Cut
from tests.unit.statestore.bk.fake_zookeeper import Killed
from tests.unit.statestore.savepoints.savepoint_world import CUT, FILES, LEDGERS, SOURCE, World, record


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(creating, "_PAUSE_S", 0)


@pytest.fixture
def world() -> World:
    return World()


def test_a_savepoint_says_what_it_is_and_holds_its_ledgers(world: World) -> None:
    savepoint = world.create()
    assert savepoint.state == "ready"
    assert (savepoint.batch, savepoint.query, savepoint.source) == (0, "a-query", SOURCE)
    assert (savepoint.files, savepoint.size, savepoint.ledgers) == (5, 20, 2)
    assert store.all_savepoints(world.names) == [savepoint]
    assert store.read(world.names, "one")[:2] == (savepoint, FILES)
    assert world.zookeeper.children("/eos-bk/sp/one") == ["files-00000"], "nobody can add to it any more"
    world.delete_query()
    world.sweep()
    assert world.held() == [1, 2]
    world.check()


def test_a_deleted_savepoint_lets_its_ledgers_go(world: World) -> None:
    world.create()
    world.create("other")
    deleting.delete(world.names, "one")
    assert (world.held(), world.held("other")) == ([], [1, 2])
    assert [savepoint.name for savepoint in store.all_savepoints(world.names)] == ["other"]
    deleting.delete(world.names, "other")
    world.delete_query()
    world.sweep()
    assert list(world.names.ledgers()) == []
    assert world.zookeeper.children("/eos-bk/sp") == []
    with pytest.raises(NotFound, match="no savepoint one"):
        deleting.delete(world.names, "one")


def test_a_checkpoint_of_empty_files_is_held_too(world: World) -> None:
    world.create(take_cut=lambda: Cut(0, "", {"offsets/0": record("w-5", -1, 0)}))
    restoring.restore(world.names, "one", "/new")
    found = world.names.find("/new/offsets/0")
    assert isinstance(found, FileRecord)
    assert found.length == 0
    assert world.held() == []


def test_a_name_is_taken_once(world: World) -> None:
    world.create()
    with pytest.raises(InvalidInput, match="already, ready: take another name"):
        world.create()
    building.begin(world.names, "two", SOURCE, 5)
    with pytest.raises(InvalidInput, match="already, building"):
        world.create("two")
    with pytest.raises(InvalidInput, match="take another name"):
        building.begin(world.names, "two", SOURCE, 5)


@pytest.mark.parametrize("name", ["", "a/b", "-a", "a.", "a b", "x" * 101, "ä"])
def test_names_that_are_none_are_refused(world: World, name: str) -> None:
    with pytest.raises(InvalidInput, match="cannot name a savepoint"):
        world.create(name)


def test_a_ledger_freed_meanwhile_asks_for_a_newer_cut(world: World) -> None:
    world.make_ledger(3)
    cuts = [Cut(0, "", {**FILES, "old": record("w-9", 8)}), Cut(1, "", {"new": record("w-10", 3)})]
    savepoint = world.create(take_cut=lambda: cuts.pop(0))
    assert (savepoint.batch, savepoint.files) == (1, 1)
    assert world.held() == [3], "what the first cut held was let go"


def test_a_checkpoint_that_always_changes_is_given_up(world: World) -> None:
    reasons = iter(range(100))

    def torn() -> Cut:
        raise CutFailed(f"torn at {next(reasons)}")

    with pytest.raises(CutFailed, match=r"changed 10 times.*minBatchesToRetain"):
        world.create(take_cut=torn)
    assert store.all_savepoints(world.names) == []


def test_a_file_that_stays_missing_is_named(world: World) -> None:
    def broken() -> Cut:
        raise CutFailed("Batch 3 can't be restored: state/0/0/4.delta is not there")

    with pytest.raises(CutFailed, match=r"No savepoint could be taken of bk://zk:2181/q: .*state/0/0/4.delta"):
        world.create(take_cut=broken)
    assert store.all_savepoints(world.names) == []


def test_a_wrong_question_leaves_nothing(world: World) -> None:
    def wrong() -> Cut:
        raise InvalidInput("there is no batch 7")

    with pytest.raises(InvalidInput, match="no batch 7"):
        world.create(take_cut=wrong)
    assert store.all_savepoints(world.names) == []


def test_a_maker_whose_session_ended_is_stopped(world: World) -> None:
    build = building.begin(world.names, "one", SOURCE, 5)
    world.zookeeper.end_session()
    assert [savepoint.state for savepoint in store.all_savepoints(world.names)] == ["abandoned"]
    with pytest.raises(Unavailable, match="session that began it has ended"):
        build.hold(LEDGERS)
    with pytest.raises(Unavailable, match="session that began it has ended"):
        build.finish(CUT)
    assert world.held() == []


def test_a_maker_that_slept_can_not_touch_a_later_savepoint_of_that_name(world: World) -> None:
    sleeper = building.begin(world.names, "one", SOURCE, 5)
    deleting.delete(world.names, "one")
    world.create(take_cut=lambda: Cut(0, "", {"offsets/0": FILES["offsets/0"]}))
    with pytest.raises(Unavailable):
        sleeper.hold([2])
    with pytest.raises(Unavailable):
        sleeper.finish(CUT)
    assert world.held() == [1]


def test_a_deleter_that_slept_can_not_touch_a_later_savepoint_of_that_name(world: World) -> None:
    world.create()

    def another_is_quicker(number: int) -> None:
        if number == start + 1:  # the first deleter has marked it, and sleeps before it releases a ledger
            world.zookeeper.before_write = lambda _: None
            deleting.delete(world.names, "one")
            world.create()

    start = world.zookeeper.writes
    world.zookeeper.before_write = another_is_quicker
    deleting.delete(world.names, "one")
    assert [savepoint.state for savepoint in store.all_savepoints(world.names)] == ["ready"]
    assert world.held() == [1, 2]


def test_a_savepoint_that_is_being_deleted_takes_no_references(world: World) -> None:
    build = building.begin(world.names, "one", SOURCE, 5)
    build.hold([1])
    world.zookeeper.dies = (world.zookeeper.writes, "after")
    with pytest.raises(Killed):
        deleting.delete(world.names, "one")
    world.zookeeper.dead, world.zookeeper.dies = False, None  # the deleter died, the maker lives
    with pytest.raises(Unavailable, match="somebody deletes it"):
        build.hold([2])
    assert [savepoint.state for savepoint in store.all_savepoints(world.names)] == ["deleting"]
    with pytest.raises(InvalidInput, match="not ready but deleting"):
        restoring.restore(world.names, "one", "/new")


def test_a_long_list_of_files_lies_in_several_chunks(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "CHUNK", 100)
    files = {f"state/0/{n}/ü 1.delta": record(f"{n:016x}-{n * n}", 1, n) for n in range(200)}
    savepoint = world.create(take_cut=lambda: Cut(7, "q", files))
    assert savepoint.chunks > 10
    assert store.read(world.names, "one")[1] == files
    path = "/eos-bk/sp/one/files-00003"
    world.zookeeper.tree[path] = (b"x" + world.zookeeper.tree[path][0][1:], 0)
    with pytest.raises(Damaged, match="savepoint one cannot be unpacked"):
        store.read(world.names, "one")


def test_a_list_of_files_of_another_savepoint_is_refused(world: World) -> None:
    world.create()
    world.create("two", take_cut=lambda: Cut(0, "", {"metadata": FILES["metadata"]}))
    world.zookeeper.tree["/eos-bk/sp/one/files-00000"] = world.zookeeper.tree["/eos-bk/sp/two/files-00000"]
    with pytest.raises(Damaged, match="savepoint one does not have its CRC32C"):
        store.read(world.names, "one")


def test_a_missing_savepoint_is_told_with_those_that_are_there(world: World) -> None:
    with pytest.raises(NotFound, match="There are: none"):
        restoring.restore(world.names, "one", "/new")
    world.create("two")
    with pytest.raises(NotFound, match="There are: two"):
        restoring.restore(world.names, "one", "/new")


def test_a_restored_checkpoint_has_the_same_bytes_under_new_references(world: World) -> None:
    world.create()
    restoring.restore(world.names, "one", "/deep/down/new")
    files = {path.removeprefix("/deep/down/new/"): file for path, file in world.names.walk("/deep/down/new")}
    assert files.keys() == FILES.keys()
    for path, file in files.items():
        old = FILES[path]
        assert (file.ledger, file.first, file.last, file.length, file.crc32c) == (
            *(old.ledger, old.first, old.last, old.length, old.crc32c),
        )
        assert file.write != old.write
        assert file.generation == 0
    deleting.delete(world.names, "one")
    world.delete_query()
    world.sweep()
    world.check()
    assert [ledger.id for ledger in world.names.ledgers()] == [1, 2]
    world.names.remove_tree("/deep")
    world.sweep()
    assert list(world.names.ledgers()) == []
    assert world.zookeeper.children("/eos-bk/L/empty") == []


def test_what_names_its_own_place_is_written_anew_before_the_checkpoint_is_whole(world: World) -> None:
    operator = record("w-6", 1, 70)
    world.create(take_cut=lambda: Cut(0, "", {**FILES, "state/0/_metadata/v2/0": operator}))
    asked = []

    def rewrite(files: dict[str, int]) -> None:
        asked.append(files)
        guard = world.names.find("/new/metadata")
        assert isinstance(guard, FileRecord)
        assert guard.length == 0

    restoring.restore(world.names, "one", "/new", rewrite)
    assert asked == [{"/new/state/0/_metadata/v2/0": 70}]
    restoring.restore(world.names, "one", "/newer")
    assert len(dict(world.names.walk("/newer"))) == len(FILES) + 1


def test_nothing_is_restored_over_something(world: World) -> None:
    world.create()
    with pytest.raises(InvalidInput, match="There is something at /q"):
        restoring.restore(world.names, "one", "/q")
    with pytest.raises(InvalidInput, match="/q/metadata is a file"):
        restoring.restore(world.names, "one", "/q/metadata/x/y")
    assert len(dict(world.names.walk("/q"))) == len(FILES)


def test_a_savepoint_deleted_during_a_restore_leaves_nothing_half_restored(world: World) -> None:
    world.create()

    def delete(number: int) -> None:
        if number == start + 2:  # the target is made and guarded
            world.zookeeper.before_write = lambda _: None
            deleting.delete(world.names, "one")

    start = world.zookeeper.writes
    world.zookeeper.before_write = delete
    with pytest.raises(Unavailable, match="deleted while it was being restored"):
        restoring.restore(world.names, "one", "/new")
    assert world.names.find("/new") is None


def test_a_ledger_lost_behind_our_back_is_told(world: World) -> None:
    world.create()
    world.delete_query()
    world.zookeeper.write(
        [Operation("delete", "/eos-bk/L/2/s-one"), Operation("delete", "/eos-bk/L/2")],
        world.zookeeper.gone("/eos-bk/L/2"),
    )
    with pytest.raises(Damaged, match="A ledger that savepoint one holds is gone"):
        restoring.restore(world.names, "one", "/new")
    assert world.names.find("/new") is None


def test_the_query_is_named_by_the_checkpoint() -> None:
    assert creating.query_of(b'{"id":"5f"}') == "5f"
    with pytest.raises(CutFailed, match="does not name a query"):
        creating.query_of(b"")


class Files:
    """What is written to a checkpoint beside the names."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def status(self, uri: str) -> Status:
        return Status(uri, uri, uri, 5, 0, False)

    def replace(self, uri: str, data: bytes) -> None:
        self.texts[uri] = data.decode()

    def delete(self, uri: str) -> None:
        self.texts.pop(uri, None)


def test_the_sink_is_told_which_markers_the_oldest_savepoint_needs() -> None:
    world, files = World(), Files()
    checkpoint = Address.parse(SOURCE)

    def tell() -> dict[str, str]:
        keeping.tell_sink(world.names, checkpoint, "a-query", lambda: cast(Hadoop, files))
        return files.texts

    world.create("one")
    assert tell() == {}, "no sink of this project has used it"
    registration = record("w-9", 1)
    world.zookeeper.write(
        world.names.create_file("/q/eos-sink.json", registration), lambda: world.names.has_reference(registration)
    )
    kept = f"{SOURCE}/eos-keep.json"
    assert tell() == {kept: '{"markers_since": 1}'}
    world.create("two", lambda: Cut(5, "a-query", FILES))
    world.create("other", lambda: Cut(0, "another-query", FILES))
    assert tell() == {kept: '{"markers_since": 1}'}
    deleting.delete(world.names, "one")
    assert tell() == {kept: '{"markers_since": 6}'}
    deleting.delete(world.names, "two")
    assert tell() == {}

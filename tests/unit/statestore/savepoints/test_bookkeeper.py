"""What Python does about savepoints on BookKeeper: take a newer cut, and tell the sink; the jar's part is played."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from statestore.bk.address import BkAddress
from statestore.checkpoint.cut import Cut, cut_of
from statestore.errors import CutFailed, InvalidInput, NotFound, StateStoreError, Unavailable
from statestore.hadoop.file_systems import Hadoop, Status
from statestore.savepoints import bookkeeper
from statestore.savepoints.periodic import Schedule
from statestore.savepoints.savepoint import Savepoint, check_name
from statestore.savepoints.store import SavepointStore

SOURCE = "bk://zk:2181/q"


class Files:
    """What is at addresses. Attributes: texts: by address; deleted: addresses of files and folders."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.deleted: list[str] = []

    def status(self, uri: str) -> Status | None:
        return Status(uri, uri, uri, 5, 0, False) if uri in self.texts else None

    def replace(self, uri: str, data: bytes) -> None:
        self.texts[uri] = data.decode()

    def delete(self, uri: str, recursive: bool = False) -> None:
        self.deleted.append(uri)
        self.texts.pop(uri, None)


class Played(SavepointStore):
    """A tree whose jar answers `create` with what is given, one after the other."""

    def __init__(self, *answers: Exception | None) -> None:
        super().__init__(cast(Hadoop, Files()), BkAddress.parse(SOURCE))
        object.__setattr__(self, "answers", iter(answers))
        object.__setattr__(self, "made", [])

    answers: Iterator[Exception | None]
    made: list[Savepoint]

    def create(self, name: str, cut: Cut) -> Savepoint:
        answer = next(self.answers)
        if answer is not None:
            raise answer
        self.made.append(Savepoint(name, "ready", SOURCE, len(self.made), cut.batch_id, cut.query))
        return self.made[-1]

    def all(self) -> list[Savepoint]:
        return self.made

    def delete(self, name: str) -> None:
        check_name(name)
        if name not in (one.name for one in self.made):
            raise NotFound(f"There is no savepoint {name}")
        self.made[:] = [one for one in self.made if one.name != name]


@pytest.fixture(autouse=True)
def cuts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The batches of the cuts that are taken, each newer than the one before."""
    found: list[int] = []

    def newer(*_: Any) -> Cut:
        found.append(len(found))
        return Cut(found[-1], "a-query", {}, frozenset(), {})

    monkeypatch.setattr(bookkeeper, "_PAUSE_S", 0)
    monkeypatch.setattr(bookkeeper, "cut_of", newer)
    return found


def test_when_a_ledger_is_freed_meanwhile_a_newer_cut_is_taken() -> None:
    store = Played(CutFailed("Ledger 7 was freed"), CutFailed("Ledger 8 was freed"), None)
    assert bookkeeper.make(store, "one", None).batch_id == 2


def test_a_checkpoint_that_always_changes_is_given_up(cuts: list[int]) -> None:
    store = Played(*(CutFailed(f"torn at {number}") for number in range(100)))
    with pytest.raises(CutFailed, match=r"changed 10 times.*minBatchesToRetain"):
        bookkeeper.make(store, "one", None)
    assert len(cuts) == 10


def test_a_file_that_stays_missing_is_named() -> None:
    missing = "Batch 3 can't be restored: state/0/0/4.delta is not there"
    with pytest.raises(CutFailed, match=r"No savepoint could be taken of bk://zk:2181/q: .*state/0/0/4.delta"):
        bookkeeper.make(Played(CutFailed(missing), CutFailed(missing)), "one", None)


@pytest.mark.parametrize("error", [InvalidInput("taken"), Unavailable("lost")])
def test_what_a_newer_cut_does_not_help_is_raised(error: Exception, cuts: list[int]) -> None:
    with pytest.raises(type(error)):
        bookkeeper.make(Played(error, None), "one", None)
    assert len(cuts) == 1


def test_the_sink_is_told_which_markers_the_oldest_savepoint_needs() -> None:
    store = Played()
    files = cast(Files, store.hadoop).texts
    checkpoint, kept = BkAddress.parse(SOURCE), f"{SOURCE}/eos-keep.json"

    def tell(*savepoints: Savepoint) -> str | None:
        store.made[:] = savepoints
        store.tell_sink(checkpoint, "a-query")
        return files.get(kept)

    one, two = (Savepoint(str(batch), "ready", SOURCE, 0, batch, "a-query") for batch in (0, 5))
    other = Savepoint("other", "ready", SOURCE, 0, 0, "another-query")
    unready = Savepoint("unready", "deleting", SOURCE, 0, 0, "a-query")
    files[f"{SOURCE}/metadata"] = "{}"
    assert tell(one) is None, "no sink of this project has used it"
    files[f"{SOURCE}/eos-sink.json"] = "{}"
    assert tell(one) == '{"markers_since": 1}'
    assert tell(one, two, other) == '{"markers_since": 1}'
    assert tell(two, other, unready) == '{"markers_since": 6}'
    assert tell(other) is None


class Mute(Played):
    """A tree in which the sink can't be told."""

    why: StateStoreError = Unavailable("ZooKeeper gave no answer for too long")

    def _tell_sink(self, checkpoint: BkAddress, query: str) -> None:
        raise self.why

    @contextmanager
    def restore(self, name: str, target: str) -> Iterator[tuple[Savepoint, dict[str, int]]]:
        yield self.made[0], {}


def test_what_is_done_does_not_fail_since_the_sink_could_not_be_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = Mute(None)
    monkeypatch.setattr(SavepointStore, "of", lambda *_, **__: store)
    made = bookkeeper.create("one", SOURCE)
    assert (made.state, bookkeeper.restore_to(store, "one")) == ("ready", made)
    bookkeeper.delete("one", SOURCE)
    assert store.made == []
    store.made.append(replace(made, name="every-a-20200101T000000Z"))
    assert Schedule(SOURCE)._prune(store, "a-query") == ((), ())
    assert [message.count("gave no answer for too long") for message in caplog.messages] == [1] * 4


@pytest.mark.parametrize(
    ("why", "says"),
    [
        (Unavailable("no answer"), "The next savepoint of the query tells it"),
        (InvalidInput("no right"), "An older savepoint can then no longer be brought in step with the output"),
    ],
)
def test_it_promises_that_the_sink_is_told_later_only_where_the_cause_may_pass(
    why: StateStoreError, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = Mute(None)
    store.why = why
    store.tell_sink(BkAddress.parse(SOURCE), "a-query")
    (message,) = caplog.messages
    assert says in message
    assert ("next savepoint" in message) == isinstance(why, Unavailable)


def test_an_ensemble_has_the_name_that_the_session_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `spark-defaults.conf` sets it: a call needs no option of its own."""
    known = {"fs.bk.prod.metadata-service-uri": "zk://zk1:2181;zk2:2181/ledgers"}

    def of(spark: object, options: dict[str, str] | None, **_: object) -> SimpleNamespace:
        return SimpleNamespace(options=(known if spark == "session" else {}) | (options or {}))

    monkeypatch.setattr(Hadoop, "of", of)
    session: Any = "session"
    for store in (SavepointStore.of("bk://prod/q", None, session), SavepointStore.of("bk://prod/q", known)):
        assert store.address.servers == "zk1:2181,zk2:2181"
    with pytest.raises(InvalidInput, match=r"fs.bk.prod.metadata-service-uri is not set"):
        SavepointStore.of("bk://prod/q", None)


@pytest.mark.parametrize(
    ("source", "of"), [("bk://prod/q", "/q"), ("bk://zk:2181/a/b", "/a/b"), ("bk://zk:2181/", "/")]
)
def test_one_made_by_another_address_of_the_tree_is_deleted(
    source: str, of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, told = Played(), []
    store.made.append(Savepoint("one", "ready", source, 0, 7, "a-query"))
    monkeypatch.setattr(SavepointStore, "of", lambda *_: store)
    monkeypatch.setattr(Played, "tell_sink", lambda _, checkpoint, query: told.append((checkpoint.uri, query)))
    bookkeeper.delete("one", "bk://zk:2181/")
    assert (store.made, told) == ([], [(f"bk://zk:2181{of}", "a-query")])


@pytest.mark.parametrize("number", ["1", 1.0, -1, True])
def test_a_number_of_operators_that_is_none_is_refused(number: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bookkeeper, "cut_of", cut_of)
    with pytest.raises(InvalidInput, match=r"operators is .*. Give a whole number, 0 or more"):
        bookkeeper.make(Played(), "one", None, number)


@pytest.mark.parametrize("name", ["", "a/b", "-a", "a.", "a b", "x" * 101, "ä", None, 5])
def test_names_that_are_none_are_refused(name: Any) -> None:
    with pytest.raises(InvalidInput, match="cannot name a savepoint"):
        check_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "../q", "a/../../q", "/q"])
def test_what_is_no_name_deletes_no_file(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Played()
    monkeypatch.setattr(SavepointStore, "of", lambda *_: store)
    with pytest.raises(InvalidInput, match="cannot name a savepoint"):
        bookkeeper.delete(name, SOURCE)
    assert not cast(Files, store.hadoop).deleted


def test_what_a_killed_command_has_left_is_deleted_without_its_savepoint_too(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Played()
    monkeypatch.setattr(SavepointStore, "of", lambda *_: store)
    with pytest.raises(NotFound):
        bookkeeper.delete("nightly-read-0123456789ab", SOURCE)
    assert cast(Files, store.hadoop).deleted == ["bk://zk:2181/.savepoints/nightly-read-0123456789ab"]

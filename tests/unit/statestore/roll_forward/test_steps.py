"""Rolling forward without Spark: a checkpoint in a folder, and a job that commits what is planned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from eos.commit.registration import REGISTRATION, Registration
from eos.config import Cluster
from eos.doctor.abort import OwnerAlive
from eos.errors import DamagedLog
from statestore.checkpoint.files import HadoopFiles, LocalFiles
from statestore.checkpoint.needs import registration_of
from statestore.errors import InvalidInput, Unavailable
from statestore.hadoop.file_systems import Hadoop
from statestore.rewriting import rescaling
from statestore.roll_forward import Output, RollForwardStep, steps
from statestore.roll_forward.plan import BatchInput, InputLog
from statestore.savepoints import bookkeeper
from statestore.savepoints.savepoint import Savepoint
from tests.unit.statestore.folders import Folders
from tests.unit.statestore.roll_forward.test_plan import QUERY, log, offsets

OUTPUT = Output(Cluster("pulsar://nowhere:1"), "counts")
AT, TO = 3, 7


class Crash(Exception):
    pass


class Query:
    """Runs what Spark would run: the newest offsets, if they have no commit. It ends at once, or never."""

    def __init__(self, checkpoint: Path, ends: bool = True) -> None:
        self._ends = ends
        planned = max(int(path.name) for path in (checkpoint / "offsets").iterdir())
        (checkpoint / "commits" / str(planned)).write_text("v1\n{}")

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802
        return self._ends

    def stop(self) -> None:
        pass


def text(batch: int) -> str:
    return offsets(f'{{"logOffset":{batch}}}', f'{{"offset":{batch * 10}}}')


def full_log() -> InputLog:
    view = log(*range(AT, TO + 1))
    assert view.newest is not None
    view.newest = replace(view.newest, offsets=text(TO))
    view.inputs = {batch: BatchInput(batch, text(batch)) for batch in view.inputs}
    return view


class World:
    """A checkpoint at batch AT whose output is at TO, and the original that knows the files in between."""

    def __init__(self, root: Path) -> None:
        self.target, self.original = root / "restored", root / "original"
        for folder in ("offsets", "commits", "sources/0"):
            (self.target / folder).mkdir(parents=True)
        for batch in (AT - 1, AT):
            (self.target / "offsets" / str(batch)).write_text(text(batch))
            (self.target / "commits" / str(batch)).write_text("v1\n{}")
        (self.target / "metadata").write_text(f'{{"id":"{QUERY}"}}')
        self.register(Registration("counts", OUTPUT.topic, 4))
        (self.original / "sources/0").mkdir(parents=True)
        for entry in range(TO + 2):
            (self.original / "sources/0" / str(entry)).write_text(f"files of {entry}")
        self.ran: list[int] = []
        self.owned = self.looks = 0  # how often a driver is seen to own the sink

    def register(self, registered: Registration) -> None:
        (self.target / REGISTRATION).write_text(registered.text)

    @property
    def registered(self) -> Registration:
        return Registration.parse((self.target / REGISTRATION).read_text())

    def job(self, spark: Any, checkpoint: str, trigger: Mapping[str, Any]) -> Any:
        assert trigger == {"once": True}
        planned = max(int(path.name) for path in (self.target / "offsets").iterdir())
        assert (self.target / "offsets" / str(planned)).read_text() == text(planned), "the offsets of its MARKER"
        assert (self.target / "sources/0" / str(planned)).read_text() == f"files of {planned}"
        assert self.registered.rolls_forward_from == AT + 1
        self.ran.append(planned)
        return Query(self.target)

    def roll(self, job: Any = None, observer: Any = lambda step, batch: None, logs_of: Path | None = None) -> Any:
        return steps.roll_forward(
            *(str(self.target), job or self.job, OUTPUT),
            spark=cast(Any, None),
            source_logs_of=str(logs_of or self.original),
            observer=observer,
        )

    def refuse_if_owned(self, *_: object) -> None:
        self.looks += 1
        if self.looks <= self.owned:
            raise OwnerAlive("Stop its query first.")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(Hadoop, "of", lambda *_: Folders())
    monkeypatch.setattr(Output, "log", lambda *_: full_log())
    monkeypatch.setattr(steps, "_ENDS_S", 2.0)
    monkeypatch.setattr(steps, "_LOOK_S", 0.01)
    world = World(tmp_path)
    monkeypatch.setattr(steps, "refuse_if_owned", world.refuse_if_owned)
    return world


def test_each_batch_is_run_once_with_the_input_that_it_had(world: World) -> None:
    done = world.roll()
    assert (done.began_at, done.batch_id, done.replayed) == (AT, TO, TO - AT)
    assert world.ran == list(range(AT + 1, TO + 1))
    assert world.registered == Registration("counts", OUTPUT.topic, 4)
    assert world.roll().replayed == 0
    assert world.ran == list(range(AT + 1, TO + 1))


@pytest.mark.parametrize(
    ("step", "batch"),
    [
        *[(RollForwardStep.DECLARE, AT), (RollForwardStep.SOURCES, AT), (RollForwardStep.FINISH, TO)],
        *[(step, batch) for step in (RollForwardStep.OFFSETS, RollForwardStep.REPLAY) for batch in (AT + 1, TO)],
    ],
)
def test_after_a_death_at_any_step_it_goes_on(step: RollForwardStep, batch: int, world: World) -> None:
    def dies(reached: RollForwardStep, at: int) -> None:
        if (reached, at) == (step, batch):
            raise Crash

    with pytest.raises(Crash):
        world.roll(observer=dies)
    done = world.roll()
    assert done.batch_id == TO
    assert world.ran == list(range(AT + 1, TO + 1)), "each once"
    assert world.registered.rolls_forward_from is None


def test_the_checkpoint_of_a_query_that_runs_is_not_touched(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_LEAVES_S", 0.0)
    (world.target / "offsets" / str(AT + 1)).write_text("the batch in hand")
    world.owned = 1_000_000
    with pytest.raises(OwnerAlive, match="Stop its query first"):
        world.roll()
    assert world.ran == []
    assert world.registered == Registration("counts", OUTPUT.topic, 4)
    assert (world.target / "offsets" / str(AT + 1)).read_text() == "the batch in hand"


def test_the_sink_of_an_earlier_replay_is_waited_for(world: World) -> None:
    world.owned = 3
    assert world.roll().replayed == TO - AT


def test_logs_that_were_taken_stay_where_the_target_is_the_originals_address(world: World) -> None:
    for entry in (world.original / "sources/0").iterdir():
        (world.target / "sources/0" / entry.name).write_text(entry.read_text())
    assert world.roll(logs_of=world.target).replayed == TO - AT
    assert len(list((world.target / "sources/0").iterdir())) == TO + 2


def test_a_death_in_a_batch_runs_it_again(world: World) -> None:
    def dies(spark: Any, checkpoint: str, trigger: Any) -> Any:
        raise RuntimeError("no heap left")

    with pytest.raises(Unavailable, match=f"Batch {AT + 1} could not be replayed: no heap left"):
        world.roll(dies)
    assert world.roll().replayed == TO - AT


def test_what_a_refused_query_has_planned_is_replaced(world: World) -> None:
    (world.target / "offsets" / str(AT + 1)).write_text(text(99))
    (world.target / "offsets" / str(AT + 2)).write_text(text(100))
    (world.target / "sources/0" / str(AT + 1)).write_text("all files at once")
    assert world.roll().batch_id == TO
    assert world.ran == list(range(AT + 1, TO + 1))


def test_a_job_that_goes_on_is_stopped(world: World) -> None:
    with pytest.raises(InvalidInput, match=r"must give the trigger that it gets to its query"):
        world.roll(lambda *_: Query(world.target, ends=False))


def test_a_job_that_runs_something_else_is_found(world: World) -> None:
    class Idle(Query):
        def __init__(self) -> None:
            self._ends = True

    with pytest.raises(Unavailable, match=f"without having run exactly batch {AT + 1}.* its newest commit {AT}"):
        world.roll(lambda *_: Idle())


def test_another_sink_another_query_and_no_commit_are_refused(world: World) -> None:
    world.register(Registration("others", OUTPUT.topic, 4))
    with pytest.raises(Exception, match='belongs to the sink "others"'):
        world.roll()
    (world.target / REGISTRATION).unlink()
    with pytest.raises(InvalidInput, match="was not used with an exactly-once sink"):
        world.roll()
    (world.target / "metadata").write_text("")
    with pytest.raises(InvalidInput, match="not a whole checkpoint"):
        world.roll()
    assert world.ran == []


def test_a_refused_target_is_removed_with_its_metadata_last(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it Spark would start on what is left where the removal dies."""
    aside = world.target.rename(world.target.with_name("aside"))
    deleted: list[str] = []

    class Deleting(Folders):
        def delete(self, uri: str, recursive: bool = False) -> bool:
            deleted.append(Path(uri).name)
            assert (world.target / "metadata").exists()
            return super().delete(uri, recursive)

    def refuse(*_: object) -> tuple[BatchInput, ...]:
        raise InvalidInput("The offsets differ")

    monkeypatch.setattr(Hadoop, "of", lambda *_: Deleting())
    monkeypatch.setattr(bookkeeper, "find", lambda *_, **__: Savepoint("one", "ready", "", 0, AT, QUERY))
    monkeypatch.setattr(steps, "behind", lambda *_, **__: ())
    monkeypatch.setattr(steps, "restore", lambda *_, **__: aside.rename(world.target))
    monkeypatch.setattr(steps, "lacked_by", refuse)
    with pytest.raises(InvalidInput, match="The offsets differ"):
        steps.restore_in_step("one", str(world.target), world.job, OUTPUT, spark=cast(Any, None))
    assert not world.target.exists()
    assert sorted(deleted[:-1]) == ["commits", REGISTRATION, "offsets", "sources"]


def test_a_shadow_is_declared_and_stays_one(world: World) -> None:
    hadoop = cast(Hadoop, Folders())
    files = HadoopFiles(hadoop, str(world.target))
    steps.declare(hadoop, files, OUTPUT, None, shadow=True)
    steps.declare(hadoop, files, OUTPUT, 5)
    assert world.registered == Registration("counts", OUTPUT.topic, 4, 5, True)


@pytest.mark.parametrize("read", [registration_of, rescaling._registration])
def test_a_note_of_the_sink_that_is_no_text_is_named_as_damaged(read: Callable[[Any], object], tmp_path: Path) -> None:
    (tmp_path / REGISTRATION).write_bytes(b'\xff\xfe{"name":"counts"}')
    with pytest.raises(DamagedLog, match=f"^{REGISTRATION} in the query's checkpoint can't be read"):
        read(LocalFiles(tmp_path))

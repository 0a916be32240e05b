"""A run that writes deduplicated: what it notes and looks at, when it compares, and what it refuses."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from eos.commit.decision import Identity
from eos.commit.registration import REGISTRATION, UNLOGGED, Registration, Unlogged
from eos.delivery.alone import Alone
from eos.delivery.begun import BEGUN, Begun, Planned
from eos.delivery.numbering import Kept
from eos.delivery.stored import Found
from eos.delivery.writer import Report
from eos.errors import (
    ConnectionLost,
    DamagedLog,
    EosError,
    InvalidInput,
    NotCommitted,
    StaleBatch,
    TopicMissing,
    Unacknowledged,
)
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.policies import Keeping
from eos.pulsar.wire.message_id import EntryId
from eos.sinks import beginning, deduplicated
from eos.sinks.deduplicated import DeduplicatingRun
from eos.sinks.metrics import Metrics
from eos.sinks.options import SinkOptions, checked
from eos.sinks.run import Start, WritingRun

IDENTITY = Identity("query", "run", "offsets")
TOPIC = "persistent://public/default/t"
PARTS = [f"{TOPIC}-partition-{part}" for part in range(2)]
PLANNED = (Planned(TOPIC, 2, None),)
CONTROL = "persistent://public/default/__eos-flights"
SOME = Found({(0, "1", PARTS[0]): Kept(4, "abc")})


def begun(batch_id: int, entry: int = 1) -> Begun:
    settings = {"key_hash": "java"}
    return Begun("flights", batch_id, PLANNED, dict.fromkeys(PARTS, EntryId(5, entry)), settings, 40)


class World:
    """A run on a fake query, over topics that hold what they are told to, whose deliveries fail as they are told to."""

    run_id = "run"

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **files: str) -> None:
        self.events: list[str] = []
        self.fails: list[tuple[str, EosError]] = []
        self.files = {REGISTRATION: files.get("registered"), UNLOGGED: files.get("unlogged"), BEGUN: files.get("begun")}
        self.found: list[Found] = []
        self.end, self.metrics = 1, Metrics("flights")
        self.known: int | None = None
        self.partitions: dict[str, int] = {TOPIC: 2}
        self.topics, self.speculates = [TOPIC], "false"
        self.log: Any = SimpleNamespace(newest=None, unfinished=None)
        monkeypatch.setattr(deduplicated, "DeduplicatedDelivery", self.delivery_of)
        monkeypatch.setattr(deduplicated, "look", self.look)
        monkeypatch.setattr(Alone, "hold", lambda _, topic: self.step(f"hold {topic[-1]}"))
        monkeypatch.setattr(Alone, "await_writers", lambda _, topics: self.events.append(f"await {len(topics)}"))
        monkeypatch.setattr(deduplicated, "Positions", lambda *_: self)
        monkeypatch.setattr(deduplicated, "check_deduplication", self.check)
        monkeypatch.setattr(deduplicated, "read", lambda client, topic: self.log)
        keeping = Keeping(0, (), 60, 1_000, deduplicates=True)
        monkeypatch.setattr(Admin, "keeping", lambda _, topic: keeping)
        monkeypatch.setattr(WritingRun, "_delivery_of", self.deliver)
        monkeypatch.setattr(WritingRun, "_sleep", lambda *_: None)
        monkeypatch.setattr("eos.spark.query.refuse_temporary_checkpoint", lambda _: None)

    # the query
    def read(self, name: str) -> str | None:
        return self.files.get(name)

    def register(self, name: str, text: str) -> None:
        told = json.loads(text)
        self.events.append(f"note {told['batch_id']} behind {sorted(set(told['positions'].values()))}")
        self.files[name] = text

    def is_active(self, failed: BaseException | None = None) -> bool:
        return True

    # the topics
    def now(self, topics: Sequence[str]) -> dict[str, EntryId]:
        self.end += 1
        return dict.fromkeys(topics, EntryId(5, self.end))

    def partitions_of(self, topic: str) -> int:
        if topic not in self.partitions:
            raise TopicMissing(f"{topic} does not exist")
        return self.partitions[topic]

    def check(self, admin: object, topics: Sequence[str]) -> None:
        self.events += [f"check {len(topics)}"] if topics else []

    def look(
        self, client: object, admin: object, sink: str, batch_id: int, begun: int, since: Mapping[str, EntryId]
    ) -> Found:
        assert begun in (batch_id, batch_id - 1)
        self.events.append(f"look for {batch_id} behind {sorted({str(entry) for entry in since.values()})}")
        self.step("look")
        return self.found.pop(0) if self.found else Found()

    # the delivery
    def deliver(self, start: Start, last_rows: int | None, time_limit_s: float) -> Any:
        self.known = last_rows
        return SimpleNamespace(last_rows=last_rows, committed=lambda rows, size: None)

    def delivery_of(self, *_: object) -> Any:
        return SimpleNamespace(
            topics=self.topics,
            planned=PLANNED,
            seconds=0.5,
            prepare=lambda: self.step("prepare"),
            prepare_again=lambda writes, found: self.step(f"again {found.rows}"),
            compare=lambda: self.step("compare"),
            send=self.send,
            finish=lambda: self.step("finish"),
            abandon=lambda: self.step("abandon"),
        )

    def send(self, txn: None) -> Report:
        self.step(f"send {txn}")
        return Report({TOPIC: 2}, {TOPIC: 20}, {TOPIC: 1})

    def step(self, name: str) -> None:
        if name != "look":
            self.events.append(name)
        if self.fails and self.fails[0][0] == name.split()[0]:
            raise self.fails.pop(0)[1]

    def begin(self, batch_id: int = 3, guarantee: str = "deduplicated", query: Any = "this one") -> DeduplicatingRun:
        given: Any = {"name": "flights", "topic": "t", "attempts": 3, "guarantee": guarantee}
        options = checked(SinkOptions(**given, admin_url="http://a:8080"))
        conf = SimpleNamespace(get=lambda name, default: default)
        speculates = SimpleNamespace(getConf=lambda: SimpleNamespace(get=lambda *_: self.speculates))
        session: Any = SimpleNamespace(conf=conf, sparkContext=speculates)
        client: Any = SimpleNamespace(
            cluster=SimpleNamespace(credentials=SimpleNamespace(method="none"), tls=None, request_timeout_s=1.0),
            partitions=self.partitions_of,
        )
        itself: Any = self if query == "this one" else query
        start = Start(options, client, self.metrics, session, itself, IDENTITY, batch_id)
        return cast(DeduplicatingRun, beginning.begin(start))

    def take(self, run: DeduplicatingRun, batch_id: int = 3) -> list[str]:
        """Have a batch taken; return what happened."""
        del self.events[:]
        self.metrics.begin(batch_id)
        self.metrics.identified(IDENTITY)
        run.take(batch_id, [], IDENTITY)
        return self.events


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_a_batch_is_noted_with_where_its_topics_end_before_anything_of_it_is_sent(world: World) -> None:
    """From the second one on: with where they ended when the batch before was begun."""
    run = world.begin()
    assert world.take(run) == ["hold t", "prepare", "check 2", "note 3 behind ['5:2']", "send None", "finish"]
    noted = Begun.parse(str(world.files[BEGUN]))
    assert (noted.name, noted.writes, set(noted.positions)) == ("flights", PLANNED, set(PARTS))
    assert noted.settings["key_hash"] == "murmur3"
    assert world.take(run, 4) == ["hold t", "prepare", "note 4 behind ['5:2']", "send None", "finish"]
    assert world.take(run, 5) == ["hold t", "prepare", "note 5 behind ['5:3']", "send None", "finish"]
    assert (world.metrics.snapshot().committed, world.metrics.snapshot().attempts) == (3, 3)


def test_a_new_run_looks_once_for_rows_that_its_checkpoint_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, begun=begun(2).text)
    run = world.begin()
    assert world.known == 40
    looked = ["hold t", "check 2", "look for 3 behind ['5:1']"]
    assert world.take(run) == [*looked, "prepare", "note 3 behind ['5:1']", "send None", "finish"]
    assert world.take(run, 4) == ["hold t", "prepare", "note 4 behind ['5:2']", "send None", "finish"]


def test_rows_of_a_batch_that_the_checkpoint_does_not_know_are_ahead_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, begun=begun(2).text)
    world.found = [SOME]
    with pytest.raises(StaleBatch, match=r"batch 3 has 4 rows on its topics, and .* batch 2 was begun last"):
        world.take(world.begin())
    assert not [event for event in world.events if event.startswith(("note", "send"))]


def test_topics_that_the_query_has_left_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """They may be gone, and no row of this batch goes there."""
    world = World(monkeypatch, begun=begun(2).text)
    world.topics = ["persistent://public/default/other"]
    assert "look for 3 behind []" in world.take(world.begin())


def test_a_batch_that_was_begun_is_compared_with_what_is_stored_before_the_rest_is_sent(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "eos.sink")
    world = World(monkeypatch, begun=begun(3).text)
    world.found = [SOME]
    seen = ["hold t", "check 2", "await 2", "look for 3 behind ['5:1']", "again 4", "compare", "send None", "finish"]
    assert world.take(world.begin()) == seen
    assert world.files[BEGUN] == begun(3).text, "rows may be behind the positions of then"
    assert "batch 3 was begun before, and 4 rows of it are stored" in caplog.text


def test_a_batch_whose_rows_may_be_deleted_is_refused_and_one_that_is_not_in_doubt_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(monkeypatch, begun=begun(3).text)
    world.found = [Found(SOME.kept, (PARTS[1],))]
    with pytest.raises(DamagedLog, match=f"which rows of batch 3 were on {PARTS[1]}: .* set-retention"):
        world.take(world.begin())
    assert not [event for event in world.events if event.startswith(("again", "compare", "send"))]
    world = World(monkeypatch, begun=begun(2).text)
    world.found = [Found({}, (PARTS[1],))]
    assert "send None" in world.take(world.begin())


@pytest.mark.parametrize(
    ("now", "looked"), [(1, ["check 1", "look for 3 behind ['5:1']"]), (0, ["look for 3 behind []"])]
)
def test_a_topic_that_was_made_again_with_fewer_partitions_has_lost_what_was_in_doubt_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, now: int, looked: list[str]
) -> None:
    """No partition is asked for that there is not: the advice would be to create it."""
    world = World(monkeypatch, begun=begun(3).text)
    world.partitions = {TOPIC: now}
    with pytest.raises(DamagedLog, match=rf"which rows of batch 3 were on (\S+, )?{PARTS[1]}: .* decide by hand"):
        world.take(world.begin())
    assert not [event for event in world.events if event.startswith(("again", "compare", "send"))]
    world = World(monkeypatch, begun=begun(2).text)
    world.partitions = {TOPIC: now}
    events = world.take(world.begin())
    assert events[: len(looked) + 2] == ["hold t", *looked, "prepare"]
    assert events[-2:] == ["send None", "finish"]


@pytest.mark.parametrize("retention", [(0, 0), (-1, 0), (0, -1), (-1, -1), (60, 1_000)])
def test_a_topic_without_retention_is_told_of_once(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, retention: tuple[int, int]
) -> None:
    monkeypatch.setattr(Admin, "keeping", lambda _, topic: Keeping(0, (), *retention, deduplicates=True))
    run = world.begin()
    for batch_id in (3, 4):
        world.take(run, batch_id)
    assert caplog.text.count(f"{TOPIC} has no retention") == (0 in retention)


@pytest.mark.parametrize("error", [ConnectionLost("gone"), NotCommitted("a task was lost")])
@pytest.mark.parametrize("step", ["send", "finish"])
def test_a_try_that_fails_is_gone_on_with_by_looking(world: World, step: str, error: EosError) -> None:
    world.fails = [(step, error)]
    world.found = [SOME]
    events = world.take(world.begin())
    at = events.index("abandon")
    assert events[at:] == [
        "abandon",
        "hold t",
        "await 2",
        "look for 3 behind ['5:2']",
        "again 4",
        "compare",
        "send None",
        "finish",
    ]


def test_a_try_that_failed_before_the_batch_was_noted_begins_it_anew(world: World) -> None:
    world.fails = [("prepare", NotCommitted("a task was lost"))]
    assert world.take(world.begin())[:5] == ["hold t", "prepare", "abandon", "hold t", "prepare"]


def test_a_replay_that_differs_is_refused_with_what_was_changed_and_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, begun=begun(3).text)
    world.found = [SOME]
    world.fails = [("compare", InvalidInput("batch 3 differs from what was begun"))]
    run = world.begin()
    with pytest.raises(
        InvalidInput, match=r"differs .* Changed since: .*key_hash was java and is murmur3\. A replay .*sortWithin"
    ):
        world.take(run)
    assert (world.events[-1], "send None" in world.events) == ("abandon", False)
    world.take(run)
    assert world.metrics.snapshot().committed == 1, "after a correction it is taken again"


@pytest.mark.parametrize("kind", [StaleBatch, DamagedLog, InvalidInput])
def test_what_the_caller_must_settle_keeps_its_kind(monkeypatch: pytest.MonkeyPatch, kind: type[InvalidInput]) -> None:
    world = World(monkeypatch, begun=begun(3).text)
    world.fails = [("look", kind("as it is"))]
    with pytest.raises(kind, match=r"as it is\. Rows of batch 3 .* guarantee=\"deduplicated\" has no") as caught:
        world.take(world.begin())
    assert type(caught.value) is kind
    assert world.events.count("abandon") == 1


def test_a_batch_whose_tries_all_fail_is_unacknowledged(world: World) -> None:
    world.fails = [("send", ConnectionLost("gone"))] * 3
    with pytest.raises(Unacknowledged, match="gone"):
        world.take(world.begin())
    assert world.metrics.finished(Unacknowledged()).outcome == "unknown"


def test_other_writes_than_those_that_were_begun_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, begun=begun(3).text)
    world.topics = [TOPIC, "u"]
    with pytest.raises(InvalidInput, match="was begun with writes to"):
        world.take(world.begin())


# ---- how a run begins


def test_a_batch_before_the_one_that_was_begun_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, begun=begun(4).text)
    with pytest.raises(StaleBatch, match="batch 3, and the checkpoint says that batch 4"):
        world.take(world.begin())


def test_a_checkpoint_of_another_name_speculation_and_no_query_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Begun("others", 2, ()).text
    with pytest.raises(InvalidInput, match='belongs to the sink "others"'):
        World(monkeypatch, begun=other).begin()
    world = World(monkeypatch)
    world.speculates = "true"
    with pytest.raises(InvalidInput, match=r"spark\.speculation"):
        world.begin()
    with pytest.raises(InvalidInput, match="outside a streaming query there is none"):
        World(monkeypatch).begin(query=None)


def test_a_batch_in_doubt_of_another_guarantee_is_refused_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = World(monkeypatch, unlogged=Unlogged(3).text)
    with pytest.raises(InvalidInput, match=r'batch 3 was begun with guarantee="at-least-once".*"deduplicated"$'):
        plain.begin(3)
    plain.begin(4)
    world = World(monkeypatch, begun=begun(3).text)
    monkeypatch.setattr(beginning, "OwningRun", lambda start, registered: "exactly once")
    with pytest.raises(InvalidInput, match='batch 3 was begun with guarantee="deduplicated"'):
        world.begin(3, "exactly-once")
    assert cast(Any, world.begin(4, "exactly-once")) == "exactly once"


@pytest.mark.parametrize("place", ["newest", "unfinished"])
def test_a_batch_that_the_control_log_has_is_refused(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    world = World(monkeypatch, registered=Registration("flights", CONTROL, 9).text)
    world.begin()
    setattr(world.log, place, SimpleNamespace(batch_id=3))
    with pytest.raises(InvalidInput, match=r'batch 3 was begun with guarantee="exactly-once"'):
        world.begin(3)
    world.begin(4)


@pytest.mark.parametrize(("newest", "ahead"), [(2, False), (3, True), (4, True), (5, False)])
def test_a_checkpoint_that_was_rescaled_behind_an_exactly_once_output_is_refused(
    monkeypatch: pytest.MonkeyPatch, newest: int, ahead: bool
) -> None:
    """Its batch 6 would write the input of batch 3 once more, which no other rule sees."""
    world = World(monkeypatch, registered=Registration("flights", CONTROL, 9, jumped=(3, 4)).text)
    world.log.newest = SimpleNamespace(batch_id=newest)
    if ahead:
        with pytest.raises(StaleBatch, match=rf"has batch {newest}, and this checkpoint's state.*batch 6 would write"):
            world.begin(6)
    else:
        world.begin(6)


@pytest.mark.parametrize(
    ("registered", "words"),
    [
        (Registration("others", CONTROL, 9), "use the old name"),
        (Registration("flights", CONTROL, 9, rolls_forward_from=5), "is being rolled forward from batch 5 on"),
    ],
)
def test_a_checkpoint_that_is_another_sinks_or_is_rolled_forward_is_refused(
    monkeypatch: pytest.MonkeyPatch, registered: Registration, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        World(monkeypatch, registered=registered.text).begin()

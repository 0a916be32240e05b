"""`eos.write`: what it takes, what it refuses, and what it says of a job that is committed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from types import SimpleNamespace
from typing import Any, get_type_hints

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

import eos
from eos.commit.control_log import Marker
from eos.errors import ConnectionLost, DamagedLog, Fenced, IdentityMismatch, InvalidInput, NotCommitted
from eos.pulsar.wire.txn import TxnId
from eos.sinks import job as module
from eos.sinks.job import LEFT_OUT, JobOptions
from eos.sinks.options import SinkOptions

COLUMNS = StructType([StructField("key", LongType()), StructField("value", StringType())])
ROWS: Any = SimpleNamespace(schema=COLUMNS, sparkSession=None)
URL, TOPIC = "pulsar://nowhere", "persistent://public/default/t"


class Log:
    """The control logs of all jobs: what each has written, and how often its run was closed."""

    def __init__(self) -> None:
        self.markers: dict[str, Marker] = {}
        self.taken: list[tuple[int, int]] = []
        self.closed = 0

    def run(self, start: Any, registered: None) -> Any:
        """Stand for an `OwningRun`."""
        log, name, who = self, start.options.name, start.identity

        class Run:
            @property
            def newest(self) -> Marker | None:
                return log.markers.get(name)

            def take(self, batch_id: int, writes: list[Any], identity: Any) -> None:
                log.taken.append((batch_id, len(writes)))
                rows, sizes = {TOPIC: 3}, {TOPIC: 30}
                log.markers[name] = Marker(
                    3, who.query_id, who.run_id, batch_id, 1, TxnId(7, 1), None, rows, sizes, who.offsets
                )

            def close(self) -> None:
                log.closed += 1

        return Run()


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """What stands in the place of the cluster."""
    made = Log()
    monkeypatch.setattr("eos.sinks.context.SinkContext.check_cluster", lambda self: None)
    monkeypatch.setattr("eos.sinks.write_plan.WritePlan.message", lambda self, df, topic: (df, topic))
    monkeypatch.setattr("eos.sinks.write_plan.WritePlan.write", lambda self, df, topic: (df, topic))
    monkeypatch.setattr(module, "OwningRun", made.run)
    return made


def write(df: Any = ROWS, **options: Any) -> eos.JobResult:
    return eos.write(df, URL, **{"job_id": "flights", "topic": "t", **options})


def test_a_job_takes_each_option_of_the_sink_that_means_something_to_it() -> None:
    ours, theirs = get_type_hints(JobOptions), get_type_hints(SinkOptions)
    assert ours == {name: kind for name, kind in theirs.items() if name not in ("name", *LEFT_OUT)}
    assert set(LEFT_OUT) < {field.name for field in fields(SinkOptions)}


def test_each_option_reaches_the_sink(monkeypatch: pytest.MonkeyPatch, log: Log) -> None:
    started: list[Any] = []

    def run(start: Any, registered: None) -> Any:
        started.append(start)
        return log.run(start, registered)

    monkeypatch.setattr(module, "OwningRun", run)
    given: dict[str, Any] = {"compression": "zstd", "attempts": 2, "principal": "role"}
    write(**given)
    assert started[0].options == SinkOptions(name="flights", topic=TOPIC, **given)
    assert (started[0].identity.principal, started[0].batch_id, started[0].query) == ("role", 0, None)


def test_the_second_call_writes_nothing_and_says_so(log: Log) -> None:
    rows, sizes = {TOPIC: 3}, {TOPIC: 30}
    assert write() == eos.JobResult("flights", True, "(7,1)", 3, 30, rows, sizes)
    assert write() == eos.JobResult("flights", False, "(7,1)", 3, 30, rows, sizes)
    assert (log.taken, log.closed) == ([(0, 1)], 2)


def test_brokers_out_of_reach_before_anything_is_written_leave_a_job_that_is_not_committed(
    monkeypatch: pytest.MonkeyPatch, log: Log
) -> None:
    def lost(*given: object) -> None:
        raise ConnectionLost("ask for the schema of t: the connection is gone")

    with monkeypatch.context() as patched:
        patched.setattr("eos.sinks.write_plan.WritePlan.write", lost)
        with pytest.raises(
            NotCommitted, match='job "flights" is not committed, and nothing of it was written: ask for'
        ):
            write()
    assert (log.taken, log.closed) == ([], 1)
    assert write().wrote


def test_two_ids_are_two_jobs(log: Log) -> None:
    assert [write(job_id=job_id).wrote for job_id in ("a", "b", "a")] == [True, True, False]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"df": SimpleNamespace(schema=StructType(COLUMNS.fields[1:]), sparkSession=None)}, "columns was .*, and is "),
        ({"topic": "u"}, "topic was .*/t, and is .*/u"),
        ({"value_format": "json"}, "value_format was raw, and is json"),
        ({"key_hash": "java"}, "key_hash was murmur3, and is java"),
    ],
)
def test_another_job_under_a_committed_id_is_refused(log: Log, other: dict[str, Any], words: str) -> None:
    write()
    with pytest.raises(IdentityMismatch, match=f'"flights" is committed, by transaction .*{words}.*id of its own'):
        write(**other)
    assert (log.taken, log.closed) == ([(0, 1)], 2)


@pytest.mark.parametrize("option", [{"compression": "lz4"}, {"attempts": 1}, {"transaction_timeout_s": 9.0}])
def test_what_readers_do_not_see_makes_no_other_job(log: Log, option: dict[str, Any]) -> None:
    write()
    assert not write(**option).wrote


def test_a_fact_of_another_version_says_nothing(log: Log) -> None:
    write()
    told = json.loads(log.markers["flights"].offsets)
    del told["key_hash"]
    log.markers["flights"] = _with_offsets(log.markers["flights"], json.dumps({**told, "colour": "red"}))
    assert not write(key_hash="java").wrote


@pytest.mark.parametrize("offsets", ["v1", "7", ""])
def test_a_marker_that_is_no_jobs_is_damage(log: Log, offsets: str) -> None:
    write()
    log.markers["flights"] = _with_offsets(log.markers["flights"], offsets)
    with pytest.raises(DamagedLog, match="does not tell what was written"):
        write()


def test_a_sinks_name_is_no_job_id(monkeypatch: pytest.MonkeyPatch, log: Log) -> None:
    def refuse(*given: object) -> None:
        raise IdentityMismatch("the control log belongs to the query 0a1b")

    monkeypatch.setattr(module, "OwningRun", refuse)
    with pytest.raises(IdentityMismatch, match=r'job_id="flights" is the name of a sink: .*/__eos-flights is the con'):
        write()


def test_a_job_that_fails_is_closed(monkeypatch: pytest.MonkeyPatch, log: Log) -> None:
    def fail(*given: object) -> None:
        raise InvalidInput("no such column")

    monkeypatch.setattr("eos.sinks.write_plan.WritePlan.write", fail)
    with pytest.raises(InvalidInput, match="no such column"):
        write()
    assert (log.taken, log.closed) == ([], 1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: eos.write(ROWS, URL, topic="t"), r"eos\.write\(\) needs job_id="),  # type: ignore[call-arg]
        (lambda: write(name="flights"), "has no option 'name'"),
        (lambda: write(small_batch_rows=7), "has no option 'small_batch_rows'"),
        (lambda: write(job="x"), "Did you mean 'job_id'"),
        (lambda: write(job_id=7), "job_id=7 is int. It must be str"),
        (lambda: write(job_id=None), "job_id=None is NoneType"),
        (lambda: write(job_id=""), '"" cannot name a sink or a job. Use up to 100 letters'),
        (lambda: write(attempts=0), "attempts=0 is too small"),
    ],
)
def test_bad_options_are_refused_before_anything_is_opened(
    monkeypatch: pytest.MonkeyPatch, call: Callable[[], object], words: str
) -> None:
    monkeypatch.delattr(module, "SinkContext")
    with pytest.raises(InvalidInput, match=words):
        call()


def test_two_threads_of_one_process_do_not_write_one_job(monkeypatch: pytest.MonkeyPatch, log: Log) -> None:
    refused: list[Fenced] = []

    def plan(sink: object, df: object, topic: None) -> tuple[object, None]:
        try:
            write()
        except Fenced as error:
            refused.append(error)
        return df, topic

    monkeypatch.setattr("eos.sinks.write_plan.WritePlan.write", plan)
    assert write().wrote
    assert "by another thread of this process" in str(refused[0])
    assert (log.taken, write().wrote) == ([(0, 1)], False)


def _with_offsets(marker: Marker, offsets: str) -> Marker:
    values = {field.name: getattr(marker, field.name) for field in fields(marker)}
    return Marker(**{**values, "offsets": offsets})


def test_an_observer_is_told_what_became_of_the_job(log: Log) -> None:
    told: list[eos.FinishedBatch] = []
    write(metrics=told.append)
    write(metrics=told.append)
    with pytest.raises(IdentityMismatch):
        write(metrics=told.append, key_hash="java")
    assert [(one.outcome, one.transaction, one.error) for one in told[1:]] == [
        ("replayed", "(7,1)", None),
        ("failed", None, "IdentityMismatch"),
    ]
    assert {(one.sink, one.job, one.batch_id, one.query_id) for one in told} == {("flights", True, 0, "job:flights")}


@pytest.mark.parametrize(
    ("option", "why"),
    [("guarantee", "is written exactly once"), ("markers_kept", "has one marker"), ("small_batch_rows", "not known")],
)
def test_an_option_that_means_nothing_to_a_job_is_refused_with_the_reason(option: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=rf"eos\.write\(\) has no option '{option}'\. .*{why}.*\. It takes "):
        write(**{option: "at-least-once"})

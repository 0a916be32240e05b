"""The writes of one batch, each on a scripted way into the transaction."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from eos.delivery.abort_record import PATIENCE_S
from eos.delivery.batch import BatchDelivery
from eos.delivery.delivery import Write
from eos.delivery.path import DriverPath, TaskPath
from eos.delivery.row_writer import WriteReport
from eos.errors import CommitUnknown, InvalidInput, NotCommitted, Unanswered
from eos.pulsar.net.producer import FrameLimits
from eos.pulsar.wire.txn import TxnId

TXN = TxnId(0, 7)
CLIENT = cast(Any, SimpleNamespace(frame_limits=FrameLimits()))


class Path(DriverPath):
    """Notes what it is asked for, and fails where it is told to."""

    def __init__(self, of: Scripted, name: str, rows: pa.Table) -> None:
        super().__init__(rows, settings=None, producers=None, partitions={name: 2})  # type: ignore[arg-type]
        self.of, self.name = of, name

    def _do(self, what: str) -> None:
        self.of.log.append(f"{what} {self.name}")
        error = self.of.fails.get(f"{what} {self.name}")
        if error is not None:
            raise error

    def send(self, txn: TxnId | None, batch_id: int) -> WriteReport:
        assert (txn, batch_id) == (TXN, 3)
        self._do("send")
        return WriteReport({self.name: 1}, {self.name: 10}, {self.name: 2})

    def await_receipts(self) -> None:
        self._do("await")

    def finish(self) -> None:
        self._do("finish")

    def abandon(self) -> set[str]:
        self._do("abandon")
        return self.of.under_way


@dataclass
class Scripted:
    """A run's delivery: collects each write, unless an earlier try has. Told are the answers of the admin API."""

    fails: dict[str, BaseException] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    under_way: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)
    told: Iterator[frozenset[str] | Exception] | None = None

    def added(self, txn: TxnId, until: float) -> frozenset[str] | None:
        if self.told is None:
            return None
        self.log.append(f"ask for {txn}")
        assert 0 < until - time.monotonic() <= PATIENCE_S
        answer = next(self.told)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def seal(self, txn: TxnId, topics: Collection[str]) -> set[str]:
        self.log.append(f"seal {' '.join(sorted(topics))} in {txn}")
        return {topic for topic in topics if topic.startswith("far")}

    def prepare(self, write: Write, rows: pa.Table | None) -> Path:
        topic = str(write.topic)
        self.log.append(f"{'collect' if rows is None else 'reuse'} {topic}")
        return Path(self, topic, pa.table({"value": [topic]}) if rows is None else rows)


def batch(of: Scripted, topics: Sequence[str] = ("s", "t")) -> BatchDelivery:
    writes = [Write(None, topic) for topic in topics]  # type: ignore[arg-type]
    return BatchDelivery(of, 3, writes)  # type: ignore[arg-type]


def test_each_write_is_prepared_sent_and_finished() -> None:
    of = Scripted()
    one = batch(of)
    one.prepare()
    assert one.send(TXN) == WriteReport({"s": 1, "t": 1}, {"s": 10, "t": 10}, {"s": 2, "t": 2})
    assert (one.sent_in, one.frames) == (TXN, {"s": 2, "t": 2})
    assert of.log == ["collect s", "collect t", "send s", "send t"]
    of.log.clear()
    one.finish()
    assert of.log == ["finish s", "finish t"]


@pytest.mark.parametrize("step", ["send s", "send t", "finish s", "finish t"])
@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (CommitUnknown("no receipt"), CommitUnknown),
        (ValueError("a cast"), NotCommitted),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_a_failure_is_never_swallowed_and_all_is_given_up_after_it(
    step: str, error: BaseException, raised: type[BaseException]
) -> None:
    of = Scripted({step: error})
    one = batch(of)
    one.prepare()
    with pytest.raises(raised):
        one.finish() if step.startswith("finish") and one.send(TXN) else one.send(TXN)
    assert of.log[-1] == step
    assert (one.sent_in is None) == step.startswith("send"), "rows of a try that failed in sending are not all there"
    one.abandon()
    assert of.log[-2:] == ["abandon s", "abandon t"]


class Overflow(PySparkException):
    """A cast that no further try can change."""

    def getSqlState(self) -> str:  # noqa: N802
        return "22003"


@pytest.mark.parametrize(("error", "raised"), [(ValueError("lost"), NotCommitted), (Overflow("lost"), InvalidInput)])
def test_a_failure_of_spark_is_told_by_whether_it_can_pass(error: Exception, raised: type[Exception]) -> None:
    one = batch(Scripted({"send s": error}))
    one.prepare()
    with pytest.raises(raised, match=r"^Spark could not run it: .*lost") as caught:
        one.send(TXN)
    assert caught.value.__cause__ is error, "the log of the sink, at DEBUG, shows it"


def test_a_second_try_finds_the_rows_that_the_first_has_collected() -> None:
    of = Scripted({"send s": NotCommitted("refused")})
    one = batch(of)
    one.prepare()
    with pytest.raises(NotCommitted):
        one.send(TXN)
    one.abandon()
    of.fails.clear()
    of.log.clear()
    one.prepare()
    one.send(TXN)
    one.finish()
    assert of.log == ["reuse s", "reuse t", "send s", "send t", "finish s", "finish t"]


def test_topics_where_a_frame_may_be_on_its_way_are_sealed_before_the_abort() -> None:
    of = Scripted({"send t": NotCommitted("refused")}, under_way={"near", "far"})
    one = batch(of)
    one.prepare()
    with pytest.raises(NotCommitted):
        one.send(TXN)
    assert one.abandon() == {"far"}
    assert of.log[-3:] == ["abandon s", "abandon t", f"seal far near in {TXN}"]
    assert one.abandon() == set(), "the second time it does nothing"


@pytest.mark.parametrize("txn", [TXN, None])
@pytest.mark.parametrize("names_topics", [True, False])
def test_topics_that_only_rows_of_tasks_name_are_told_of_since_they_cannot_be_sealed(
    caplog: pytest.LogCaptureFixture, names_topics: bool, txn: TxnId | None
) -> None:
    def collect() -> list[Any]:
        raise OSError("a worker was lost")

    one = batch(Scripted(), ("s",))
    one.prepare()
    job = SimpleNamespace(sparkSession=None, collect=collect)
    one._paths = [TaskPath(cast(Any, job), CLIENT, {}, "carrier", (), names_topics)]
    with patch("eos.spark.jobs.local_property", lambda *_: nullcontext()), pytest.raises(NotCommitted):
        one.send(txn)
    assert one.abandon() == set()
    assert ("Its rows name their topics" in caplog.text) is (names_topics and txn is not None)
    caplog.clear()
    one.abandon()
    assert not caplog.text


def aborted_in_its_tasks(of: Scripted) -> set[str]:
    """Abort a batch whose rows name topics, while its tasks send. Returns the topics that are not sealed."""
    one = batch(of, ("s",))
    one._paths = [TaskPath(cast(Any, None), cast(Any, None), {}, "carrier", (), names_topics=True, _began=True)]
    one._into = TXN
    return one.abandon()


def test_topics_that_tasks_have_added_are_sealed_until_an_answer_names_no_new_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    of = Scripted(told=iter([frozenset({"far"}), frozenset({"far", "near"}), frozenset({"far", "near"})]))
    assert aborted_in_its_tasks(of) == {"far"}
    asked = f"ask for {TXN}"
    assert of.log == [asked, f"seal far in {TXN}", asked, f"seal near in {TXN}", asked]
    assert not caplog.text


def test_an_admin_api_that_does_not_tell_leaves_what_is_known_sealed_and_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told: list[frozenset[str] | Exception] = [frozenset({"far"}), Unanswered("no answer within 5 s")]
    of = Scripted(told=iter(told))
    assert aborted_in_its_tasks(of) == {"far"}
    assert "did not tell the others (no answer within 5 s)." in caplog.text


def test_without_an_admin_url_the_warning_names_it_as_the_cure(caplog: pytest.LogCaptureFixture) -> None:
    assert aborted_in_its_tasks(Scripted()) == set()
    assert "With admin_url the sink asks" in caplog.text


def test_topics_that_a_failed_try_has_told_are_known_to_the_next() -> None:
    of = Scripted(told=iter([]))
    one = batch(of, ("s",))
    client: Any = SimpleNamespace(partitions=lambda topic: 0)
    told = TaskPath(cast(Any, None), client, {}, "carrier", (), True, {"t"}, _all_told=True, _began=True)
    one._paths, one._into = [told], TXN
    assert one.abandon() == set()
    assert of.log == [f"seal t in {TXN}"], "each task has told its topics: nobody need be asked"
    assert of.named == {"t"}


def test_a_try_that_has_not_sent_seals_nothing() -> None:
    of = Scripted(under_way={"near"})
    one = batch(of)
    one.prepare()
    assert one.abandon() == set()
    assert of.log == ["collect s", "collect t", "abandon s", "abandon t"]


def test_an_interrupt_that_an_error_of_py4j_hides_is_no_reason_to_try_again() -> None:
    hiding = OSError("the socket is closed")
    hiding.__context__ = KeyboardInterrupt()
    one = batch(Scripted({"send s": hiding}))
    one.prepare()
    with pytest.raises(KeyboardInterrupt):
        one.send(TXN)


def test_rows_of_tasks_are_sent_when_those_of_an_earlier_write_are_stored() -> None:
    """They come by connections of their own, and a later write to the same topic must not come first."""
    of = Scripted()
    one = batch(of, ("s", "t", "u"))
    one.prepare()

    def collect() -> list[Any]:
        of.log.append("run the job")
        return []

    job = SimpleNamespace(sparkSession=None, collect=collect)
    one._paths[1] = TaskPath(cast(Any, job), CLIENT, {}, "carrier", ())
    with patch("eos.spark.jobs.local_property", lambda *_: nullcontext()):
        one.send(TXN)
    assert of.log[3:] == ["send s", "await s", "run the job", "send u"]

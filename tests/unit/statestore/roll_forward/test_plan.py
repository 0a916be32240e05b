"""What a roll forward needs, and what is refused before anything is changed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from eos.commit.control_log import Marker, OwnerRecord
from eos.config import Cluster
from eos.pulsar.wire.message_id import MessageId
from eos.pulsar.wire.txn import TxnId
from statestore.checkpoint import FileEntry, LocalFiles
from statestore.errors import InvalidInput, Unavailable
from statestore.roll_forward import Output, RollForwardStep, behind
from statestore.roll_forward.plan import InputLog, check_sources, numbered

QUERY = "5f"


def offsets(*sources: str, form: int = 1) -> str:
    return "\n".join([f"v{form}", '{"batchWatermarkMs":0,"batchTimestampMs":7,"conf":{}}', *sources])


def log(*batches: int, query: str = QUERY) -> InputLog:
    view = InputLog()
    view.apply(OwnerRecord(1, query, "run", 0, 0, begins=True), MessageId(1, 0))
    for batch in batches:
        marker = Marker(batch + 2, query, "run", batch, 1, TxnId(0, batch), None, {}, {}, f"offsets of {batch}")
        view.apply(marker, MessageId(1, batch + 1))
    return view


def test_the_batches_between_the_state_and_the_output_are_run_again() -> None:
    assert [one.batch_id for one in behind(log(3, 4, 5, 6), QUERY, 4, "offsets of 4")] == [5, 6]
    assert [one.batch_id for one in behind(log(5, 6), QUERY, 4, "not known any more")] == [5, 6]
    assert behind(log(5, 6), QUERY, 6, "offsets of 6") == ()


@pytest.mark.parametrize(
    ("view", "batch", "says"),
    [
        (log(), 4, "holds no committed batch"),
        (log(5, query="other"), 4, "of query other, and the state of query 5f"),
        (log(3, 4), 6, r"batches 5 … 6 are missing from the output"),
        (log(3, 6, 8), 4, r"no longer holds 2 of the batches between them, 5 the first.* at batch 7 or later"),
        (log(7, 8), 4, r"no longer holds 2 .* 5 the first"),
        (log(4, 5), 4, "read different input"),
    ],
)
def test_what_cannot_be_brought_in_step_is_refused(view: InputLog, batch: int, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        behind(view, QUERY, batch, "others")


def test_state_is_not_rolled_forward_over_a_rescaling() -> None:
    view = log(3)
    marker = Marker(9, QUERY, "run", 6, 1, TxnId(0, 6), None, {}, {}, planned(3))
    view.apply(marker, MessageId(1, 9))
    with pytest.raises(InvalidInput, match=r"has 2 partitions, and batch 6 of the output was written with 3"):
        behind(view, QUERY, 4, planned(2))
    view.apply(replace(marker, number=10, batch_id=7), MessageId(1, 10))
    assert [one.batch_id for one in behind(view, QUERY, 6, planned(3))] == [7]


def planned(partitions: int) -> str:
    return f'v1\n{{"conf":{{"spark.sql.shuffle.partitions":"{partitions}"}}}}\n-'


def written(*batches: tuple[int, int]) -> InputLog:
    """A log of batches, each with how many partitions its state had."""
    view = log()
    for batch, partitions in batches:
        marker = Marker(batch + 2, QUERY, "run", batch, 1, TxnId(0, batch), None, {}, {}, planned(partitions))
        view.apply(marker, MessageId(1, batch + 1))
    return view


def test_state_that_was_just_rescaled_is_in_step_with_the_batch_before() -> None:
    """Batch 5 was put in its place, and is none of the output's."""
    assert behind(written((3, 2), (4, 2)), QUERY, 5, planned(3), (5, 5)) == ()
    assert behind(written((4, 2)), QUERY, 6, planned(4), (5, 6)) == (), "twice"
    own = written((4, 2), (6, 3), (7, 3))
    assert [one.batch_id for one in behind(own, QUERY, 5, planned(3), (5, 5))] == [6, 7], "and has gone on since"
    assert [one.batch_id for one in behind(own, QUERY, 6, planned(3), (5, 5))] == [7]


@pytest.mark.parametrize("batches", [((4, 2), (5, 2)), ((4, 2), (5, 2), (6, 2))])
def test_output_of_the_checkpoint_that_was_rescaled_says_what_to_rescale(batches: tuple[tuple[int, int], ...]) -> None:
    newest = batches[-1][0]
    says = (
        rf"was rescaled after batch 4, and the output is at batch {newest}. The query has continued from .* rescale its"
    )
    with pytest.raises(InvalidInput, match=says):
        behind(written(*batches), QUERY, 5, planned(3), (5, 5))


def test_rescaled_state_ahead_of_the_output_is_named_by_its_own_batch() -> None:
    with pytest.raises(
        InvalidInput, match=r"state is at batch 4, and the output at batch 3: batches 4 … 4 are missing"
    ):
        behind(written((3, 2)), QUERY, 5, planned(3), (5, 5))


def test_what_may_have_been_rescaled_is_not_refused_before_it_is_known() -> None:
    assert behind(written((4, 2)), QUERY, 5, known=False) == ()
    with pytest.raises(InvalidInput, match="batches 5 … 5 are missing"):
        behind(written((4, 2)), QUERY, 5)


def test_a_batch_that_began_a_source_is_not_run_again() -> None:
    """As the first one after a bootstrap: its MARKER says where it ended, and nothing where it began."""
    view = log()
    for batch in (4, 5):
        marker = Marker(batch + 2, QUERY, "run", batch, 1, TxnId(0, batch), None, {}, {}, offsets('{"a":1}', "-"))
        view.apply(marker, MessageId(1, batch + 1))
    with pytest.raises(InvalidInput, match=r"At batch 3 nothing was read .*bootstrap, and batch 4 .* at batch 4 or la"):
        behind(view, QUERY, 3, offsets("-", "-"))
    assert [one.batch_id for one in behind(view, QUERY, 4, offsets('{"a":1}', "-"))] == [5]


@pytest.mark.parametrize(
    ("before", "after", "began"),
    [
        (("x:1",), ("x:2", "y:5"), True),
        (("x:1",), ("y:5", "x:2"), True),
        (("x:1", "y:-"), ("y:5", "x:2"), True),
        (("x:1", "y:-"), ("y:-", "x:2"), False),
        (("x:1", "y:5"), ("y:6", "x:2"), False),
        (("x:-", "y:5"), ("y:6",), False),  # x was taken away
    ],
)
def test_a_source_with_a_name_is_found_by_it(before: tuple[str, ...], after: tuple[str, ...], began: bool) -> None:
    """Sources with names may come, go, and change their order."""
    view = log()
    for batch, sources in ((3, before), (4, after)):
        text = offsets(*sources, form=2)
        marker = Marker(batch + 2, QUERY, "run", batch, 1, TxnId(0, batch), None, {}, {}, text)
        view.apply(marker, MessageId(1, batch + 1))
    with pytest.raises(InvalidInput, match="At batch 3 nothing was read of a source yet") if began else nullcontext():
        assert [one.batch_id for one in behind(view, QUERY, 3, offsets(*before, form=2))] == [4]


def test_a_control_topic_is_in_the_namespace_of_the_sinks_topic() -> None:
    assert Output(Cluster("pulsar://h:1"), "flights").topic == "persistent://public/default/__eos-flights"
    assert Output(Cluster("pulsar://h:1"), "flights", "a/b").topic == "persistent://a/b/__eos-flights"


def test_only_offsets_that_are_numbers_of_a_log_need_that_log() -> None:
    kafka = '{"topic":{"0":17}}'
    rate = '{"offset":30,"timestamp":3000}'
    text = offsets('{"logOffset":4}', kafka, "-", rate, "not json")
    assert numbered(None, text) == {"sources/0": 4}
    assert numbered(offsets('{"logOffset":4}', kafka), text) == {}, "no file came in between"
    assert numbered(offsets('{"logOffset":2}', kafka), text) == {"sources/0": 4}
    named = 'v2\n{}\na:{"logOffset":1}\nb:{"logOffset":2}'
    assert numbered(None, named) == {"sources/a": 1, "sources/b": 2}


def source(folder: Path, *entries: str) -> LocalFiles:
    (folder / "sources" / "0").mkdir(parents=True)
    for entry in entries:
        (folder / "sources" / "0" / entry).write_text("v1\n{}")
    return LocalFiles(folder)


@pytest.mark.parametrize("entries", [("0", "1", "2", "3", "4"), ("9.compact", "10"), ("2", "3", "4.compact")])
def test_a_log_that_reaches_far_enough_will_do(entries: tuple[str, ...], tmp_path: Path) -> None:
    check_sources(source(tmp_path, *entries), "bk://z:1/q", {"sources/0": 4})


def test_a_lost_original_is_not_asked_for_what_the_job_does_not_need() -> None:
    class Lost(LocalFiles):
        def list(self, path: str) -> Mapping[str, FileEntry]:
            raise Unavailable("no ZooKeeper answers")

    check_sources(Lost(Path("nowhere")), "bk://gone:1/q", {})
    with pytest.raises(Unavailable):
        check_sources(Lost(Path("nowhere")), "bk://gone:1/q", {"sources/0": 4})


@pytest.mark.parametrize(
    ("entries", "says"),
    [((), "is missing"), (("0", "1"), "ends at 1"), (("0", "1", "3", "4"), "has a hole")],
)
def test_a_log_that_does_not_is_refused_by_name(entries: tuple[str, ...], says: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=rf"entry 4 must be in bk://z:1/q/sources/0, .* {says}.*--source-logs"):
        check_sources(source(tmp_path, *entries), "bk://z:1/q", {"sources/0": 4})


def test_each_step_says_why_a_crash_around_it_is_safe() -> None:
    page = (Path(__file__).parents[4] / "docs" / "why" / "in-step.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z]+) \| (.+?) \| (.+?) \|$", page, re.MULTILINE)
    assert [name for name, *_ in rows if name != "step"] == [step.value for step in RollForwardStep]
    assert all(before and after for _, before, after in rows)

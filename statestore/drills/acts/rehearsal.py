"""Rehearsal: restore beside a live job what would be restored after a disaster, and see whether it is the same.

Nothing of the job is changed. A cut of its checkpoint is restored to a scratch place, read to its end, and its state is
compared with the live one's at the same batch; and so is its newest savepoint, if it has one. Both are held against the
sink's control log. Everything that was made for it is removed, also when it is interrupted.
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from eos.pulsar.net.client import Client
from statestore.bk.address import BkAddress, is_bk
from statestore.checkpoint import read_query_id, transfer
from statestore.checkpoint.files import HadoopFiles
from statestore.checkpoint.operators import operator_ids
from statestore.checkpoint.verification import verify
from statestore.drills.acts.acts import Acts
from statestore.drills.acts.same_state import read_stores
from statestore.drills.journal import JobEvent
from statestore.drills.processes import undisturbed
from statestore.errors import InvalidInput, Unavailable
from statestore.hadoop.file_systems import Hadoop
from statestore.roll_forward import Output, lacked_by
from statestore.roll_forward.plan import InputLog
from statestore.savepoints import bookkeeper

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCRATCH = "/.rehearsals"
"""Where checkpoints of a rehearsal are in a tree on BookKeeper."""
JOB = "live job"
RETENTION = "spark.sql.streaming.minBatchesToRetain"

Compared = Literal["same", "different", "gone", "unreadable"]
"""A restored state beside the live one's: "gone" where the live job no longer has that batch, and "unreadable" where
Spark can't give any store of both as a table."""


@dataclass(frozen=True)
class Live:
    """A job that runs, and how to look at it.

    Attributes:
        checkpoint: its address.
        output: its sink's; None: the sink isn't looked at.
        options: Hadoop options `fs.bk.…`.
    """

    checkpoint: str
    spark: SparkSession
    output: Output | None = None
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def hadoop(self) -> Hadoop:
        """Access to its files."""
        return Hadoop.of(self.spark, self.options)

    def log(self) -> InputLog:
        """Read its sink's control log."""
        assert self.output is not None
        with Client(self.output.cluster) as client:
            return self.output.log(client)


def rehearse(live: Live, acts: Acts) -> None:
    """Do it.

    Raises:
        InvalidInput: there is no checkpoint with a committed batch.
        EosError: something did not answer.
    """
    query = read_query_id(HadoopFiles(live.hadoop, live.checkpoint))
    topic = live.output.topic if live.output is not None else ""
    acts.write(JobEvent(JOB, stateful=True, topic=topic, checkpoint=live.checkpoint))
    with cut_of(live, acts) as (scratch, batch):
        compared = _look(live, acts, "a cut of the checkpoint", query, scratch, batch)
    _look_at_savepoint(live, acts, query)
    if compared == "gone":
        raise Unavailable(
            f"The live job no longer had the state of batch {batch} when its cut was to be compared with it. Try "
            f"again, or let it keep more batches ({RETENTION})"
        )


def _look_at_savepoint(live: Live, acts: Acts, query: str) -> None:
    """Check the newest savepoint. Most often the live job no longer has the state of its batch."""
    if not is_bk(live.checkpoint):
        acts.not_tested(
            "savepoints", "the checkpoint isn't on bk://; name the topic of a savepoint to total-loss drills"
        )
        return
    ready = [
        one
        for one in bookkeeper.list_savepoints(live.checkpoint, options=live.options)
        if one.query == query and one.state == "ready"
    ]
    if not ready:
        acts.not_tested("savepoints", "the query has none")
        return
    with _restored(live, acts, ready[-1].name) as scratch:
        _look(live, acts, f"savepoint {ready[-1].name}", query, scratch, ready[-1].batch_id)


@contextmanager
def cut_of(live: Live, acts: Acts) -> Iterator[tuple[str, int]]:
    """Make a checkpoint of the newest committed batch at a scratch place, and remove it at the end of the block.

    Yields:
        its address, and the batch.
    """
    if is_bk(live.checkpoint):
        name = f"rehearsal-{uuid.uuid4().hex[:12]}"
        with _removing(lambda: bookkeeper.delete(name, live.checkpoint, options=live.options)):
            with acts.step("make a savepoint") as note:
                made = bookkeeper.create(name, live.checkpoint, options=live.options, spark=live.spark)
                note.detail = f"batch {made.batch_id}, {made.files} files, {made.size} bytes"
            with _restored(live, acts, name) as scratch:
                yield scratch, made.batch_id
        return
    folder = Path(tempfile.mkdtemp(prefix="statestore-rehearsal-"))
    with _removing(lambda: shutil.rmtree(folder)):
        scratch = (folder / "checkpoint").as_uri()
        with acts.step("copy the checkpoint") as note:
            copied = transfer.copy_checkpoint(live.hadoop, live.checkpoint, scratch)
            note.detail = f"batch {copied.batch_id}, {copied.files} files, {copied.bytes} bytes"
        yield scratch, copied.batch_id


@contextmanager
def _restored(live: Live, acts: Acts, name: str) -> Iterator[str]:
    scratch = BkAddress.parse(live.checkpoint, live.options).at(f"{SCRATCH}/{uuid.uuid4().hex[:12]}").uri
    with _removing(lambda: live.hadoop.delete(scratch, recursive=True)):
        with acts.step(f"restore savepoint {name}"):
            bookkeeper.restore(name, scratch, options=live.options, spark=live.spark)
        yield scratch


@contextmanager
def _removing(remove: Callable[[], object]) -> Iterator[None]:
    """Remove what the block has made, however it ends; what isn't there needn't be removed."""
    try:
        yield
    finally:
        with undisturbed(), suppress(InvalidInput):
            remove()


def _look(live: Live, acts: Acts, what: str, query: str, scratch: str, batch: int) -> Compared:
    """Check one restored checkpoint."""
    with acts.step(f"read every file of {what}") as note:
        # The live job runs: the state of each of its operators is there.
        operators = len(operator_ids(HadoopFiles(live.hadoop, live.checkpoint)))
        report = verify(scratch, spark=live.spark, options=live.options, operators=operators)
        note.detail = f"{len(report.findings)} findings"
    first = f"; the first: {report.findings[0]}" if report.findings else ""
    if report.answer == "unknown":
        raise Unavailable(f"Whether {what} can be resumed is not known: {note.detail}{first}")
    acts.check(f"{what} can be resumed", report.ok, note.detail + first)
    compared = compare(live, acts, what, scratch, batch)
    _hold_against_log(live, acts, what, query, scratch, batch)
    return compared


def _hold_against_log(live: Live, acts: Acts, what: str, query: str, scratch: str, batch: int) -> None:
    if live.output is None:
        acts.not_tested(f"the sink's log against {what}", "no sink was named: --sink and --service-url")
        return
    with acts.step(f"hold {what} against the sink's log") as note:
        log = live.log()
        try:
            ahead = lacked_by(HadoopFiles(live.hadoop, scratch), log, query, batch)
            note.detail = f"the output is {len(ahead)} batches ahead"
        except InvalidInput as error:
            acts.check(f"{what} can be brought in step with the output", False, str(error))
            return
    acts.check(f"{what} can be brought in step with the output", True, note.detail)
    if batch not in log.inputs:
        acts.not_tested(f"the input of batch {batch}", "the sink's log no longer holds its marker")


def compare(live: Live, acts: Acts, what: str, scratch: str, batch: int) -> Compared:
    """Compare a restored state with the live one's, store by store.

    A store that could be read of one of the two only tells nothing.
    """
    with acts.step(f"open the state of {what}") as note:
        restored = read_stores(live.spark, scratch, batch, live.options)
        rows = sum(content.rows for content in restored.contents.values())
        note.detail = f"batch {batch}: {rows} rows in {len(restored.contents)} stores"
    try:
        with acts.step("read the live state at the same batch"):
            there = read_stores(live.spark, live.checkpoint, batch, live.options)
    except Unavailable as error:
        acts.not_tested(f"{what} against the live state", str(error))
        return "gone"
    unread = {**there.unread, **restored.unread}
    for store, why in unread.items():
        acts.not_tested(f"the rows of {store}", why)
    stores = sorted({*restored.contents, *there.contents} - unread.keys())
    if unread and not stores:
        acts.not_tested(f"{what} against the live state", "none of its stores could be read of both")
        return "unreadable"
    differing = [
        f"{store}: {restored.contents.get(store)}, live {there.contents.get(store)}"
        for store in stores
        if restored.contents.get(store) != there.contents.get(store)
    ]
    detail = "; ".join(differing) or f"batch {batch}: {rows} rows, the same content"
    acts.check(f"the state of {what} is the live one's", not differing, detail)
    return "different" if differing else "same"

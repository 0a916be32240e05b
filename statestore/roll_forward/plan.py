"""The needs of a roll forward, and whether they are there: decided before anything is changed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from eos.commit.control_log import LogView, Marker, Record
from eos.commit.control_topic import control_topic_in
from eos.commit.log_reader import read_on
from eos.commit.retry import ONE_READ
from eos.config import Cluster
from eos.errors import TopicMissing
from eos.pulsar.net.client import Client
from eos.pulsar.wire.message_id import MessageId
from statestore.checkpoint import Files
from statestore.checkpoint.logs import OFFSETS, parse_offsets
from statestore.checkpoint.operators import PARTITIONS
from statestore.checkpoint.sources import numbers_of, source_logs
from statestore.errors import InvalidInput, Unreadable


@dataclass(frozen=True, slots=True)
class Output:
    """The batches that a sink has written, as its control log tells.

    Attributes:
        cluster: the sink's Pulsar cluster.
        name: the sink's.
        namespace: "tenant/namespace" of its control topic, which is its `control_namespace` or else its topic's.
            Default: public/default.
    """

    cluster: Cluster
    name: str
    namespace: str = "public/default"

    @property
    def topic(self) -> str:
        """The control topic."""
        return control_topic_in(self.namespace, self.name)

    def log(self, client: Client) -> InputLog:
        """Read the control log with the input of every batch that is still there.

        Raises TopicMissing, DamagedLog, NetworkError.
        """
        try:
            client.partitions(self.topic)
        except TopicMissing as error:
            raise TopicMissing(
                f"The sink {self.name} has no control log, {self.topic}. Look at the sink's name and at its namespace. "
                "If its query has never run with it, as after a bootstrap, there is no output to be in step "
                "with. Start the query on the checkpoint as it is"
            ) from error
        log = InputLog()
        read_on(client, self.topic, ONE_READ, log)
        return log


def behind(
    log: InputLog,
    query: str,
    batch: int,
    offsets: str | None = None,
    jumped: tuple[int, int] | None = None,
    *,
    known: bool = True,
) -> tuple[BatchInput, ...]:
    """Return the input of the batches that state at `batch` lacks, lowest first.

    Args:
        log: with the input of all batches that it still has.
        query: the id of the query whose state it is.
        batch: the newest that is in the state.
        offsets: the text of its file `offsets/<batch>`, where that is known.
        jumped: the batches in whose place its state was rewritten, as `Registration.jumped`.
        known: whether it is known what was jumped; if not, state that seems to be ahead of the output is not refused.

    Raises:
        InvalidInput: the state can't be brought in step: it is another query's, ahead of the output, of other input, or
            MARKERs are missing.
    """
    newest = _newest_of(log, query)
    own_batch = batch  # whose state it is
    if jumped is not None and jumped[1] == batch:
        own_batch = jumped[0] - 1
        if newest.batch_id == own_batch:
            return ()  # the batches after it read no input, and the query goes on with the one after them
        _refuse_continued(newest, own_batch, batch, offsets)
    if batch > newest.batch_id and not known:
        return ()
    if own_batch > newest.batch_id:
        raise InvalidInput(
            f"The state is at batch {own_batch}, and the output at batch {newest.batch_id}: batches "
            f"{newest.batch_id + 1} … {own_batch} are missing from the output, and rolling forward can't bring them "
            f"back. Restore a savepoint at batch {newest.batch_id} or before"
        )
    _refuse_other_input(log, newest, batch, offsets)
    missing = [number for number in range(batch + 1, newest.batch_id) if number not in log.inputs]
    if missing:
        raise InvalidInput(
            f"The state is at batch {batch}, the output at batch {newest.batch_id}, and the control log no longer "
            f"holds {len(missing)} of the batches between them, {missing[0]} the first. Their input is not known. "
            f"Restore a savepoint at batch {missing[-1]} or later. The sink's option markers_kept keeps more of them"
        )
    lacked = tuple(log.inputs[number] for number in range(batch + 1, newest.batch_id + 1))
    if offsets is not None and lacked:
        _refuse_unread(batch, offsets, lacked)
    return lacked


def _newest_of(log: InputLog, query: str) -> Marker:
    """Return the newest committed batch. Raises InvalidInput where there is none, or where it is another query's."""
    newest = log.newest
    if newest is None:
        raise InvalidInput(
            "The sink's control log holds no committed batch. There is no output to be in step with. Start the query "
            "on the checkpoint as it is: for a savepoint, restore it without --in-step"
        )
    if newest.query_id != query:
        raise InvalidInput(
            f"The sink's output is of query {newest.query_id}, and the state of query {query}. Name the "
            "sink of this query"
        )
    return newest


def _refuse_continued(newest: Marker, own_batch: int, batch: int, offsets: str | None) -> None:
    """Refuse rewritten state where the query has continued since. Args: also the batch whose state it was before."""
    if newest.batch_id > own_batch and (
        newest.batch_id <= batch or _partitions(offsets) != _partitions(newest.offsets)
    ):
        raise InvalidInput(
            f"The state was rescaled after batch {own_batch}, and the output is at batch {newest.batch_id}. The query "
            "has continued from the rescaled checkpoint, and its batches can't be run again with other "
            "partitions. Let that query end, and rescale its checkpoint again, to a new place"
        )


def _refuse_other_input(log: InputLog, newest: Marker, batch: int, offsets: str | None) -> None:
    """Refuse state that is not the one the output was made with, or that is in another number of partitions."""
    own = log.inputs.get(batch)
    if own is not None and offsets is not None and own.offsets != offsets:
        raise InvalidInput(
            f"Batch {batch} of this state and batch {batch} of the output read different input. This is not the state "
            "that the output belongs to. Restore another savepoint"
        )
    before, now = _partitions(offsets), _partitions(newest.offsets)
    if before != now and None not in (before, now):
        raise InvalidInput(
            f"The state has {before} partitions, and batch {newest.batch_id} of the output was written with {now}. The "
            "query was rescaled in between, and its batches can't be run again with other partitions. Restore a "
            "savepoint that was made after that, or start the query on the checkpoint that was rescaled"
        )


def _refuse_unread(batch: int, offsets: str, lacked: tuple[BatchInput, ...]) -> None:
    """Refuse to run again the first batch that read of a source: where it began is in no offsets."""
    try:
        before = parse_offsets(OFFSETS, offsets.encode()).of_sources
        first = next((one for one in lacked if _reads_first(before, one.offsets)), None)
    except Unreadable:
        return
    if first is not None:
        raise InvalidInput(
            f"At batch {batch} nothing was read of a source yet, as of one that was added later, or after a bootstrap, "
            f"and batch {first.batch_id} of the output began it where the source's own options said then, which is "
            f"written nowhere. It can't be run again with the same input. Restore a savepoint at batch "
            f"{first.batch_id} or later; without one, begin anew with a new checkpoint and a new name of the sink"
        )


def _reads_first(before: Mapping[str, str | None], after: str) -> bool:
    now = parse_offsets(OFFSETS, after.encode()).of_sources
    return any(read is not None and before.get(folder) is None for folder, read in now.items())


def _partitions(offsets: str | None) -> str | None:
    """How many partitions the state has, by a batch's offsets; None: they don't say."""
    try:
        return None if offsets is None else parse_offsets(OFFSETS, offsets.encode()).conf.get(PARTITIONS)
    except Unreadable:
        return None


def numbered(before: str | None, after: str) -> dict[str, int]:
    """Return the logs that a roll forward needs of sources whose offsets are mere numbers of their own log's entries.

    Spark's file source is one: which files an entry stands for is in its log only.

    Args:
        before, after: the texts of the first and the last batch's offsets; before None: not known.

    Returns:
        The log's folder, relative to the checkpoint, and the newest entry that is needed.
    """
    known = {} if before is None else numbers_of(parse_offsets(OFFSETS, before.encode()))
    wanted = numbers_of(parse_offsets(OFFSETS, after.encode()))
    return {folder: number for folder, number in wanted.items() if known.get(folder) != number}


def check_sources(files: Files, place: str, needed: Mapping[str, int]) -> None:
    """Refuse logs of sources that don't hold what a roll forward needs.

    Args:
        files: the original checkpoint; place: its address.
        needed: from `numbered`.

    Raises:
        InvalidInput: a log doesn't reach so far, or has a hole.
    """
    if not needed:
        return  # the original may be lost: it is not asked for then
    logs = source_logs(files)
    for folder, number in needed.items():
        log = logs.get(folder)
        if log is None or log.newest < number or log.gaps:
            newest = -1 if log is None else log.newest
            wrong = "has a hole" if log and log.gaps else f"ends at {newest}" if newest >= 0 else "is missing"
            raise InvalidInput(
                f"The source of {folder} is one whose offsets are numbers in a log of its own, as files are: entry "
                f"{number} must be in {place}/{folder}, and the log there {wrong}. Name the "
                "checkpoint that the output was written from, or a copy of its folder sources (--source-logs). Without "
                "it the batches can't be run again"
            )


@dataclass(frozen=True, slots=True)
class BatchInput:
    """The input that a committed batch has read.

    Attributes:
        batch_id: of the batch.
        offsets: the text of the checkpoint's file `offsets/<batchId>`.
    """

    batch_id: int
    offsets: str


@dataclass
class InputLog(LogView):
    """The fold of a whole log.

    Attributes:
        inputs: of each batch whose MARKER is still there, by its id, oldest first.
    """

    retain: int = sys.maxsize
    inputs: dict[int, BatchInput] = field(default_factory=dict)

    def apply(self, record: Record, position: MessageId) -> None:
        """Add the next record. Raises what `LogView.apply` does."""
        super().apply(record, position)
        if isinstance(record, Marker):
            self.inputs[record.batch_id] = BatchInput(record.batch_id, record.offsets)

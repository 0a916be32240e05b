"""Whether readers find what a sink's markers promise: each batch's rows once, and none of an aborted transaction.

A MARKER names the rows of its batch by topic, and each stored entry names its transaction. So every reader of the
topics can count the rows of every batch, whatever else is in them. Three things can be wrong: rows are missing, there
are too many, or rows are readable whose transaction left no MARKER.

Rows that are missing may have been deleted by retention. They were not if the topic still has what was stored before
them: topics are deleted from their beginning on. So each partition must begin with an entry of an earlier batch, or
with one of somebody else that was published no later than the youngest entry of the batches before; otherwise it can't
be known. Of the sink's own batches the log knows the order: their times are of several machines' clocks.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from eos.commit.control_log import Intent, Marker, Record
from eos.commit.ports import MessagePort
from eos.config import Cluster
from eos.doctor.sinks import EMPTY_LOG, log_of, read
from eos.errors import TopicMissing
from eos.inspect.deletions import MissingEntries
from eos.inspect.rows import TopicRows
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.wire.txn import TxnId

_TRIES, _PAUSE_S = 5, 1.0  # a committed batch takes a moment to become readable on each of its topics
Progress = Callable[[str, int], None]


class AuditVerdict(StrEnum):
    """The fault of a batch on a topic."""

    MISSING = "missing"
    TOO_MANY = "too many"
    ABORTED = "aborted, but readable"
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """A batch whose rows on a topic are not what its MARKER says.

    Attributes:
        topic: the whole topic.
        txn: the transaction.
        promised, found: rows.
    """

    verdict: AuditVerdict
    batch_id: int
    topic: str
    txn: TxnId
    promised: int
    found: int


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of the comparison.

    Attributes:
        batches: the committed ones whose markers are retained.
        rows: what they promise, over all topics.
        discrepancies: by batch; none if readers find what was promised.
        missing: entries of the topics that were not delivered since they are lost, or may be; in words.
        problem: why the log does not tell what was promised; "" where it does.
    """

    batches: int
    rows: int
    topics: tuple[str, ...]
    discrepancies: tuple[Discrepancy, ...]
    missing: tuple[str, ...] = ()
    problem: str = ""


@dataclass
class _Log:
    """The content of the log: markers in order, and transactions that left none."""

    markers: dict[TxnId, Marker] = field(default_factory=dict)
    intents: dict[TxnId, Intent] = field(default_factory=dict)

    def note(self, record: Record, message: MessagePort) -> None:
        if isinstance(record, Marker):
            # A log may hold thousands that name thousands of topics: what is not compared is not kept.
            rows = {sys.intern(topic): count for topic, count in record.rows.items()}
            self.markers[record.txn] = replace(record, rows=rows, bytes={}, offsets="")
        elif isinstance(record, Intent):
            self.intents[record.txn] = record

    def aborted(self, unfinished: Intent | None) -> dict[TxnId, Intent]:
        left = {txn: intent for txn, intent in self.intents.items() if txn not in self.markers}
        if unfinished is not None:  # it may be committed while we look
            left.pop(unfinished.txn, None)
        return left

    def topics(self) -> list[str]:
        return sorted({topic for marker in self.markers.values() for topic in marker.rows})


@dataclass(frozen=True, slots=True)
class _First:
    """The first entry of a partition. Attributes: at_ms: when it was published; txn: its transaction, if it has one."""

    at_ms: int
    txn: TxnId | None

    def before(self, place: int, places: Mapping[TxnId, int], before_ms: int) -> bool:
        """Whether it is older than a batch.

        Args: the batch's place among those of the log; their places; when the last entry before it was published.
        """
        own = None if self.txn is None else places.get(self.txn)
        return self.at_ms <= before_ms if own is None else own < place


@dataclass
class _Stored:
    """The content of a topic.

    Attributes:
        rows: by transaction.
        newest_ms: when the last entry of a transaction was published.
        begins: the first entry of each partition; None: it holds none, or may have lost some meanwhile.
        missing: as of `Audit`.
    """

    rows: Counter[TxnId] = field(default_factory=Counter)
    newest_ms: dict[TxnId, int] = field(default_factory=lambda: defaultdict(int))
    begins: list[_First | None] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def audit(
    client: Client,
    cluster: Cluster,
    name: str,
    namespace: str,
    progress: Progress = lambda topic, entries: None,
    admin: Admin | None = None,
) -> Audit:
    """Count what readers find of the batches that a sink's log retains. The query may run meanwhile.

    Args:
        client: of the cluster.
        name: the sink's.
        namespace: "tenant/namespace" of its control topic.
        progress: called with the topic, and how many of its entries were read.
        admin: tells a lost ledger from one whose transactions were aborted; None: that can't be known.

    Raises:
        InvalidInput: there is no such sink.
        DamagedLog, NetworkError: its log, or a topic, can't be read, or the log has lost its beginning.
    """
    log = _Log()
    view = read(client, log_of(client, name, namespace), log.note)
    view.check_whole(None)
    aborted = log.aborted(view.unfinished)
    stored: dict[str, _Stored] = {}
    found: list[Discrepancy] = []
    topics = log.topics()
    for _ in range(_TRIES):
        for topic in topics:
            stored[topic] = _count(cluster, topic, progress, admin)
        found = list(_compared(log, aborted, stored))
        topics = sorted({one.topic for one in found if one.verdict is AuditVerdict.MISSING})
        if not topics:
            break
        time.sleep(_PAUSE_S)
    found.sort(key=lambda one: (one.batch_id, one.topic))
    promised = sum(sum(marker.rows.values()) for marker in log.markers.values())
    missing = tuple(words for one in stored.values() for words in one.missing)
    problem = EMPTY_LOG if view.empty else ""
    return Audit(len(log.markers), promised, tuple(log.topics()), tuple(found), missing, problem)


def _count(cluster: Cluster, topic: str, progress: Progress, admin: Admin | None) -> _Stored:
    missing = MissingEntries(admin)
    stored = _Stored(missing=missing.noted)
    lost: list[str] = []
    rows = TopicRows(
        cluster, topic, "earliest", lost.append, kind_of=missing.kind_of, may_pass_over=missing.may_pass_over
    )
    begins: dict[str, _First] = {}
    read_already = 0
    try:
        for partition, entries in rows.entries():
            for entry in entries:
                metadata, txn = entry.metadata, TxnId.of(entry.metadata)
                begins.setdefault(partition, _First(metadata.publish_time, txn))
                if txn is not None:
                    stored.rows[txn] += entry.num_messages
                    stored.newest_ms[txn] = max(stored.newest_ms[txn], metadata.publish_time)
            read_already += len(entries)
            progress(topic, read_already)
        stored.begins = [None if lost else begins.get(partition) for partition in rows.partitions()]
    except TopicMissing:
        stored.begins = [None]
    return stored


def _compared(log: _Log, aborted: dict[TxnId, Intent], stored: dict[str, _Stored]) -> Iterable[Discrepancy]:
    """Compare each batch on each topic. A sink may have thousands of topics, so a batch looks at each of them once."""
    before_ms, places = 0, {txn: place for place, txn in enumerate(log.markers)}
    for txn, marker in log.markers.items():
        for topic, here in stored.items():
            promised, found = marker.rows.get(topic, 0), here.rows[txn]
            if promised != found:
                whole = all(first is not None and first.before(places[txn], places, before_ms) for first in here.begins)
                short = AuditVerdict.MISSING if whole else AuditVerdict.UNKNOWN
                verdict = AuditVerdict.TOO_MANY if found > promised else short
                yield Discrepancy(verdict, marker.batch_id, topic, txn, promised, found)
        before_ms = max([before_ms, *(here.newest_ms.get(txn, 0) for here in stored.values())])
    for txn, intent in aborted.items():
        for topic, here in stored.items():
            if here.rows[txn]:
                yield Discrepancy(AuditVerdict.ABORTED, intent.batch_id, topic, txn, 0, here.rows[txn])


def summary(found: Audit) -> dict[str, object]:
    """The output of `eos sink verify --json`."""
    return {
        "batches": found.batches,
        "rows": found.rows,
        "topics": list(found.topics),
        "missing_entries": list(found.missing),
        "problem": found.problem or None,
        "discrepancies": [
            {
                "verdict": str(one.verdict),
                "batch_id": one.batch_id,
                "topic": one.topic,
                "transaction": str(one.txn),
                "promised": one.promised,
                "found": one.found,
            }
            for one in found.discrepancies
        ],
    }

"""The sink's control topic: what its records say, and what they add up to.

Three kinds of record, one JSON object each, with a version and a running number:

    OWNER    plain                    a run of the query took the sink over
    INTENT   plain                    a transaction was opened for a batch; written before any data
    MARKER   inside the transaction   the batch is complete; readable exactly when it is committed

A MARKER is unreadable while its transaction is open, readable at once after the commit, and gone
after an abort. So the log answers what the coordinator can't: whether a batch is committed.

The running number grows along the log. Aborted markers leave gaps, and a record that was written
while others were hidden may repeat their number; so it shows only whether the log's *end* is there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from eos.commit.decision import Known, Past, digest
from eos.commit.registration import Registration
from eos.errors import DamagedLog, InvalidInput, NewerVersion
from eos.json_reader import read_json
from eos.pulsar.wire.message_id import EARLIEST, MessageId
from eos.pulsar.wire.txn import TxnId

VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class OwnerRecord:
    """A run of the query has taken the sink over.

    Attributes:
        number: running number of the record.
        query_id, run_id: of Spark.
        coordinator: index of the transaction coordinator that the sink always uses.
        topic_epoch: the control topic's, as the broker counted it.
        begins: the log was empty when this run began to take it over.
        expired: the position of the newest marker that is not retained. Reading may begin after it. None: at the
            beginning.
        cluster: the cluster that the log is on, for people who read it; None where it is not known.
    """

    number: int
    query_id: str
    run_id: str
    coordinator: int
    topic_epoch: int
    begins: bool = False
    expired: MessageId | None = None
    cluster: str | None = None


@dataclass(frozen=True, slots=True)
class Intent:
    """A transaction was opened for a batch.

    Attributes:
        number: running number of the record.
        query_id, run_id, batch_id: of Spark.
        attempt: counts the transactions of this batch in this run, from 1.
        txn: the transaction.
        principal: who opened it, or None where that is not known.
        expired: as in `OwnerRecord`.
    """

    number: int
    query_id: str
    run_id: str
    batch_id: int
    attempt: int
    txn: TxnId
    principal: str | None
    expired: MessageId | None = None


@dataclass(frozen=True, slots=True)
class Marker:
    """A batch is complete: committed, when this can be read.

    Attributes:
        number ... principal: as in `Intent`.
        rows, bytes: by topic, what the batch wrote.
        offsets: the unchanged text of the checkpoint's file `offsets/<batchId>`. For a job its description by
            `eos.sinks.job`.
        expired: as in `OwnerRecord`.
    """

    number: int
    query_id: str
    run_id: str
    batch_id: int
    attempt: int
    txn: TxnId
    principal: str | None
    rows: Mapping[str, int]
    bytes: Mapping[str, int]
    offsets: str
    expired: MessageId | None = None


Record = OwnerRecord | Intent | Marker
_KINDS: Final[dict[str, type[OwnerRecord] | type[Intent] | type[Marker]]] = {
    "owner": OwnerRecord,
    "intent": Intent,
    "marker": Marker,
}
_NAMES: Final = {kind: name for name, kind in _KINDS.items()}

WAYS_OUT: Final = (
    " Writing on could repeat batches that are committed. Find out which rows readers have. Then either"
    " give the sink a new name and delete eos-sink.json from the checkpoint, or restore the control topic"
)


def deleted(topic: str) -> DamagedLog:
    """Return the error for a control topic that held records, and is no longer there."""
    return DamagedLog(f"the control log {topic} is gone. The topic was deleted.{WAYS_OUT}")


def unreadable(why: str) -> DamagedLog:
    """Return the error for a control topic with an entry that nobody can read. Args: names the entry."""
    return DamagedLog(
        f"a record of the control log can't be read: {why}. Another program writes to this topic, or what is stored of"
        f" it is damaged.{WAYS_OUT}"
    )


def lost_marker(topic: str, batch_id: int) -> DamagedLog:
    """Return the error for a control log that no longer has a MARKER which its driver knows."""
    return DamagedLog(
        f"the control log {topic} no longer has the MARKER of batch {batch_id}, which is committed. A ledger of"
        f" the topic is lost, and the broker passes over it, or a command deleted records.{WAYS_OUT}"
    )


_COUNTS: Final = ("rows", "bytes")
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    **dict.fromkeys(("number", "batch_id", "attempt", "coordinator", "topic_epoch"), (int,)),
    **dict.fromkeys(("query_id", "run_id", "offsets"), (str,)),
    **dict.fromkeys(_COUNTS, (dict,)),
    "principal": (str, type(None)),
}


def _check_types(fields: Mapping[str, Any]) -> None:
    """Raise TypeError for a field that is not of its type. The commands would stumble over the record otherwise."""
    for name in fields.keys() & _TYPES.keys():
        if not isinstance(fields[name], _TYPES[name]):
            raise TypeError(f"{name} is {type(fields[name]).__name__}")
        if name in _COUNTS and not all(isinstance(count, int) for count in fields[name].values()):
            raise TypeError(f"{name} has a value that is not a whole number")


def encode(record: Record) -> bytes:
    """Write a record as JSON."""
    fields: dict[str, Any] = {name: getattr(record, name) for name in record.__slots__}
    if (expired := fields.pop("expired")) is not None:
        fields["expired"] = [expired.ledger, expired.entry]
    if isinstance(record, OwnerRecord):
        if record.cluster is None:
            del fields["cluster"]
    else:
        fields["txn"] = str(record.txn)
    if isinstance(record, Marker):
        fields |= {"rows": dict(record.rows), "bytes": dict(record.bytes), "sha256": digest(record.offsets)}
    return json.dumps({"v": VERSION, "kind": _NAMES[type(record)], **fields}, separators=(",", ":")).encode()


def decode(data: bytes) -> Record:
    """Read a record. Fields that this version does not know are ignored: what must not be is another `VERSION`.

    Raises NewerVersion for a record of a newer version, DamagedLog for anything else that is not a record.
    """
    try:
        fields = read_json(data)
        version, kind = fields.pop("v"), fields.pop("kind")
    except (ValueError, KeyError, AttributeError, TypeError) as why:
        raise DamagedLog(
            f"the control topic contains a record that eos did not write: {bytes(data[:60])!r}. Something else writes"
            f" to this topic.{WAYS_OUT}"
        ) from why
    if isinstance(version, int) and version > VERSION:
        raise NewerVersion(
            f"a record of the control log has version {version}, and this library reads version {VERSION}."
            " A newer version of the library has used the sink. The log is not damaged. Use that version, or a newer"
            " one, and do not delete the control topic"
        )
    if version != VERSION:
        raise DamagedLog(
            f"a record of the control log has version {version!r}, and this library reads version {VERSION}."
            f" No version of the library writes such a record. Something else writes to this topic.{WAYS_OUT}"
        )
    try:
        wants = _KINDS[kind]
        if wants is not OwnerRecord:
            fields["txn"] = TxnId.parse(fields["txn"])
        if wants is Marker and fields.pop("sha256") != digest(fields["offsets"]):
            raise DamagedLog(
                f"the MARKER of batch {fields['batch_id']} does not match the checksum of its offsets.{WAYS_OUT}"
            )
        _check_types(fields)
        if fields.get("expired") is not None:
            ledger, entry = map(int, fields["expired"])
            fields["expired"] = MessageId(ledger, entry)
        return wants(**{name: value for name, value in fields.items() if name in wants.__slots__})
    except DamagedLog:
        raise
    except (KeyError, TypeError, ValueError, InvalidInput, AttributeError) as why:
        raise DamagedLog(
            f"a record of the control log lacks what it must have: {bytes(data[:200])!r}: {why}.{WAYS_OUT}"
        ) from why


@dataclass(slots=True)
class LogView:
    """The fold of the records read so far, in the order of the log.

    Attributes:
        retain: how many of the newest markers are retained.
        retain_since: retain all markers from this batch on as well, or None.
        begun: the first record says that nothing came before it; None when there is no record.
        last_number: the highest number so far; 0 when there is no record.
        first_owner, owner, intent: the first and the last OWNER, the last INTENT.
        newest: the MARKER of the newest committed batch.
        markers: what the decision table asks of the retained markers, by batch id, oldest first. Their rows by topic
            and their offsets are not kept: of 10,000 topics they take a mebibyte for each batch.
        expired: the position of the newest marker that is no longer retained. The fold may begin after it.
        read_to: the position of the last message that was read.
    """

    retain: int = 1000
    retain_since: int | None = None
    begun: bool | None = None
    last_number: int = 0
    first_owner: OwnerRecord | None = None
    owner: OwnerRecord | None = None
    intent: Intent | None = None
    newest: Marker | None = None
    markers: dict[int, Past] = field(default_factory=dict)
    expired: MessageId | None = None
    read_to: MessageId = EARLIEST
    _positions: dict[int, MessageId] = field(default_factory=dict)

    def apply(self, record: Record, position: MessageId) -> None:
        """Add the next record. Raises DamagedLog when it shows that exactly-once was broken."""
        if self.begun is None:
            self.begun = isinstance(record, OwnerRecord) and record.begins
        self.last_number = max(self.last_number, record.number)
        match record:
            case OwnerRecord():
                self.first_owner = self.first_owner or record
                self.owner = record
            case Intent():
                self.intent = record
            case Marker():
                self._mark(record, position)
        self.read_to = position

    def pass_over(self, position: MessageId) -> None:
        """Go on after a message that is not a record of this log."""
        self.read_to = position

    def _mark(self, marker: Marker, position: MessageId) -> None:
        newest = self.newest
        if newest is not None and marker.batch_id <= newest.batch_id:
            raise DamagedLog(
                f"the control log has a MARKER of batch {marker.batch_id} (transaction {marker.txn}) after the one of"
                f" batch {newest.batch_id} (transaction {newest.txn}). A batch was committed twice or out of order."
                f" Another program writes to this control topic, or this is a defect of the library.{WAYS_OUT}"
            )
        self.newest = marker
        self.markers[marker.batch_id] = Past(marker.batch_id, marker.query_id, digest(marker.offsets), marker.principal)
        self._positions[marker.batch_id] = position
        while len(self.markers) > self.retain:
            oldest = next(iter(self.markers))
            if self.retain_since is not None and oldest >= self.retain_since:
                break
            del self.markers[oldest]
            self.expired = self._positions.pop(oldest)

    @property
    def empty(self) -> bool:
        """True when there was no record at all."""
        return self.begun is None

    @property
    def unfinished(self) -> Intent | None:
        """The last INTENT, unless its own transaction left a MARKER."""
        newest = self.newest
        if self.intent is None or (newest is not None and newest.txn == self.intent.txn):
            return None
        return self.intent

    @property
    def newest_at(self) -> MessageId | None:
        """Where the MARKER of the newest committed batch lies."""
        return None if self.newest is None else self._positions[self.newest.batch_id]

    @property
    def coordinator(self) -> int | None:
        """The coordinator that the sink was bound to at its first use.

        The coordinator of records that were written with it counts more than that of an OWNER. A driver that took over
        a frozen log, and could not see the first OWNER, announces a guess.
        """
        said = self.newest or self.intent
        if said is not None:
            return said.txn.coordinator
        return None if self.first_owner is None else self.first_owner.coordinator

    @property
    def known(self) -> Known:
        """The view as the decision table wants it."""
        newest, intent, first = self.newest, self.intent, self.first_owner
        said = newest or intent or first
        return Known(
            query_id=None if said is None else said.query_id,
            marker=None if newest is None else self.markers[newest.batch_id],
            intent=None
            if intent is None
            else Past(intent.batch_id, intent.query_id, principal=intent.principal, ended=self.unfinished is None),
        )

    def check_whole(self, registered: Registration | None) -> None:
        """Refuse a log whose end or beginning is missing. Raises DamagedLog.

        Only records that were readable are ever registered, and what was readable stays so. Retention drops
        the beginning, but never the newest markers: a beginning that is gone with no marker left was expired.
        """
        if registered is not None and self.last_number < registered.last_number:
            what = "is empty" if self.empty else f"ends with record {self.last_number}"
            raise DamagedLog(
                f"the control log {registered.control_topic} {what}, and this query has seen its record"
                f" {registered.last_number}. The topic was deleted, or a message TTL or a backlog quota expired it."
                + WAYS_OUT
            )
        if self.begun is False and not self.markers:
            raise DamagedLog(
                "the beginning of the control log is gone, and it holds no MARKER. The topic was deleted, or a"
                " message TTL or a backlog quota expired its records." + WAYS_OUT
            )

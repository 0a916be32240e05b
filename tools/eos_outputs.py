"""The type of what each command of `eos` prints with --json, where that is not a dataclass of the code.

`tools/output_schemas.py` makes schemas of them. Without `annotations` from `__future__`, since a TypedDict does not see
NotRequired in a text.
"""

from typing import Literal, NotRequired, TypedDict

from eos.doctor.abort import AbortOutcome
from eos.doctor.check import Check
from eos.doctor.doctor import ReaderState
from eos.doctor.leftovers import Leftover
from eos.doctor.sinks import SinkStatus
from eos.inspect.audit import AuditVerdict
from eos.local.member import MemberState


class HeldUp(TypedDict):
    """A partition whose readers wait.

    Attributes:
        state: "waiting": a coordinator has the transaction open; "frozen": no coordinator knows it any longer;
            "unrecovered": a policy keeps the broker from finding out which transactions are open.
        transaction: the transaction that readers wait for; null where it is not known.
        age_s: for how many seconds it is open; null where that is not known, as the next two.
        opened_ms: when it was opened, in milliseconds since 1970.
        ttl_ms: milliseconds after which it ends by itself.
        sink: the sink that opened it; null where no log names it, as the next three.
        committed: whether the sink's log has the batch as committed.
        remedy: what to do, in a sentence.
    """

    partition: str
    state: ReaderState
    transaction: str | None
    age_s: float | None
    opened_ms: int | None
    ttl_ms: int | None
    sink: str | None
    batch_id: int | None
    query_id: str | None
    committed: bool | None
    remedy: str


class Examination(TypedDict):
    """The result of a look at readers and at what sinks depend on.

    Attributes:
        held_up: partitions whose readers wait for at least --older-than.
        younger: how many more wait for a shorter time.
        checks: what was looked at besides.
        removed: with --remove-leftovers, the subscriptions that were deleted.
    """

    held_up: list[HeldUp]
    younger: int
    checks: list[Check]
    removed: NotRequired[list[Leftover]]


class Part(TypedDict):
    """One process of a cluster.

    Attributes:
        pid: its process; null where it does not run.
    """

    name: str
    state: MemberState
    pid: int | None
    address: str
    log: str


class Instance(TypedDict):
    """A local Pulsar, or a local cluster.

    Attributes:
        zookeeper: its address, and likewise the next.
        bookkeeper: of a single process, up to Pulsar 4.
        pid: of a single process.
        log: of a single process.
        token: of a single process with --auth token, where the token is.
        tls_trust_certs: of a single process with --tls, where its certificate is.
        metadata_service_uri: of a cluster, where its bookies are registered.
        bk_url: of a cluster, an address for state.
        parts: of a cluster.
        data: the folder of its data.
    """

    name: str
    running: bool
    service_url: str
    admin_url: str
    zookeeper: NotRequired[str]
    bookkeeper: NotRequired[str]
    pid: NotRequired[int]
    data: str
    log: NotRequired[str]
    token: NotRequired[str]
    tls_trust_certs: NotRequired[str]
    metadata_service_uri: NotRequired[str]
    bk_url: NotRequired[str]
    parts: NotRequired[list[Part]]


class Row(TypedDict):
    """A message. The command prints one on a line.

    Attributes:
        partition: the number of its partition; null on a topic without partitions.
        batch_index: its number in the entry; -1 where the entry is one message.
        publish_time_ms: when the producer sent it, in milliseconds since 1970.
        event_time_ms: the time that the producer gave; null where it gave none.
        key: its text, with bytes that are not UTF-8 as \\xNN.
        value: likewise.
    """

    partition: int | None
    ledger: int
    entry: int
    batch_index: int
    publish_time_ms: int
    event_time_ms: int | None
    key: str | None
    value: str | None
    properties: dict[str, str]


class Begun(TypedDict):
    """A batch that was begun and is not committed.

    Attributes:
        open: whether its transaction is open; null where that was not asked or is not known.
    """

    batch_id: int
    attempt: int
    transaction: str
    open: bool | None


class Sink(TypedDict):
    """A sink, by its control log.

    Attributes:
        status: "new": no batch was begun; "empty": the log has no records; "committed": the last batch that was begun
            is committed; "unfinished": it is not; "unreadable": see `problem`.
        query_id: of the run that took the sink over last; null where the log does not say, as `run_id`.
        batch_id: the newest committed batch; null where none is retained.
        rows: how many rows that batch has, over all topics.
        committed_ms: when it was committed, in milliseconds since 1970.
        owned_ms: when the sink was last taken over.
        problem: why the log cannot be read, or does not tell what the sink has done, or why the admin API does not tell
            whether the unfinished transaction is open.
    """

    name: str
    status: SinkStatus
    query_id: str | None
    run_id: str | None
    batch_id: int | None
    rows: int | None
    committed_ms: int | None
    owned_ms: int | None
    unfinished: Begun | None
    problem: str | None


class OwnerOfLog(TypedDict):
    """A run of the query has taken the sink over.

    Attributes:
        number: of the record.
        at_ms: when it was written, in milliseconds since 1970.
        coordinator: the transaction coordinator that the sink uses.
        topic_epoch: of the control topic, as the broker counts it.
        cluster: the cluster of the log; null where it is not known.
    """

    number: int
    at_ms: int
    kind: Literal["owner"]
    query_id: str
    run_id: str
    coordinator: int
    topic_epoch: int
    cluster: str | None


class IntentOfLog(TypedDict):
    """A batch is about to be written in a transaction.

    Attributes:
        principal: the role that opened the transaction; null where the broker asks for none.
    """

    number: int
    at_ms: int
    kind: Literal["intent"]
    query_id: str
    run_id: str
    batch_id: int
    attempt: int
    transaction: str
    principal: str | None


class MarkerOfLog(TypedDict):
    """A batch is committed.

    Attributes:
        rows: how many rows each topic got.
        bytes: how many bytes each topic got.
    """

    number: int
    at_ms: int
    kind: Literal["marker"]
    query_id: str
    run_id: str
    batch_id: int
    attempt: int
    transaction: str
    principal: str | None
    rows: dict[str, int]
    bytes: dict[str, int]


class WrongBatch(TypedDict):
    """A batch whose rows on a topic are not what its marker says.

    Attributes:
        promised: rows by the marker.
        found: rows that readers get.
    """

    verdict: AuditVerdict
    batch_id: int
    topic: str
    transaction: str
    promised: int
    found: int


class Audited(TypedDict):
    """The rows that readers get, held against a sink's log.

    Attributes:
        batches: how many committed batches were counted.
        rows: how many rows they have.
        missing_entries: what the brokers did not deliver, in words.
        problem: why nothing can be known; null where something is.
    """

    batches: int
    rows: int
    topics: list[str]
    missing_entries: list[str]
    problem: str | None
    discrepancies: list[WrongBatch]


class Aborted(TypedDict):
    """The result for a dead driver's transaction. All but `sink` and `outcome` are null where there was none."""

    sink: str
    outcome: AbortOutcome
    transaction: str | None
    batch_id: int | None
    attempt: int | None
    query_id: str | None


class Skipped(TypedDict):
    """The batch that was committed without rows."""

    sink: str
    batch_id: int
    query_id: str

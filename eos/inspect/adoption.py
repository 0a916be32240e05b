"""Whether a query that wrote by another sink can go on with this one, from its own checkpoint.

Spark hands over the batch after the last one that the old sink returned from. Nobody can say which rows of that batch
the old sink has written already. One can only see that nothing was published since the batch was planned, and only
where the topic still stores all that was published since (`eos.inspect.deletions`). Everything else that decides about
the change can be looked at: who still writes, which hash placed the keys, which schema the values have, and whether the
sink's name is free.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from eos.commit.control_topic import control_topic
from eos.config import KEY_HASHES, Cluster, KeyHash
from eos.doctor.check import Check, care, good, in_utc, unknown
from eos.doctor.sinks import SinkState, sink
from eos.errors import InvalidInput, NetworkError, TopicMissing
from eos.inspect.checkpoints import Checkpoint
from eos.inspect.deletions import published_since
from eos.inspect.rows import TopicRow, TopicRows
from eos.pulsar.net.admin import Admin, if_there
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.topics import namespace_of, partition_name
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.routing import partition_of

_LOOKED_AT = 50  # entries at the end of each partition, for their keys
_VALUE_FORMATS = {"JSON": "json", "AVRO": "avro", "PROTOBUF_NATIVE": "protobuf"}


@dataclass(frozen=True, slots=True)
class Adoption:
    """Things to know before the first start with this sink.

    Attributes:
        query_id: of the checkpoint.
        next_batch: the first batch that this sink will be handed.
        options: of `eos.sink`, as far as they follow from the topic.
        findings: what was looked at.
    """

    query_id: str
    next_batch: int
    options: dict[str, str]
    findings: tuple[Check, ...]


def adoption(client: Client, admin: Admin | None, checkpoint: Checkpoint, topic: str, name: str) -> Adoption:
    """Look at all that counts. Nothing is changed.

    Args:
        client: the cluster.
        admin: asked who writes to the topic; None: that can't be known.
        checkpoint: of the query that is to go on.
        topic: the full name of the topic that the old sink wrote to.
        name: the name that the sink is to have.

    Raises:
        InvalidInput: the checkpoint has a sink of this project already, or a batch in doubt that one without
            transactions has begun; the name can't name a sink, another query has it, or there are no transactions.
        DamagedLog: the control log of this name can't be read.
        NetworkError: the cluster did not answer, or the topic does not exist.
    """
    taken = _refuse(client, checkpoint, topic, name)
    partitions = client.partitions(topic)
    physical = [partition_name(topic, number) for number in range(partitions)] or [topic]
    schema = client.schema(topic)
    options = {"name": name, "topic": topic}
    if schema is not None:
        options["value_format"] = _VALUE_FORMATS.get(schema.kind, "schema")
    findings = [_last_batch(client.cluster, admin, checkpoint, topic), _writers(admin, physical)]
    if taken is not None and taken.problem is not None:
        findings.append(unknown("name", f"{taken.problem}. Choose another name, which no query has used."))
    if partitions > 1:
        keys, fitting = _hashes(client, physical)
        findings.append(_placing(keys, fitting, written=checkpoint.begun is not None))
        if fitting and fitting != list(KEY_HASHES):
            options["key_hash"] = fitting[0]
    return Adoption(checkpoint.query_id, checkpoint.next_batch, options, tuple(findings))


def _refuse(client: Client, checkpoint: Checkpoint, topic: str, name: str) -> SinkState | None:
    """Raise what stands in the way; return what the log of this name tells, None where there is none."""
    if checkpoint.registered is not None:
        raise InvalidInput(
            f'this checkpoint belongs to the sink "{checkpoint.registered.name}" already. Start its query with '
            "that name"
        )
    if checkpoint.unlogged is not None:
        checkpoint.unlogged.refuse_in_doubt(checkpoint.next_batch)
    client.coordinators()  # refuses a cluster without transactions
    log = control_topic(name, topic)  # refuses what can't name a sink
    try:
        client.partitions(log)
    except TopicMissing:
        return None
    taken = sink(client, name, namespace_of(topic))
    if taken.query_id not in (None, checkpoint.query_id):
        raise InvalidInput(
            f'the sink "{name}" belongs to query {taken.query_id}, and this checkpoint to query {checkpoint.query_id}. '
            "Choose another name. Two queries never share a sink"
        )
    return taken


def _last_batch(cluster: Cluster, admin: Admin | None, checkpoint: Checkpoint, topic: str) -> Check:
    about, begun = "last batch", checkpoint.begun
    if begun is None:
        return good(about, "No batch was begun. This sink is handed batch 0.")
    if checkpoint.committed == begun:
        said = f"The old sink returned from batch {begun}, the last one. This sink is handed batch {begun + 1}."
        return good(about, said)
    twice = "This sink writes it whole, so readers may see rows of this one batch twice."
    if checkpoint.begun_ms is None:
        said = f"The old sink did not return from batch {begun}: how much of it was written can't be known. {twice}"
        return unknown(about, said)
    when = in_utc(checkpoint.begun_ms)
    since = published_since(cluster, admin, topic, checkpoint.begun_ms)
    if since.stored == 0 and not since.doubts:
        said = (
            f"Batch {begun} was begun at {when}, and nothing was published since. If the clocks of the driver, of the "
            "old sink's tasks and of the cluster agree, none of it was written. This sink writes it whole."
        )
        return good(about, said)
    said = (
        f"Batch {begun} was begun at {when}, and the old sink did not return from it: how much of it was written "
        "can't be known."
    )
    if since.stored == 0:
        said += (
            f" The topic stores nothing that was published since, but may have deleted it: {since.doubt}. A consumer "
            f"that read the topic since {when} can tell whether it got rows of the batch."
        )
    elif since.doubts:
        said += f" At least {since.stored} messages were published since, by this query or by others. More may be gone."
    else:
        said += f" {since.stored} messages were published since, by this query or by others."
    return unknown(about, f"{said} {twice}")


def _writers(admin: Admin | None, physical: list[str]) -> Check:
    about = "producers"
    if admin is None:
        said = "Nobody asked who writes to the topic. Give --admin-url. The old query must have been stopped."
        return unknown(about, said)
    try:
        connected = sorted({producer for topic in physical for producer in if_there(admin.producers, topic) or ()})
    except NetworkError as error:
        return unknown(
            about, f"The producers of the topic are not told: {error}. The old query must have been stopped."
        )
    if not connected:
        return good(about, "No producer is connected to the topic now.")
    said = (
        f"Connected to the topic: {', '.join(connected)}. If the old query is among them, stop it first. Two queries "
        "on one checkpoint write everything twice."
    )
    return care(about, said)


def _hashes(client: Client, physical: list[str]) -> tuple[int | None, list[KeyHash]]:
    """Return how many keys were looked at, and the hashes that place each of them where it lies.

    None: no message is stored that could have one.
    """
    fitting, looked_at = list(KEY_HASHES), None
    for number, topic in enumerate(physical):
        rows = list(_last_rows(client, topic))
        keys = pa.array((row.key for row in rows if row.key is not None), pa.binary())
        looked_at = (looked_at or 0) + len(keys) if rows else looked_at
        fitting = [one for one in fitting if (partition_of(keys, len(physical), one) == number).all()]
    return looked_at, fitting


def _last_rows(client: Client, topic: str) -> Iterator[TopicRow]:
    try:
        with client.entry_reader(topic, None, permits=1) as reader:
            last, _ = reader.last_message_id()
    except TopicMissing:
        return  # the broker has removed the partition, since it held nothing
    if last is None:
        return
    start = EntryId(last.ledger, max(0, last.entry - _LOOKED_AT))
    yield from TopicRows(client.cluster, topic, f"{start.ledger}:{start.entry}", lambda lost: None).stored()


def _placing(keys: int | None, fitting: list[KeyHash], *, written: bool) -> Check:
    about = "keys"
    if keys is None and written:
        said = (
            "The topic stores no message, so which hash placed the keys of the old sink can't be known. If rows have "
            "keys, give key_hash= what the old sink used."
        )
        return unknown(about, said)
    if keys is None:
        return good(about, "The old sink has begun no batch, and the topic stores no message.")
    if keys == 0:
        return good(about, "The last messages have no keys.")
    if fitting:
        said = (
            f"{keys} keys of the last messages lie where key_hash={fitting[0]!r} puts them. Rows of a key stay there."
        )
        return good(about, said)
    said = (
        f"{keys} keys of the last messages lie where none of {', '.join(KEY_HASHES)} puts them. The old sink chose the "
        "partitions in a way of its own. Rows of a key will lie in another partition from now on. A reader that needs "
        "their order must have read the old ones first. Or give the column partition."
    )
    return care(about, said)

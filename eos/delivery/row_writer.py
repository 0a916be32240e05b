"""Rows in, acknowledged frames out. Tasks and the driver's small-batch path share it.

One `RowWriter` serves one task (or one small batch on the driver) inside one transaction:

    encode values → gather → route → add partitions → make frames → send → await receipts → give producers back

A crash anywhere in here leaves an open transaction that is not committed: the next owner of the sink aborts it. A send
after the driver has asked for the commit must never happen, since the broker would accept it and lose the batch. Hence
`finish()` waits for every receipt, and gives the producers back, which closes those of a task. Nothing is committed
before it returns.

Without a transaction no partition is added, and each frame is visible once the broker has it. The rest is the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby

import pyarrow as pa

from eos.config import Batching, CompressionOption, EncryptionKeys, KeyHash
from eos.delivery.abort_record import PATIENCE_S
from eos.delivery.encryption import Encryptor, encryptor_of
from eos.delivery.producers import FreshProducers
from eos.delivery.routing import Routed, Router
from eos.errors import InvalidInput, NotCommitted
from eos.pickling import PickledByName
from eos.pulsar.net.producer import Producer
from eos.pulsar.net.producer_group import give_up_producers, partition_counts
from eos.pulsar.protocol.producer import ProducerIdentity
from eos.pulsar.protocol.schemas import Registered
from eos.pulsar.protocol.topics import full_name, whole_topic
from eos.pulsar.wire.batch import DEFAULT_TARGET_BYTES, BatchEncoder, Chunk
from eos.pulsar.wire.columns import row_name
from eos.pulsar.wire.txn import TxnId
from eos.schema.description import described
from eos.schema.encoder import Encoder, PairEncoder, encoder_of
from eos.schema.errors import Unencodable
from eos.steps import Observer, Step, unobserved


@dataclass(frozen=True, slots=True)
class WriteSettings(PickledByName):
    """How rows become frames; picklable, sent to every task.

    Attributes:
        topic: the topic of rows without a `topic` column, or None.
        key_hash: which hash of the key picks the partition.
        compression: of each frame; "auto" decides for each of them.
        max_in_flight_bytes: payload bytes a task may have sent without a receipt.
        time_limit_s: seconds that the writing of one task may take: what its transaction lives; infinite without one.
            Default 600.
        schema: of the values of rows that name no topic. A column `value` that is not binary is encoded by it.
            Default: none.
        batching: whether the rows of a frame share their key, or each has a frame of its own. Default: neither.
        introduction: the writer's introduction to brokers. Default: none.
        chunking: whether a message that is too large for one entry is sent in several. Default: it is refused.
        encryption_keys: public keys. Frames are encrypted for each of them. Default none: frames go in the clear.
        observer: called with the writer's steps. Default: nothing is observed.
    """

    topic: str | None
    key_hash: KeyHash
    compression: CompressionOption
    max_in_flight_bytes: int
    time_limit_s: float = 600.0
    schema: Registered | None = None
    batching: Batching = "default"
    introduction: ProducerIdentity | None = None
    chunking: bool = False
    encryption_keys: EncryptionKeys = ()
    observer: Observer = unobserved

    def introduced(self, role: str, **properties: str) -> ProducerIdentity | None:
        """Return the introduction of a writer with this role."""
        return None if self.introduction is None else self.introduction.part(role, **properties)


@dataclass(frozen=True, slots=True)
class BatchTransaction:
    """The transaction a task writes into, or none, and what the driver knows for this try: its job carries it as text.

    Attributes:
        txn: its id; None: rows are written without one, and are visible at once.
        batch_id: of the micro-batch that it is for.
        partitions: how many partitions topics have, where the driver has asked already for this batch.
        frame_limits: bytes at which the frames of a topic are full, where refusals have taught that.
    """

    txn: TxnId | None
    batch_id: int
    partitions: Mapping[str, int] = field(default_factory=dict)
    frame_limits: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class WriteReport:
    """Rows, payload bytes and frames written, for each topic."""

    rows: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    frames: dict[str, int] = field(default_factory=dict)

    def add(self, topic: str, rows: int, size: int) -> None:
        """Count a frame for a topic, its rows and bytes."""
        self.merge(WriteReport({topic: rows}, {topic: size}, {topic: 1}))

    def merge(self, other: WriteReport) -> None:
        """Count what another report counted."""
        both = ((self.rows, other.rows), (self.bytes, other.bytes), (self.frames, other.frames))
        for ours, theirs in both:
            for topic, number in theirs.items():
                ours[topic] = ours.get(topic, 0) + number


class RowWriter:
    """Writes Arrow record batches of message columns into one transaction.

    Args:
        settings: how to write.
        transaction: where to write.
        producers: where its producers come from.
        first_partition: where this writer starts to spread keyless frames, so that
            many tasks don't all start at partition 0.
        first_row: the number of its first row, for messages about rows.
    """

    def __init__(
        self,
        settings: WriteSettings,
        transaction: BatchTransaction,
        producers: FreshProducers,
        first_partition: int = 0,
        first_row: int = 0,
    ) -> None:
        self._settings = settings
        self._to = transaction
        self._source = producers
        self._client = producers.client
        self._client.frame_limits.learn(transaction.frame_limits)
        self._partitions = dict(transaction.partitions)
        self._producers: dict[str, Producer] = {}
        self._opened: set[str] = set()  # topics with producers that were not kept from an earlier transaction
        self._encoders: dict[tuple[int, int | None], BatchEncoder] = {}
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_bytes = 0
        self._row = first_row
        self._keyed = settings.batching == "key-based"
        self._router = Router(settings.topic, settings.key_hash, self._keyed, self._partition_counts, first_partition)
        self._values: Encoder | None = None
        self._report = WriteReport()
        self._until = time.monotonic() + settings.time_limit_s
        # A quarter of the budget, so that rows being encoded and frames in flight stay within it together.
        self._gather_bytes = max(1, settings.max_in_flight_bytes // 4)

    @property
    def frame_limits(self) -> Mapping[str, int]:
        """The smaller frame limits of topics that its client has learned."""
        return self._client.frame_limits.learned

    @property
    def topics(self) -> set[str]:
        """The topics that it has producers for: until it is finished, all that it may have sent to."""
        return {whole_topic(physical) for physical in self._producers}

    @cached_property
    def _encryptor(self) -> Encryptor | None:
        """Made with the first frame: where a worker lacks the library for it, its task says so as of a wrong row."""
        keys = self._settings.encryption_keys
        return encryptor_of(keys) if keys else None

    def write(self, batch: pa.RecordBatch) -> None:
        """Take one record batch; send when enough has come together to fill frames.

        Raises:
            InvalidInput: a row can't be written as it is.
            NetworkError: a frame was refused, or its fate is unknown. This writer never sends it again.
        """
        if batch.num_rows == 0:
            return
        batch = self._encoded(batch)
        if self._gathered_bytes and self._gathered_bytes + batch.nbytes > self._gather_bytes:
            self._send_gathered()
        self._gathered.append(batch)
        self._gathered_bytes += batch.nbytes
        if self._gathered_bytes >= self._gather_bytes:
            self._send_gathered()

    def send_rest(self) -> WriteReport:
        """Send what has been gathered; return what was sent in all. `finish` is to follow."""
        self._send_gathered()
        return self._report

    def await_receipts(self) -> None:
        """Await the receipt of each frame that was sent so far. Raises what `Producer.flush` raises."""
        for producer in self._producers.values():
            producer.flush(self._until)

    def finish(self) -> None:
        """Await every receipt, and give every producer back. After any error `abandon` must follow."""
        observe, batch_id = self._settings.observer, self._to.batch_id
        observe(Step.ALL_SENT, "before", batch_id)
        self.refuse_a_topic_made_again()
        self.await_receipts()
        observe(Step.ALL_SENT, "after", batch_id)
        observe(Step.CLOSE_PRODUCERS, "before", batch_id)
        self._source.give_back(list(self._producers.values()))
        self._producers.clear()  # no longer this writer's: they may serve the next transaction
        observe(Step.CLOSE_PRODUCERS, "after", batch_id)

    def abandon(self) -> set[str]:
        """Give up the producers of a failed try: it sends nothing more.

        In a transaction the broker's confirmation of each close is awaited, for some seconds: an abort that comes
        before the first frame is stored would not be remembered. Returns the physical topics without it. It
        raises nothing.
        """
        producers = list(self._producers.values())
        if self._to.txn is None:
            for producer in producers:
                producer.abandon()
            return set()
        return {producer.topic for producer in give_up_producers(producers, time.monotonic() + PATIENCE_S)}

    def _encoded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with the bytes of its values, where it has the values themselves. Raises InvalidInput."""
        schema, place = self._settings.schema, batch.schema.get_field_index("value")
        if schema is None or _is_binary(batch.schema.types[place]):
            return batch
        if self._values is None:
            self._values = encoder_of(described(schema))
        values = batch.column(place)
        try:
            encoded = self._values.encode(values)
            if isinstance(self._values, PairEncoder) and self._values.separated:
                batch = batch.append_column("key", self._values.keys(values))
        except Unencodable as wrong:
            first = self._row + sum(before.num_rows for before in self._gathered)
            field = f"field {wrong.field!r} of its value" if wrong.field else "its value"
            raise InvalidInput(
                f"{row_name(batch, wrong.row, first)} can't be written by {schema}: {field}: {wrong.why}. Correct it, "
                "or leave the row out."
            ) from wrong
        return batch.set_column(place, "value", encoded)

    def _send_gathered(self) -> None:
        if not self._gathered:
            return
        rows = pa.Table.from_batches(self._gathered).combine_chunks().to_batches()
        self._gathered, self._gathered_bytes = [], 0
        for batch in rows:
            routed = self._router.route(batch, self._row)
            self._open(dict(zip(routed.names, routed.topics, strict=True)))
            self._send(routed)
            self._row += batch.num_rows

    def _partition_counts(self, topics: Sequence[str]) -> list[int]:
        new = [topic for topic in topics if topic not in self._partitions]
        self._partitions |= partition_counts(self._client, new)
        return [self._partitions[topic] for topic in topics]

    def refuse_a_topic_made_again(self) -> None:
        """Refuse rows of a topic that has other partitions by now, since it was deleted and made again.

        A broker makes what a producer asks for, also a partition that the topic no longer has, or a topic without
        partitions beside one with them (BrokerService.getTopic). Readers of the topic would never find these rows.
        It is asked while the producers are open: what is deleted later takes its rows with it in any case. Partitions
        that were added do no harm. Of a producer that was kept it is known, since a deletion closes it.

        Raises NotCommitted, and what asking for partitions raises.
        """
        then = {topic: self._partitions[topic] for topic in sorted(self._opened)}
        for topic, count in partition_counts(self._client, list(then)).items():
            if count < then[topic] or count > then[topic] == 0:
                raise NotCommitted(
                    f"{topic} had {then[topic]} partitions when its rows were sent, and has {count} now. It was deleted"
                    " and made again meanwhile, so readers would miss rows of this try"
                )

    def _open(self, topics: Mapping[str, str]) -> None:
        """Open producers for the new ones among these, and add them to the transaction, if there is one.

        Args: {physical topic: its topic, as it is routed to}.
        """
        new = sorted(topics.keys() - self._producers.keys())
        if not new:
            return
        # Opened first: no transaction ends that has a partition which takes no messages, as one that was terminated.
        self._open_all(new)
        self._opened |= {topics[one] for one in new if self._producers[one].is_unused}
        if self._to.txn is not None:
            self._add(self._to.txn, new)

    def _add(self, txn: TxnId, new: list[str]) -> None:
        self._settings.observer(Step.ADD_PARTITIONS, "before", self._to.batch_id)
        self._client.coordinator(txn.coordinator).add_partitions(txn, new)
        self._settings.observer(Step.ADD_PARTITIONS, "after", self._to.batch_id)

    def _open_all(self, new: list[str]) -> None:
        topic, schema = self._settings.topic, self._settings.schema
        full = None if topic is None or schema is None else full_name(topic)
        own = [one for one in new if whole_topic(one) == full]
        others = [one for one in new if whole_topic(one) != full]
        if own and schema is not None:
            self._keep(self._source.open(own, schema.declared))
        if others:
            self._keep(self._source.open(others))

    def _keep(self, opened: list[Producer]) -> None:
        self._producers |= {producer.topic: producer for producer in opened}

    def _send(self, routed: Routed) -> None:
        producers = [self._producers[name] for name in routed.names]
        limit = min(producer.max_message_size for producer in producers)
        rows, ends = routed.parts.rows, routed.parts.ends
        begin = 0
        # As a rule one encoder serves all topics: then their parts are encoded together.
        for encoder, run in groupby(range(len(ends)), lambda part: self._encoder(routed.topics[part], limit)):
            run_of = list(run)
            end = ends[run_of[-1]]
            of_run = encoder.chunks_of_parts(rows.slice(begin, end - begin), [ends[part] - begin for part in run_of])
            for place, chunk in of_run:
                part = run_of[place]
                self._send_chunk(routed.topics[part], producers[part], chunk)
            begin = end

    def _send_chunk(self, topic: str, producer: Producer, chunk: Chunk) -> None:
        first = not self._report.frames
        if first:
            self._settings.observer(Step.FIRST_SEND, "before", self._to.batch_id)
        sent = chunk if self._encryptor is None else self._encryptor.encrypted(chunk)
        producer.send(sent, self._to.txn, self._until)
        if first:
            self._settings.observer(Step.FIRST_SEND, "after", self._to.batch_id)
        self._report.add(topic, chunk.messages, chunk.rows_bytes)

    def _encoder(self, topic: str, max_message_size: int) -> BatchEncoder:
        learned = self._client.frame_limits.of(topic)
        if self._encryptor is not None:
            max_message_size -= self._encryptor.overhead
        key = (max_message_size, learned)
        if key not in self._encoders:
            target, compression = learned or DEFAULT_TARGET_BYTES, self._settings.compression
            cut_above = (learned or max_message_size) if self._settings.chunking else None
            self._encoders[key] = BatchEncoder(
                compression, max_message_size, target, self._keyed, cut_above, alone=self._settings.batching == "none"
            )
        return self._encoders[key]


def send_all(writer: RowWriter, batches: Iterable[pa.RecordBatch]) -> WriteReport:
    """Send every batch, for `RowWriter.finish` to follow, or `RowWriter.abandon` whatever goes wrong."""
    for batch in batches:
        writer.write(batch)
    return writer.send_rest()


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))

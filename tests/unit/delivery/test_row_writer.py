"""The writer of one task or small batch, against a scripted broker."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from eos.config import Batching
from eos.delivery.path import DriverPath
from eos.delivery.producers import FreshProducers, OpenProducers
from eos.delivery.row_writer import BatchTransaction, RowWriter, WriteSettings, send_all
from eos.errors import InvalidInput, NetworkError, NotCommitted, Unanswered
from eos.pulsar.net.client import Client
from eos.pulsar.net.in_flight import InFlight
from eos.pulsar.net.producer import Producer
from eos.pulsar.protocol.requests import Type
from eos.pulsar.protocol.topics import full_name
from eos.pulsar.wire.batch import FRAME_RESERVE, unpack
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.frames import Frame
from eos.pulsar.wire.pulsar_pb2 import ServerError
from eos.pulsar.wire.txn import TxnId
from eos.steps import WRITER_STEPS, Phase, Step
from tests.unit.pulsar.net.fake_broker import FakeBroker, Session, partitioned, receipt, refusing
from tests.unit.schema.registered import field, golden, record, registered
from tests.waiting import PATIENCE_S, until

MIB = 1 << 20
SETTINGS = WriteSettings("t", "murmur3", "none", MIB)
TRANSACTION = BatchTransaction(TxnId(0, 7), 3)
ROWS = pa.RecordBatch.from_pydict({"value": [b"a", b"b", b"c"]})


@pytest.fixture
def client(broker: FakeBroker) -> Iterator[Client]:
    with broker.client() as client:
        yield client


def writer(
    client: Client, settings: WriteSettings = SETTINGS, to: BatchTransaction = TRANSACTION, *, of_task: bool = False
) -> RowWriter:
    producers = FreshProducers if of_task else OpenProducers
    return RowWriter(settings, to, producers(client, settings.max_in_flight_bytes))


def test_nothing_is_finished_before_each_frame_has_its_receipt(broker: FakeBroker, client: Client) -> None:
    held: list[tuple[Session, Frame]] = []
    broker.handlers[Type.SEND] = lambda session, frame: held.append((session, frame))
    writing = writer(client)
    assert sum(send_all(writing, [ROWS]).rows.values()) == 3
    finished = threading.Event()

    def finish() -> None:
        writing.finish()
        finished.set()

    threading.Thread(target=finish, daemon=True).start()
    until(lambda: bool(held))
    assert not finished.wait(0.1)
    for session, frame in held:
        session.send(receipt(frame))
    assert finished.wait(PATIENCE_S)


def test_the_observer_is_called_before_and_after_each_step_of_the_writer(broker: FakeBroker, client: Client) -> None:
    seen: list[tuple[Step, Phase, int | None]] = []
    writing = writer(client, replace(SETTINGS, observer=lambda *step: seen.append(step)))
    send_all(writing, [ROWS])
    writing.finish()
    phases: tuple[Phase, Phase] = ("before", "after")
    assert seen == [(step, phase, TRANSACTION.batch_id) for step in WRITER_STEPS for phase in phases]


def test_the_report_counts_the_frames_of_each_topic_as_the_broker_gets_them(broker: FakeBroker, client: Client) -> None:
    writing = writer(client)
    rows = ROWS.append_column("topic", pa.array(["a", "b", "b"]))
    for _ in range(2):
        writing.write(rows)
        report = writing.send_rest()
    writing.finish()
    a, b = map(full_name, "ab")
    assert report.rows == {a: 2, b: 4}
    assert report.frames == {a: 2, b: 2}
    assert len(broker.commands(Type.SEND)) == 4


def test_after_a_failed_send_every_producer_is_given_up(broker: FakeBroker, client: Client) -> None:
    """By the caller of the writer: here the driver's path, as `eos.commit.attempt` uses it; a task does so too."""
    broker.handlers[Type.ADD_PARTITION_TO_TXN] = refusing(ServerError.InvalidTxnStatus)
    path = DriverPath(pa.Table.from_batches([ROWS]), SETTINGS, OpenProducers(client, MIB), {})
    path.abandon()  # nothing is open yet
    with pytest.raises(NetworkError, match="InvalidTxnStatus"):
        path.send(TRANSACTION.txn, TRANSACTION.batch_id)
    path.abandon()
    until(lambda: len(broker.commands(Type.CLOSE_PRODUCER)) == 1)


def test_after_a_missing_receipt_every_producer_is_given_up(
    broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.handlers[Type.SEND] = lambda session, frame: None
    writing = writer(client)
    send_all(writing, [ROWS.append_column("topic", pa.array(["a", "b", "b"]))])
    monkeypatch.setattr(InFlight, "patience", lambda *_: 0.0)
    with pytest.raises(Unanswered, match="no receipt for 1 frames on"):
        writing.finish()
    writing.abandon()

    def closed() -> bool:
        return {command.close_producer.producer_id for command in broker.commands(Type.CLOSE_PRODUCER)} == {0, 1}

    until(closed, "a producer was left open")


def test_writing_ends_with_the_life_of_its_transaction_though_receipts_keep_coming(
    broker: FakeBroker, client: Client
) -> None:
    sent: list[Frame] = []

    def late(session: Session, frame: Frame) -> None:
        def answer() -> None:
            with contextlib.suppress(OSError):
                session.send(receipt(frame))

        sent.append(frame)
        if len(sent) < 8:  # so that one is awaited for ever, however slow the machine
            threading.Timer(0.3 * len(sent), answer).start()

    broker.handlers[Type.SEND] = late
    writing = writer(client, replace(SETTINGS, time_limit_s=0.5))
    for _ in range(8):
        writing.write(ROWS)
        writing.send_rest()
    with pytest.raises(Unanswered, match=r"no receipt for \d frames on t from .* before the time given for it ended"):
        writing.finish()


def test_what_was_given_back_is_not_given_up(broker: FakeBroker, client: Client) -> None:
    """The MARKER may fail when the rows are finished: the producers are put by, and serve the next transaction."""
    kept = OpenProducers(client, MIB)
    for _ in range(2):
        path = DriverPath(pa.Table.from_batches([ROWS]), SETTINGS, kept, {})
        path.send(TRANSACTION.txn, TRANSACTION.batch_id)
        path.finish()
        path.abandon()
    assert len(broker.commands(Type.PRODUCER)) == 1
    asked = len(broker.commands(Type.PARTITIONED_METADATA))
    assert asked == 3, "the partitions once for each write, and once more where a producer was not kept"
    assert broker.commands(Type.CLOSE_PRODUCER) == []
    kept.close()
    until(lambda: len(broker.commands(Type.CLOSE_PRODUCER)) == 1)


def declared(broker: FakeBroker) -> dict[str, bytes]:
    """Return {topic: the definition of the schema that its producer declared}."""
    asked = [command.producer for command in broker.commands(Type.PRODUCER)]
    return {one.topic.rpartition("/")[2]: one.schema.schema_data for one in asked}


AVRO = registered("AVRO", record(field("a", "int"), field("b", ["null", "string"])))
TYPED = pa.RecordBatch.from_pydict(
    {"value": pa.array([{"a": 1, "b": "x"}, {"a": -1, "b": None}]), "key": pa.array([b"k1", b"k2"])}
)


def sent(broker: FakeBroker) -> list[bytes]:
    """Return the values that were sent."""
    return [value for one in entries(broker) for _, value in unpack(one.metadata, one.packed)]


def entries(broker: FakeBroker) -> list[Entry]:
    """Return what was sent."""
    return [one for frame in broker.received if frame.command.type == Type.SEND for one in frame.entries]


def test_values_are_encoded_by_the_schema_that_the_producer_declares(broker: FakeBroker, client: Client) -> None:
    writing = writer(client, replace(SETTINGS, schema=AVRO))
    assert send_all(writing, [TYPED]).rows == {"t": 2}
    writing.finish()
    assert sent(broker) == [b"\x02\x02\x02x", b"\x01\x00"]
    assert declared(broker) == {"t": AVRO.definition}


def test_values_that_are_bytes_are_declared_and_left_as_they_are(broker: FakeBroker, client: Client) -> None:
    writing = writer(client, replace(SETTINGS, schema=registered("JSON", record(field("a", "int")))))
    rows = ROWS.append_column("topic", pa.array(["t", "u", None]))
    send_all(writing, [rows])
    writing.finish()
    assert sorted(sent(broker)) == [b"a", b"b", b"c"]
    known = declared(broker)
    assert known["t"]
    assert not known["u"], "the schema is that of one topic"


def test_two_spellings_of_a_topic_are_one_topic_whose_rows_keep_their_order(broker: FakeBroker, client: Client) -> None:
    writing = writer(client, replace(SETTINGS, topic="persistent://public/default/t"))
    report = send_all(writing, [ROWS.append_column("topic", pa.array(["t", None, "public/default/t"]))])
    writing.finish()
    assert report.rows == {"persistent://public/default/t": 3}
    assert sent(broker) == [b"a", b"b", b"c"]


def test_a_topic_that_is_no_text_is_named_by_its_row(client: Client) -> None:
    topics = pa.array([b"t", b"\xff", b"t"]).view(pa.string())
    with pytest.raises(InvalidInput, match="row 1 has a topic that is not valid"):
        send_all(writer(client), [ROWS.append_column("topic", topics)])


@pytest.mark.parametrize("txn", [TxnId(0, 7), None])
@pytest.mark.parametrize("topic", ["non-persistent://public/default/u", "topic://public/default/u"])
def test_a_topic_that_stores_nothing_is_named_by_its_row_before_any_row_is_sent(
    broker: FakeBroker, client: Client, topic: str, txn: TxnId | None
) -> None:
    """A broker gives receipts for rows of such a topic, and drops them; no transaction ends that has it."""
    writing = writer(client, to=replace(TRANSACTION, txn=txn))
    with pytest.raises(InvalidInput, match=f'row 1 names the topic "{topic}", which is not persistent'):
        send_all(writing, [ROWS.append_column("topic", pa.array(["t", topic, None]))])
    assert broker.received == []


@pytest.mark.parametrize("topic", ["u-partition-0", "persistent://public/default/u-partition-12"])
def test_a_topic_that_is_a_partition_is_named_by_its_row(broker: FakeBroker, client: Client, topic: str) -> None:
    """`eos sink verify` would count the row twice: for the partition, and for the topic."""
    with pytest.raises(InvalidInput, match=rf'row 1 names the topic ".*{topic}", which is one partition.*`partition`'):
        send_all(writer(client), [ROWS.append_column("topic", pa.array(["t", topic, None]))])
    assert broker.received == []


def test_a_row_that_can_not_be_encoded_is_named_by_its_number_and_key(client: Client) -> None:
    writing = writer(client, replace(SETTINGS, schema=AVRO))
    wrong = pa.RecordBatch.from_pydict(
        {"value": pa.array([{"a": 1, "b": "x"}, {"a": None, "b": "x"}]), "key": pa.array([b"k1", b"k2"])}
    )
    writing.write(TYPED)
    writing.write(TYPED)
    with pytest.raises(
        InvalidInput,
        match=r'row 5 \(key "k2"\) can\'t be written by version 0 of .*: field \'a\' of its value: it is null, and',
    ):
        writing.write(wrong)


def test_the_key_of_a_separated_pair_is_the_messages_and_routes_it(broker: FakeBroker, client: Client) -> None:
    schema, value = golden("KEY_VALUE SEPARATED")
    keys = [*"abcdefgh" * 2, None]
    rows = pa.RecordBatch.from_pydict({"value": pa.array([{"key": key, "value": 7} for key in keys])})
    broker.handlers[Type.PARTITIONED_METADATA] = partitioned(2)
    writing = writer(client, replace(SETTINGS, schema=schema), replace(TRANSACTION, partitions={"t": 2}))
    send_all(writing, [rows])
    writing.finish()
    parts = [list(unpack(one.metadata, one.packed)) for one in entries(broker)]
    assert {payload for part in parts for _, payload in part} == {value}
    of_parts = [Counter(one.partition_key for one, _ in part if one.HasField("partition_key")) for part in parts]
    assert len(of_parts) == 2
    assert sum(of_parts, Counter()) == Counter(key.encode() for key in keys if key)
    assert all(set(part.values()) == {2} for part in of_parts), "a key is in one partition alone"


@pytest.mark.parametrize("partitions", [0, 2])
def test_a_frame_holds_one_key_where_batching_is_by_keys(broker: FakeBroker, client: Client, partitions: int) -> None:
    rows = pa.RecordBatch.from_pydict({"value": [*"0123"], "key": [*"abab"]})
    broker.handlers[Type.PARTITIONED_METADATA] = partitioned(partitions)
    writing = writer(
        client, replace(SETTINGS, batching="key-based"), replace(TRANSACTION, partitions={"t": partitions})
    )
    assert send_all(writing, [rows]).rows == {"t": 4}
    writing.finish()
    assert sorted(one.metadata.partition_key for one in entries(broker)) == [b"a", b"b"]
    assert sorted(sent(broker)) == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("batching", ["default", "key-based"])
def test_a_frame_holds_one_time_of_delivery(broker: FakeBroker, client: Client, batching: Batching) -> None:
    soon, later = 1_790_000_001_000, 1_790_000_002_000
    times = pa.array([soon, None, later, soon, -5, later], pa.int64())
    rows = pa.RecordBatch.from_pydict({"value": [*"012345"], "key": [*"aabbaa"], "deliver_at": times})
    writing = writer(client, replace(SETTINGS, batching=batching))
    assert send_all(writing, [rows]).rows == {"t": 6}
    writing.finish()
    found: dict[int | None, list[bytes]] = {}
    for one in entries(broker):
        at = one.metadata.deliver_at_time if one.metadata.HasField("deliver_at_time") else None
        values = b"".join(value for _, value in unpack(one.metadata, one.packed))
        found.setdefault(at, []).append(values)
    if batching == "default":
        assert found == {soon: [b"03"], None: [b"14"], later: [b"25"]}
    else:
        assert {at: sorted(one) for at, one in found.items()} == {
            soon: [b"0", b"3"],
            None: [b"14"],
            later: [b"2", b"5"],
        }


def test_a_row_with_an_impossible_time_of_delivery_is_named(client: Client) -> None:
    rows = pa.RecordBatch.from_pydict({"value": [*"01"], "deliver_at": [None, 253_402_300_800_000]})
    with pytest.raises(InvalidInput, match=r"row 1 is to be delivered at 253402300800000 ms, .* after the year 9999"):
        send_all(writer(client), [rows])


def test_a_large_message_is_sent_in_pieces_and_its_parts_are_counted_as_frames(
    broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Producer, "max_message_size", FRAME_RESERVE + 1_000)
    rows = pa.RecordBatch.from_pydict({"value": [b"a", b"x" * 2_500, b"b"]})
    with pytest.raises(InvalidInput, match=r"row 1 makes a message of 2507 bytes. .* Use chunking=True"):
        send_all(writer(client), [rows])
    broker.received.clear()
    writing = writer(client, replace(SETTINGS, chunking=True))
    report = send_all(writing, [rows])
    writing.finish()
    assert (report.rows, report.bytes, report.frames) == ({"t": 3}, {"t": 2_502}, {"t": 5})
    sends = [frame for frame in broker.received if frame.command.type == Type.SEND]
    assert [frame.command.send.sequence_id for frame in sends] == [0, 1, 1, 1, 2]
    assert [frame.command.send.is_chunk for frame in sends] == [False, True, True, True, False]


def test_where_a_topic_has_taught_a_limit_what_is_above_it_is_cut(broker: FakeBroker, client: Client) -> None:
    rows = pa.RecordBatch.from_pydict({"value": [b"a", b"x" * 2_500, b"b"]})
    to = replace(TRANSACTION, frame_limits={"persistent://public/default/t": 1_000})
    writing = writer(client, replace(SETTINGS, chunking=True), to)
    assert send_all(writing, [rows]).frames == {"t": 5}
    writing.finish()


@pytest.mark.parametrize("kept", [True, False], ids=["driver", "task"])
def test_without_a_transaction_no_command_of_one_is_sent(broker: FakeBroker, client: Client, kept: bool) -> None:
    """A broker that has transactions turned off knows none of them."""
    writing = writer(client, SETTINGS, replace(TRANSACTION, txn=None), of_task=not kept)
    rows = ROWS.append_column("topic", pa.array(["a", "b", "b"]))
    assert send_all(writing, [rows]).rows == {full_name("a"): 1, full_name("b"): 2}
    writing.finish()
    sent = broker.commands(Type.SEND)
    assert len(sent) == 2
    assert not any(command.send.HasField("txnid_most_bits") for command in sent)
    kinds = {Type.Name(frame.command.type) for frame in broker.received}
    assert not {kind for kind in kinds if "TXN" in kind or kind.startswith("TC_")}
    assert len(broker.commands(Type.CLOSE_PRODUCER)) == (0 if kept else 2)


@pytest.mark.parametrize("kept", [True, False], ids=["driver", "task"])
def test_encrypted_frames_stay_below_the_limit(broker: FakeBroker, client: Client, kept: bool) -> None:
    """Two dozen encrypted data keys are longer than what a frame's metadata has room for else."""
    from tests.encryption import key_pair

    text = key_pair().public
    keys = tuple((f"key {number:02}", text) for number in range(24))
    writing = writer(client, replace(SETTINGS, encryption_keys=keys), of_task=not kept)
    send_all(writing, [pa.RecordBatch.from_pydict({"value": [b"x" * 1_000] * 2_000})])
    writing.finish()
    assert len(entries(broker)) > 1
    for sent in entries(broker):
        assert [one.key for one in sent.metadata.encryption_keys] == [name for name, _ in keys]
        assert sent.metadata.ByteSize() + len(sent.packed) < broker_limit(broker)
        assert b"x" * 100 not in bytes(sent.packed)


def broker_limit(broker: FakeBroker) -> int:
    return broker.client().producer("other").max_message_size


def test_a_task_without_the_library_for_encryption_says_so_as_of_a_wrong_row(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    writing = writer(client, replace(SETTINGS, encryption_keys=(("of no process before", "text"),)))
    with pytest.raises(InvalidInput, match=r"pip install \"spark-pulsar-eos\[encryption\]\""):
        send_all(writing, [ROWS])


@pytest.mark.parametrize("txn", [TxnId(0, 7), None])
@pytest.mark.parametrize(("then", "now", "same"), [(4, 2, 0), (4, 0, 0), (0, 4, 0), (4, 4, 1), (0, 0, 1), (4, 8, 1)])
def test_rows_of_a_topic_that_was_made_again_with_other_partitions_are_not_finished(
    broker: FakeBroker, client: Client, then: int, now: int, same: int, txn: TxnId | None
) -> None:
    """A broker makes what a producer asks for, though no reader of the topic looks there any longer."""
    broker.handlers[Type.PARTITIONED_METADATA] = partitioned(now)
    to = replace(TRANSACTION, txn=txn, partitions={"t": then, "other": 99})
    writing = writer(client, to=to, of_task=True)
    send_all(writing, [ROWS])
    if same:
        writing.finish()
        return
    with pytest.raises(NotCommitted, match=f"t had {then} partitions when its rows were sent, and has {now} now"):
        writing.finish()
    assert broker.commands(Type.CLOSE_PRODUCER) == []
    writing.abandon()

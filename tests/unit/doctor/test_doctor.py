"""What `eos doctor` concludes from what the cluster says, and what `eos abort` refuses."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from eos.cli import app as cli
from eos.commit.control_log import Intent, Marker, OwnerRecord, Record, encode
from eos.doctor import abort as aborting
from eos.doctor.doctor import Doctor, Finding, State, Trace, summary
from eos.errors import Fenced, InvalidInput, NetworkError, Refused, TopicMissing, Unanswered
from eos.pulsar.net.admin import Admin, Buffer, OpenTransaction
from eos.pulsar.net.client import Client
from eos.pulsar.wire.message_id import EARLIEST, MessageId
from eos.pulsar.wire.txn import TxnId
from tests.waiting import PATIENCE_S

ROWS = "persistent://public/default/rows"
LOG = "persistent://public/default/__eos-rows"
TXN = TxnId(2, 7)
FREE = Buffer("Ready", MessageId(5, 9), MessageId(5, 9), 0)
HELD = Buffer("Ready", MessageId(5, 3), MessageId(5, 9), 1)
INTENT = Intent(2, "query", "run", 4, 1, TXN, None)
MARKER = Marker(3, "query", "run", 4, 1, TXN, None, {}, {}, "offsets")


def opened(txn: TxnId = TXN) -> OpenTransaction:
    return OpenTransaction(txn, "OPEN", 1_000, 600_000, (ROWS,))


@dataclass
class FakeAdmin:
    buffers: dict[str, list[Buffer]]
    behind: TxnId | None = TXN
    open: list[OpenTransaction] = field(default_factory=list)
    aborted: list[TxnId] = field(default_factory=list)
    threads: str = "1"

    def version(self) -> str:
        return "4.2.4"

    def setting(self, name: str) -> str | None:
        return self.threads

    def topics(self, namespace: str) -> tuple[str, ...]:
        return (ROWS, LOG)

    def buffer(self, topic: str) -> Buffer:
        said = self.buffers.get(topic, [FREE])
        return said.pop(0) if len(said) > 1 else said[0]

    def transaction_behind(self, topic: str, position: MessageId) -> TxnId | None:
        assert position == HELD.readable_to
        return self.behind

    def open_transactions(self) -> list[OpenTransaction]:
        return self.open

    def transaction(self, txn: TxnId) -> OpenTransaction | None:
        return next((one for one in self.open if one.txn == txn), None)

    def abort(self, txn: TxnId) -> None:
        self.aborted.append(txn)
        self.open = [one for one in self.open if one.txn != txn]

    def __enter__(self) -> FakeAdmin:
        return self

    def __exit__(self, *ended: object) -> None:
        pass


@dataclass
class Message:
    data: bytes
    message_id: MessageId


class FakeReader:
    def __init__(self, log: list[Record], after: MessageId) -> None:
        messages = (Message(encode(record), MessageId(1, number)) for number, record in enumerate(log))
        self._left = [message for message in messages if message.message_id > after]

    def last_message_id(self) -> MessageId:
        return self._left[-1].message_id if self._left else EARLIEST

    def read(self, timeout_s: float) -> Message | None:
        return self._left.pop(0) if self._left else None

    def close(self) -> None:
        pass


class FakeClient:
    def __init__(self, log: list[Record], ends: list[NetworkError | None] | None = None) -> None:
        self.log = log
        self.ends = ends if ends is not None else []
        self.busy: Exception | None = None
        self.on_open: Callable[[], None] = lambda: None
        self.asked: list[tuple[str, object]] = []

    def partitions(self, topic: str) -> int:
        return 2 if topic.endswith("two") else 0

    def coordinators(self) -> int:
        return 3

    def coordinator(self, index: int) -> Any:
        client = self

        class Coordinator:
            def new_transaction(self, ttl_ms: int) -> TxnId:
                client.asked.append(("new", index))
                return TxnId(index, 100)

            def add_partitions(self, txn: TxnId, topics: list[str]) -> None:
                client.asked.append(("add", topics[0]))

            def end(self, txn: TxnId, commit: bool, sent: object = None) -> None:
                client.asked.append(("commit" if commit else "abort", txn))
                answer = client.ends.pop(0) if client.ends else None
                if answer is not None:
                    raise answer

        return Coordinator()

    def reader(self, topic: str, *, after: MessageId) -> FakeReader:
        return FakeReader(self.log if topic == LOG else [], after)

    def producer(self, topic: str, *, access: str) -> Any:
        assert (topic, access) == (LOG, "exclusive")
        if self.busy is not None:
            raise self.busy
        self.on_open()

        class Producer:
            def abandon(self) -> None:
                pass

        return Producer()

    def __enter__(self) -> FakeClient:
        return self

    def __exit__(self, *ended: object) -> None:
        pass


def doctor(client: FakeClient, admin: FakeAdmin, patience_s: float = PATIENCE_S) -> Doctor:
    return Doctor(cast(Client, client), cast(Admin, admin), patience_s)


def refused(code: str) -> Refused:
    return Refused("abort", code, "so")


# ---- looking


def test_nothing_is_found_where_nothing_is_held_up() -> None:
    assert doctor(FakeClient([]), FakeAdmin({})).look([ROWS, LOG]) == []


def test_an_open_transaction_is_waited_for_and_its_sink_is_named() -> None:
    admin = FakeAdmin({ROWS: [HELD]}, open=[opened()])
    (found,) = doctor(FakeClient([INTENT]), admin).look([ROWS])
    age_s = cast(float, pytest.approx(time.time() - 1, abs=60))
    assert found == Finding(ROWS, State.WAITING, TXN, opened(), Trace("rows", INTENT, committed=False), age_s)
    assert "600 s after it was opened" in found.remedy
    assert "eos abort rows" in found.remedy
    assert json.loads(json.dumps(summary(found)))["batch_id"] == 4


def test_a_young_transaction_is_a_batch_at_work() -> None:
    young = OpenTransaction(TXN, "OPEN", round((time.time() - 30) * 1000), 600_000, (ROWS,))
    one = doctor(FakeClient([INTENT]), FakeAdmin({ROWS: [HELD]}, open=[young]))
    assert one.look([ROWS], older_than_s=60) == []
    assert len(one.look([ROWS], older_than_s=20)) == 1


def test_a_transaction_that_no_coordinator_knows_has_frozen_the_partition() -> None:
    (found,) = doctor(FakeClient([INTENT]), FakeAdmin({ROWS: [HELD]})).look([ROWS])
    assert (found.state, found.loses_rows, found.remedy) == (State.FROZEN, False, "eos doctor --heal")


def test_healing_what_was_committed_is_said_to_lose_rows() -> None:
    (found,) = doctor(FakeClient([INTENT, MARKER]), FakeAdmin({ROWS: [HELD]})).look([ROWS])
    assert found.loses_rows
    assert "--accept-loss" in found.remedy


def test_a_partition_that_is_freed_while_we_look_is_no_finding() -> None:
    assert doctor(FakeClient([]), FakeAdmin({ROWS: [HELD, HELD, FREE]})).look([ROWS]) == []


def test_a_transaction_that_the_broker_does_not_name_is_told_by_those_that_are_open() -> None:
    stranger = doctor(FakeClient([]), FakeAdmin({ROWS: [HELD]}, behind=None, open=[opened()]))
    assert [one.state for one in stranger.look([ROWS])] == [State.WAITING]
    unknown = doctor(FakeClient([]), FakeAdmin({ROWS: [HELD]}, behind=None))
    assert [one.state for one in unknown.look([ROWS])] == [State.FROZEN]


def test_partitions_of_topics() -> None:
    one = doctor(FakeClient([]), FakeAdmin({}))
    two = "persistent://public/default/two"
    assert list(one.partitions(["rows", two])) == [ROWS, f"{two}-partition-0", f"{two}-partition-1"]
    assert one.namespace("public/default") == [LOG, ROWS]


# ---- healing

FROZEN = Finding(ROWS, State.FROZEN, TXN, None, None)


def test_empty_transactions_of_its_coordinator_end_there_until_it_is_free() -> None:
    client = FakeClient([], ends=[refused("TransactionNotFound"), None])
    frozen_once_more = [HELD] * 6
    doctor(client, FakeAdmin({ROWS: [*frozen_once_more, FREE]})).heal(FROZEN)
    empty = [("new", 2), ("add", ROWS), ("commit", TxnId(2, 100))]
    assert client.asked == empty * 2


def test_every_coordinator_is_tried_where_the_transaction_is_not_known() -> None:
    client = FakeClient([])
    doctor(client, FakeAdmin({})).heal(Finding(ROWS, State.FROZEN, None, None, None))
    assert [what for kind, what in client.asked if kind == "new"] == [0, 1, 2]


def test_what_stays_frozen_says_which_open_transactions_may_hold_it() -> None:
    older = opened(TxnId(2, 3))
    one = doctor(FakeClient([]), FakeAdmin({ROWS: [HELD]}, open=[older]), patience_s=0.1)
    with pytest.raises(Unanswered, match=r"still frozen by transaction \(2,7\).*\(2,3\) on persistent"):
        one.heal(FROZEN)


def test_what_waits_can_not_be_healed() -> None:
    with pytest.raises(ValueError, match="only a frozen partition"):
        doctor(FakeClient([]), FakeAdmin({})).heal(Finding(ROWS, State.WAITING, TXN, opened(), None))


# ---- aborting


def abandoned(client: FakeClient) -> aborting.Abandoned | None:
    return aborting.abandoned(cast(Client, client), "rows")


def abort(client: FakeClient, admin: FakeAdmin | None = None, patience_s: float = PATIENCE_S) -> bool:
    found = aborting.Abandoned("rows", LOG, INTENT)
    return aborting.abort(cast(Client, client), found, cast(Admin, admin), patience_s)


def test_the_last_intent_without_a_marker_is_what_may_be_open() -> None:
    found = abandoned(FakeClient([INTENT]))
    assert found is not None
    assert found.intent == INTENT
    assert str(found) == 'transaction (2,7) of the sink "rows", batch 4 of query query, attempt 1'
    assert abandoned(FakeClient([INTENT, MARKER])) is None
    assert abandoned(FakeClient([OwnerRecord(1, "query", "run", 2, 0, begins=True)])) is None


def test_of_a_long_log_only_the_retained_part_is_read() -> None:
    newest = replace(INTENT, expired=MessageId(1, 1))
    found = abandoned(FakeClient([MARKER, MARKER, newest]))  # read whole, a batch was committed twice
    assert found is not None
    assert found.intent == newest


@pytest.mark.parametrize("answer", [refused("ProducerFenced"), refused("ProducerBusy"), Fenced("there")])
def test_a_sink_whose_driver_lives_is_left_alone(answer: Exception) -> None:
    client = FakeClient([INTENT])
    client.busy = answer
    with pytest.raises(aborting.OwnerAlive, match="Stop its query first"):
        abort(client)
    assert client.asked == []


def test_a_log_that_moved_on_is_left_alone() -> None:
    client = FakeClient([INTENT])
    client.on_open = lambda: client.log.append(MARKER)
    with pytest.raises(InvalidInput, match="has moved on"):
        abort(client)
    assert client.asked == []


def test_it_is_asked_for_until_it_has_ended() -> None:
    client = FakeClient([INTENT], ends=[refused("TransactionCoordinatorNotFound"), Unanswered("silence"), None])
    assert abort(client)
    assert client.asked == [("abort", TXN)] * 3
    assert not abort(FakeClient([INTENT], ends=[refused("TransactionNotFound")]))


def test_what_another_role_has_opened_is_aborted_by_a_superuser() -> None:
    admin = FakeAdmin({}, open=[opened()])
    client = FakeClient([INTENT], ends=[refused("TransactionNotFound"), refused("TransactionNotFound")])
    assert abort(client, admin)
    assert admin.aborted == [TXN]


def test_patience_has_an_end() -> None:
    client = FakeClient([INTENT], ends=[refused("InvalidTxnStatus")] * 1_000)
    with pytest.raises(Refused, match="InvalidTxnStatus"):
        abort(client, patience_s=0.1)


# ---- the commands


def run(monkeypatch: pytest.MonkeyPatch, client: FakeClient, admin: FakeAdmin, *words: str, said: str = "") -> Any:
    monkeypatch.setattr("eos.pulsar.net.client.Client", lambda cluster: client)
    monkeypatch.setattr("eos.pulsar.net.admin.Admin", lambda *parts: admin)
    return CliRunner().invoke(cli.typer_app, list(words), input=said)


def test_doctor_heals_on_demand_and_what_loses_rows_only_when_that_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    client, admin = FakeClient([INTENT, MARKER]), FakeAdmin({ROWS: [HELD]})
    looked = run(monkeypatch, client, admin, "doctor", "--json")
    assert looked.exit_code == 1
    assert json.loads(looked.stdout)[0]["committed"] is True
    assert run(monkeypatch, client, admin, "doctor", "rows", "--heal").exit_code == 1
    assert client.asked == []
    admin.buffers = {ROWS: [HELD] * 7 + [FREE]}
    healed = run(monkeypatch, client, admin, "doctor", "rows", "--heal", "--accept-loss")
    assert (healed.exit_code, "is free" in healed.output, "none held up" in healed.output) == (0, True, True)


def test_doctor_tells_of_a_broker_that_may_show_what_was_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = FakeAdmin({}, threads="8")
    told = run(monkeypatch, FakeClient([]), admin, "doctor", "rows")
    assert told.exit_code == 0, "readers are not held up"
    assert "numTransactionReplayThreadPoolSize=1" in told.output
    admin.threads = "1"
    assert "numTransaction" not in run(monkeypatch, FakeClient([]), admin, "doctor", "rows").output


def test_abort_asks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    client, admin = FakeClient([INTENT]), FakeAdmin({})
    answer = run(monkeypatch, client, admin, "abort", "rows", said="n\n")
    assert (answer.exit_code, client.asked) == (1, [])
    assert "batch 4 of query query" in answer.output
    assert "Aborted transaction (2,7)" in run(monkeypatch, client, admin, "abort", "rows", said="y\n").output
    client.log = [INTENT, MARKER]
    assert "has left no transaction open" in run(monkeypatch, client, admin, "abort", "rows", "--yes").output


def test_abort_of_a_sink_that_is_not_there_says_so_and_nothing_of_making_topics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(topic: str) -> int:
        raise TopicMissing(f"{topic} does not exist. Create it first")

    client = FakeClient([])
    monkeypatch.setattr(client, "partitions", missing)
    error = run(monkeypatch, client, FakeAdmin({}), "abort", "nosuch").exception
    assert isinstance(error, InvalidInput)
    assert 'There is no sink "nosuch" in public/default' in str(error)
    assert "reate" not in str(error)


def test_abort_of_another_roles_transaction_says_who_may(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = Intent(2, "query", "run", 4, 1, TXN, "alice")
    client = FakeClient([theirs], ends=[refused("TransactionNotFound")])
    answer = run(monkeypatch, client, FakeAdmin({}), "abort", "rows", "--yes")
    assert "only the role alice may end it" in answer.output

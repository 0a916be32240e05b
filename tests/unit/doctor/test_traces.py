"""What control logs prove of a transaction, and that a partition is healed unasked only where they prove it."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from eos.commit.control_log import Record
from eos.doctor.doctor import Doctor, Finding, ReaderState
from eos.doctor.traces import Trace, read_traces
from eos.errors import Refused, TopicMissing
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.net.transaction_stats import Buffer, OpenTransaction
from eos.pulsar.wire.message_id import MessageId
from eos.pulsar.wire.txn import TxnId
from tests.unit.doctor.cluster import (
    BEGINS,
    FREE,
    HELD,
    INTENT,
    LOG,
    MARKER,
    ROWS,
    TXN,
    UNSETTLED,
    FakeAdmin,
    FakeClient,
    FakeReader,
    refused,
    run,
)
from tests.waiting import PATIENCE_S

FARES, ELSEWHERE = "persistent://public/secret/fares", "persistent://public/control/__eos-rows"
WHOLE: list[Record] = [BEGINS, INTENT]
OTHER = replace(INTENT, number=4, batch_id=5, txn=TxnId(2, 8))


class Apart(FakeAdmin):
    """The rows are in one namespace, and the sink's control topic in another."""

    def topics(self, namespace: str) -> tuple[str, ...]:
        return {"public/secret": (FARES,), "public/control": (ELSEWHERE,)}[namespace]


class FakeApart(FakeClient):
    def reader(self, topic: str, *, after: MessageId, stored: bool) -> FakeReader:
        return FakeReader(self.log if topic == ELSEWHERE else [], after)


def look(log: list[Record], admin: FakeAdmin | None = None) -> Finding:
    admin = admin or FakeAdmin({ROWS: [HELD]})
    (found,) = Doctor(cast(Client, FakeClient(log)), cast(Admin, admin), PATIENCE_S).look([ROWS])
    return found


TRACES = (None, *(Trace("rows", "public/default", INTENT, committed) for committed in (True, None, False)))


@pytest.mark.parametrize("unread", [(), ("rows",)])
@pytest.mark.parametrize("txn", [TXN, None])
@pytest.mark.parametrize("trace", TRACES)
def test_only_a_log_proves_that_healing_hides_nothing(
    trace: Trace | None, txn: TxnId | None, unread: tuple[str, ...]
) -> None:
    frozen = Finding(ROWS, ReaderState.FROZEN, txn, None, trace, unread=unread)
    proven = trace is not None and trace.committed is False
    assert (frozen.loses_rows, "--accept-loss" in frozen.remedy) == (not proven, not proven)
    assert not Finding(ROWS, ReaderState.WAITING, txn, None, trace, unread=unread).loses_rows


@pytest.mark.parametrize(
    ("log", "behind", "told"),
    [
        ([BEGINS], TXN, "No control log of the namespaces looked at names the transaction"),
        ([BEGINS], TXN, "give that namespace with --namespace"),
        (WHOLE, None, "The broker does not name the transaction."),
        (WHOLE, refused("500"), "The broker does not name the transaction (abort: the broker answered 500: so)"),
        ([INTENT], TXN, "The control log of rows could not be read to its end"),
    ],
)
def test_the_remedy_says_what_is_known_and_what_to_do(
    log: list[Record], behind: TxnId | Refused | None, told: str
) -> None:
    found = look(log, FakeAdmin({ROWS: [HELD]}, behind=behind))
    assert found.loses_rows
    assert told in found.remedy
    assert "heal with --accept-loss" in found.remedy


@pytest.mark.parametrize(("namespace", "words"), [("public/control", "were committed, and"), ("public/secret", "No c")])
def test_a_batch_of_a_sink_with_its_log_elsewhere_is_not_healed_unasked(
    namespace: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, admin = FakeApart([*WHOLE, MARKER]), Apart({FARES: [HELD]})
    asked = ("doctor", FARES, "--namespace", namespace)
    done = run(monkeypatch, client, admin, *asked, "--heal", "--json")
    assert (done.exit_code, client.asked, words in done.stdout) == (1, [], True), done.output
    admin.buffers = {FARES: [HELD] * 7 + [FREE]}
    assert run(monkeypatch, client, admin, *asked, "--heal", "--accept-loss").exit_code == 0
    client.log, client.asked, admin.buffers = WHOLE, [], {FARES: [HELD] * 7 + [FREE]}
    run(monkeypatch, client, admin, *asked, "--heal")
    assert bool(client.asked) is (namespace == "public/control")


def test_the_command_names_the_namespace_of_the_log() -> None:
    opened = OpenTransaction(TXN, "OPEN", 1_000, 600_000, (FARES,))
    client, admin = cast(Client, FakeApart(WHOLE)), cast(Admin, Apart({FARES: [HELD]}, open=[opened]))
    (found,) = Doctor(client, admin, PATIENCE_S, ("public/control",)).look([FARES])
    assert found.remedy.endswith("end it with eos sink abort rows --namespace public/control")


@pytest.mark.parametrize("error", [refused("403"), TopicMissing("no such namespace")])
def test_a_namespace_whose_logs_cannot_be_listed_proves_nothing_and_hides_no_finding(error: Exception) -> None:
    class Forbidden(FakeAdmin):
        def topics(self, namespace: str) -> tuple[str, ...]:
            raise error

    found = look(WHOLE, Forbidden({ROWS: [HELD]}))
    assert (found.state, found.loses_rows) == (ReaderState.FROZEN, True)
    assert f"The control log of each sink of public/default ({error}) could not" in found.remedy


# ---- a log that holds its own readers up


@pytest.mark.parametrize(
    "log", [[HELD], [TopicMissing("not loaded"), HELD], [refused("403")], *([one] for one in UNSETTLED)]
)
def test_a_log_that_may_hold_its_readers_up_does_not_tell_of_its_last_intent(log: list[Buffer | Exception]) -> None:
    class Held(FakeAdmin):
        def buffer(self, topic: str) -> Buffer:
            said = (log.pop(0) if len(log) > 1 else log[0]) if topic == LOG else HELD
            if isinstance(said, Exception):
                raise said
            return said

    client = cast(Client, FakeClient([*WHOLE, OTHER]))
    found, unread = read_traces(client, cast(Admin, Held({})), "public/default")
    assert {txn: one.committed for txn, one in found.items()} == {INTENT.txn: False, OTHER.txn: None}
    assert unread == ("rows",)


def test_a_log_that_was_not_loaded_and_is_not_held_up_tells_all() -> None:
    class Unloaded(FakeAdmin):
        asked = 0

        def buffer(self, topic: str) -> Buffer:
            self.asked += 1
            if self.asked == 1:
                raise TopicMissing(topic)
            return FREE

    found, unread = read_traces(cast(Client, FakeClient(WHOLE)), cast(Admin, Unloaded({})), "public/default")
    assert (found[TXN].committed, unread) == (False, ())


def test_a_log_that_is_deleted_meanwhile_is_none() -> None:
    class Gone(FakeClient):
        def reader(self, topic: str, *, after: MessageId, stored: bool) -> FakeReader:
            raise TopicMissing(topic)

    assert read_traces(cast(Client, Gone([])), cast(Admin, FakeAdmin({})), "public/default") == ({}, ())


def test_a_log_is_read_after_the_transaction_has_ended() -> None:
    """The batch is committed between the looks at two partitions; then late frames freeze both."""
    second = f"{ROWS}-2"
    client = FakeClient([*WHOLE])

    class Commits(FakeAdmin):
        asked = 0

        def transaction(self, txn: TxnId) -> OpenTransaction | None:
            self.asked += 1
            if self.asked == 2:
                client.log.append(MARKER)
            return None

    admin = cast(Admin, Commits({ROWS: [HELD], second: [HELD]}))
    found = Doctor(cast(Client, client), admin, PATIENCE_S).look([ROWS, second])
    assert [one.loses_rows for one in found] == [True, True]


def test_healing_stops_where_another_transaction_has_frozen_the_partition_too() -> None:
    """The first one was aborted, and behind it lies one that was committed."""
    committed = replace(MARKER, number=5, batch_id=5, txn=OTHER.txn)
    client = FakeClient([*WHOLE, OTHER, committed])

    class Two(FakeAdmin):
        def transaction_behind(self, topic: str, position: MessageId) -> TxnId | None:
            return OTHER.txn if client.asked else TXN

    admin = Two({ROWS: [HELD]})
    one = Doctor(cast(Client, client), cast(Admin, admin), PATIENCE_S)
    (found,) = one.look([ROWS])
    assert not found.loses_rows
    assert not one.heal(found)
    assert [kind for kind, _ in client.asked] == ["new", "add", "commit"]
    admin.buffers = {ROWS: [HELD] * 6 + [FREE]}
    assert one.heal(found, accept_loss=True)

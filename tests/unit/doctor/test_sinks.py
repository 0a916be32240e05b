"""What a control log says of its sink: who owned it, how often it changed hands, and when it committed last."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, cast

import pytest

from eos.commit.control_log import Intent, OwnerRecord, Record, decode
from eos.doctor.sinks import RECENT, SinkState, SinkStatus, is_open, log_of, sink, sinks, summary
from eos.errors import InvalidInput, NetworkError, NewerVersion, TopicMissing, Unanswered, Unreachable
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.net.transaction_stats import Buffer
from eos.pulsar.wire.txn import TxnId
from tests.unit.doctor.cluster import (
    BEGINS,
    FREE,
    HELD,
    INTENT,
    LOG,
    MARKER,
    TXN,
    UNSETTLED,
    FakeAdmin,
    FakeClient,
    opened,
    refused,
    run,
)

NAMESPACE = "public/default"


def owner(run: str, number: int = 1) -> OwnerRecord:
    return OwnerRecord(number, "query", run, 2, 0, begins=True)


def state(log: list[Record], admin: Any = None) -> SinkState:
    return sink(cast(Client, FakeClient(log)), "rows", NAMESPACE, cast(Admin, admin))


@pytest.mark.parametrize("namespace", ["public", "a/b/c", "public/default/flights"])
def test_what_is_no_namespace_is_told_so_before_a_broker_is_asked(namespace: str) -> None:
    with pytest.raises(InvalidInput, match=f"'{namespace}' is not a namespace. Write tenant/namespace"):
        log_of(cast(Client, None), "rows", namespace)


def test_a_sink_without_a_control_topic_may_be_elsewhere_or_have_none() -> None:
    class Without:
        def partitions(self, topic: str) -> int:
            raise TopicMissing(topic)

    with pytest.raises(InvalidInput, match=r'no sink "rows" in .*control_namespace=.*another guarantee= has none'):
        log_of(cast(Client, Without()), "rows", NAMESPACE)


def test_a_topic_of_somebody_else_and_a_log_that_is_gone_meanwhile_hide_no_sink() -> None:
    class Several(FakeClient):
        def topics(self, namespace: str) -> list[str]:
            return [f"persistent://{namespace}/__eos-{name}" for name in ("", "a b", "gone", "rows")]

        def partitions(self, topic: str) -> int:
            if topic.endswith("gone"):
                raise TopicMissing(topic)
            return 0

    found = sinks(cast(Client, Several([owner("run")])), NAMESPACE)
    assert [(one.name, one.status) for one in found] == [("rows", SinkStatus.NEW)]


def test_the_sink_of_a_newer_version_is_listed_as_unreadable_and_not_left_out() -> None:
    class Newer(FakeClient):
        def topics(self, namespace: str) -> list[str]:
            return [f"persistent://{namespace}/__eos-rows"]

        def reader(self, topic: str, **given: object) -> Any:
            raise NewerVersion("version 2, and this library reads version 1")

    (found,) = sinks(cast(Client, Newer([owner("run")])), NAMESPACE)
    assert (found.name, found.status) == ("rows", SinkStatus.UNREADABLE)
    assert "version 2" in str(found.problem)


def test_a_listed_log_says_what_is_wrong_and_leaves_the_ways_out_to_who_opens_it() -> None:
    class Foreign(FakeClient):
        def topics(self, namespace: str) -> list[str]:
            return [f"persistent://{namespace}/__eos-rows"]

        def reader(self, topic: str, **given: object) -> Any:
            return decode(b"hello")

    (found,) = sinks(cast(Client, Foreign([owner("run")])), NAMESPACE)
    assert str(found.problem).endswith("b'hello'. Something else writes to this topic")


def test_the_run_that_owned_it_before_is_another_one() -> None:
    assert state([owner("old"), INTENT, MARKER]).former_run_id == "old"
    assert state([owner("run"), INTENT, MARKER]).former_run_id is None
    again = state([owner("first"), owner("second"), owner("run"), INTENT, MARKER])
    assert (again.run_id, again.former_run_id, again.takeovers) == ("run", "second", 3)


def test_takeovers_are_counted_among_the_newest_records() -> None:
    batches = range(RECENT // 2)
    quiet: list[Record] = [replace(one, batch_id=batch) for batch in batches for one in (INTENT, MARKER)]
    assert state([owner("old")] * 5 + quiet).takeovers == 0
    assert state([*quiet, *[owner(f"run {number}") for number in range(5)]]).takeovers == 5


def test_a_run_that_writes_owner_again_is_counted_once() -> None:
    """As after a crash in the middle of a batch: once when it takes over, and once when that batch has ended."""
    restarts: list[Record] = [owner(run) for run in ("a", "a", "b", "b", "c", "c")]
    assert state(restarts).takeovers == 3
    assert state([owner(run) for run in "abab"]).takeovers == 4


def test_times_are_those_of_the_last_record_of_a_kind() -> None:
    one = state([owner("run"), INTENT, MARKER])
    assert (one.committed_ms, one.owned_ms) == (1_000, 1_000)
    assert summary(one)["committed_ms"] == 1_000
    new = state([owner("run")])
    assert (new.status, new.committed_ms, new.owned_ms) == (SinkStatus.NEW, None, 1_000)


def test_whether_a_transaction_is_open_may_not_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(txn: Any) -> Any:
        raise refused("403")

    admin = FakeAdmin({}, open=[opened()])
    log: list[Record] = [owner("run"), Intent(2, "query", "run", 4, 1, TXN, None)]
    assert state(log, admin).open is True
    admin.open = []
    assert state(log, admin).open is False
    monkeypatch.setattr(admin, "transaction", forbidden)
    assert state(log, admin).open is None
    assert is_open(cast(Admin, admin), TXN) is None


@pytest.mark.parametrize("error", [Unreachable("connection refused"), Unanswered("no answer within 30 s")])
def test_an_admin_api_that_does_not_answer_makes_no_log_unreadable(
    error: NetworkError, monkeypatch: pytest.MonkeyPatch
) -> None:
    class One(FakeClient):
        def topics(self, namespace: str) -> list[str]:
            return [LOG]

    def unanswered(txn: TxnId) -> Any:
        raise error

    admin = FakeAdmin({})
    log: list[Record] = [BEGINS, replace(MARKER, number=2, batch_id=3, txn=TxnId(2, 6)), replace(INTENT, number=3)]
    asking = ("sink", "list", "--admin-url", "http://localhost:8080")
    monkeypatch.setattr(admin, "transaction", unanswered)
    done = run(monkeypatch, One(log), admin, *asking, "--json")
    (told,) = json.loads(done.stdout)
    assert (done.exit_code, told["status"], told["batch_id"], told["rows"]) == (0, "unfinished", 3, 0)
    assert told["unfinished"] == {"batch_id": 4, "attempt": 1, "transaction": str(TXN), "open": None}
    assert told["problem"] == f"Whether transaction {TXN} is open is not known: {error}"
    shown = run(monkeypatch, One(log), admin, *asking)
    assert f"batch 4, attempt 1, transaction {TXN}. {told['problem']}" in shown.stdout


@pytest.mark.parametrize("buffer", [HELD, *UNSETTLED])
def test_of_a_log_that_may_hide_a_marker_it_is_not_known_how_the_last_transaction_has_ended(buffer: Buffer) -> None:
    assert state([owner("run"), INTENT], FakeAdmin({LOG: [buffer]})).open is None
    assert state([owner("run"), INTENT], FakeAdmin({LOG: [FREE]})).open is False
    assert state([owner("run"), INTENT, MARKER], FakeAdmin({LOG: [buffer]})).status is SinkStatus.COMMITTED


@pytest.mark.parametrize(
    ("comes", "status", "open_yet"),
    [
        ([], SinkStatus.UNFINISHED, False),
        ([MARKER], SinkStatus.COMMITTED, None),
        ([MARKER, replace(INTENT, number=4, batch_id=5, txn=TxnId(2, 8))], SinkStatus.UNFINISHED, False),
    ],
)
def test_a_marker_that_comes_while_its_transaction_is_asked_for_counts(
    comes: list[Record], status: SinkStatus, open_yet: bool | None
) -> None:
    client = FakeClient([owner("run"), INTENT])

    class Commits(FakeAdmin):
        def transaction(self, txn: TxnId) -> None:
            if txn == TXN:
                client.log += comes

    one = sink(cast(Client, client), "rows", NAMESPACE, cast(Admin, Commits({})))
    assert (one.status, one.open) == (status, open_yet)


def test_of_a_log_that_moves_on_each_time_it_is_not_known_whether_its_last_transaction_is_open() -> None:
    client = FakeClient([owner("run"), INTENT])

    class Moves(FakeAdmin):
        def transaction(self, txn: TxnId) -> None:
            client.log.append(replace(INTENT, txn=TxnId(2, txn.least + 1)))

    one = sink(cast(Client, client), "rows", NAMESPACE, cast(Admin, Moves({})))
    assert (one.status, one.open) == (SinkStatus.UNFINISHED, None)

"""What `eos sink abort` does, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, cast

import pytest

from eos.commit.control_log import Intent, Record
from eos.config import Cluster, Tls
from eos.doctor import abort as aborting
from eos.errors import InvalidInput, Refused, TopicMissing, Unanswered
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
    TXN,
    UNSETTLED,
    FakeAdmin,
    FakeClient,
    opened,
    refused,
    run,
)
from tests.waiting import PATIENCE_S


def abandoned(client: FakeClient) -> aborting.Abandoned | None:
    return aborting.abandoned(cast(Client, client), "rows")


def abort(client: FakeClient, admin: FakeAdmin | None = None, patience_s: float = PATIENCE_S) -> aborting.AbortOutcome:
    found = aborting.Abandoned("rows", LOG, INTENT)
    return aborting.abort(cast(Client, client), found, cast(Admin, admin), patience_s)


def test_the_last_intent_without_a_marker_is_what_may_be_open() -> None:
    found = abandoned(FakeClient([INTENT]))
    assert found is not None
    assert found.intent == INTENT
    assert str(found) == 'transaction (2,7) of the sink "rows", batch 4 of query query, attempt 1'
    assert abandoned(FakeClient([INTENT, MARKER])) is None
    assert abandoned(FakeClient([BEGINS])) is None


def test_of_a_long_log_only_the_retained_part_is_read() -> None:
    newest = replace(INTENT, expired=MessageId(1, 1))
    found = abandoned(FakeClient([MARKER, MARKER, newest]))  # read whole, a batch was committed twice
    assert found is not None
    assert found.intent == newest


@pytest.mark.parametrize("held", [True, False])
def test_a_sink_whose_driver_lives_is_left_alone(held: bool) -> None:
    """It holds the subscription, the producer, or both: a fenced driver's last try closes the owner's producer."""
    client = FakeClient([INTENT])
    client.held = held
    client.busy = None if held else Refused("open", "ProducerBusy", "Topic has an existing exclusive producer: a-1")
    with pytest.raises(aborting.OwnerAlive, match="Stop its query first"):
        abort(client)
    assert client.asked == []


def test_a_log_that_was_terminated_has_an_owner_only_where_a_driver_holds_the_subscription() -> None:
    """`eos sink reset` is a way out of it, and was refused."""
    client = FakeClient([BEGINS, INTENT])
    client.busy = Refused("open", "TopicTerminatedError", "Topic was already terminated")
    assert abort(client) is aborting.AbortOutcome.ABORTED
    client.held = True
    with pytest.raises(aborting.OwnerAlive):
        abort(client)


def test_the_admin_api_tells_from_where_a_driver_is_connected() -> None:
    with pytest.raises(aborting.OwnerAlive, match=r"Stop its query first.*From 10\.0\.0\.1:5"):
        abort(FakeClient([INTENT]), FakeAdmin({}, drivers=("10.0.0.1:5",)))


def test_an_owner_that_cannot_be_known_is_not_called_one() -> None:
    client = FakeClient([INTENT])
    client.busy = Refused("open", "ProducerBusy", "Topic reached max producers limit")
    with pytest.raises(Refused, match="max producers limit"):
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
    assert abort(client) is aborting.AbortOutcome.ABORTED
    assert client.asked == [("abort", TXN)] * 3
    assert abort(FakeClient([INTENT], ends=[refused("TransactionNotFound")])) is aborting.AbortOutcome.HAD_ENDED


def test_what_another_role_has_opened_is_aborted_by_a_superuser() -> None:
    admin = FakeAdmin({}, open=[opened()])
    client = FakeClient([INTENT], ends=[refused("TransactionNotFound"), refused("TransactionNotFound")])
    assert abort(client, admin) is aborting.AbortOutcome.ABORTED
    assert admin.aborted == [TXN]


@pytest.mark.parametrize("superuser", [True, False])
@pytest.mark.parametrize("later", [[], [replace(INTENT, number=4, batch_id=5, txn=TxnId(2, 8))]])
def test_what_was_committed_meanwhile_is_told_as_committed(
    later: list[Record], superuser: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver died right after it had asked for the commit. The coordinator finishes it while we ask."""
    admin = FakeAdmin({}, open=[replace(opened(), status="COMMITTING")])
    client = FakeClient([BEGINS, INTENT], ends=[refused("InvalidTxnStatus"), refused("TransactionNotFound")])
    coordinator = client.coordinator

    def finishing(index: int) -> Any:
        if len(client.ends) == 1:
            admin.open = []
            client.log += [MARKER, *later]
        return coordinator(index)

    monkeypatch.setattr(client, "coordinator", finishing)
    with_admin = ("--admin-url", "http://localhost:8080") if superuser else ()
    done = run(monkeypatch, client, admin, "sink", "abort", "rows", "--yes", "--json", *with_admin)
    assert (done.exit_code, json.loads(done.stdout)["outcome"]) == (0, "committed"), done.output
    assert "It was committed meanwhile: transaction (2,7)" in done.stderr
    assert "writes the batch again" not in done.stderr


@pytest.mark.parametrize("buffer", [HELD, *UNSETTLED])
def test_a_batch_whose_marker_may_be_hidden_is_not_called_aborted(
    buffer: Buffer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its commit was on its way, and readers of the control log wait for another transaction."""

    class Ends(FakeAdmin):
        asked = 0

        def transaction(self, txn: TxnId) -> OpenTransaction | None:
            self.asked += 1
            return opened() if self.asked == 1 else None  # our question before the abort

    words = ("sink", "abort", "rows", "--yes", "--json", "--admin-url", "http://localhost:8080")
    log: list[Record] = [BEGINS, INTENT]
    for hidden, outcome in ((buffer, "ended, outcome not known"), (FREE, "aborted")):
        client = FakeClient(log, ends=[refused("TransactionNotFound")])
        done = run(monkeypatch, client, Ends({LOG: [hidden]}), *words)
        assert (done.exit_code, json.loads(done.stdout)["outcome"]) == (0 if hidden is FREE else 3, outcome)
        assert ("writes the batch again" in done.stderr) is (hidden is FREE)
        assert (f"eos doctor {LOG} says why" in done.stderr) is (hidden is not FREE)


def test_patience_has_an_end() -> None:
    client = FakeClient([INTENT], ends=[refused("InvalidTxnStatus")] * 1_000)
    with pytest.raises(Refused, match="InvalidTxnStatus"):
        abort(client, patience_s=0.1)


# ---- the command


def test_abort_asks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    client, admin = FakeClient([INTENT]), FakeAdmin({})
    answer = run(monkeypatch, client, admin, "sink", "abort", "rows", said="n\n")
    assert (answer.exit_code, client.asked) == (1, [])
    assert "batch 4 of query query" in answer.output
    assert "Aborted transaction (2,7)" in run(monkeypatch, client, admin, "sink", "abort", "rows", said="y\n").output
    client.log = [INTENT, MARKER]
    assert "has left no transaction open" in run(monkeypatch, client, admin, "sink", "abort", "rows", "--yes").output


def test_abort_of_a_sink_that_is_not_there_says_so_and_nothing_of_making_topics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(topic: str) -> int:
        raise TopicMissing(f"{topic} does not exist. Create it first")

    client = FakeClient([])
    monkeypatch.setattr(client, "partitions", missing)
    error = run(monkeypatch, client, FakeAdmin({}), "sink", "abort", "nosuch").exception
    assert isinstance(error, InvalidInput)
    assert 'There is no sink "nosuch" in public/default' in str(error)
    assert "reate" not in str(error)


def test_a_topic_with_partitions_is_no_control_topic() -> None:
    """The fake has two partitions for what ends so; a read of it found nothing there, and said to create it."""
    with pytest.raises(InvalidInput, match=r"There is no sink \"two\" in public/default. .*__eos-two has 2 partitions"):
        aborting.abandoned(cast(Client, FakeClient([])), "two")


def test_abort_of_another_roles_transaction_says_who_may(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = Intent(2, "query", "run", 4, 1, TXN, "alice")
    client = FakeClient([theirs], ends=[refused("TransactionNotFound")])
    answer = run(monkeypatch, client, FakeAdmin({}), "sink", "abort", "rows", "--yes")
    assert (answer.exit_code, "only the role alice may end it" in answer.output) == (3, True)


@pytest.mark.parametrize(
    ("words", "known"),
    [
        ((), True),
        (("--token", "of another role"), False),
        (("--basic", "another:password"), False),
        (("--oauth2", '{"issuer_url": "https://issuer", "key_file": "file:/none"}'), False),
        (("--service-url", "pulsar+ssl://nowhere:1", "--tls-certificate", "c", "--tls-key", "k"), False),
        (("--token", "a superuser's", "--admin-url", "http://localhost:8080"), True),
    ],
)
def test_a_client_that_authenticates_may_be_another_role_than_the_one_that_the_log_does_not_name(
    words: tuple[str, ...], known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker says TransactionNotFound to both. The log names a role only where the sink has its principal."""
    client = FakeClient([INTENT], ends=[refused("TransactionNotFound")])
    answer = run(monkeypatch, client, FakeAdmin({}), "sink", "abort", "rows", "--yes", "--json", *words)
    assert (answer.exit_code, json.loads(answer.stdout)["outcome"]) == ((0, "had ended") if known else (3, "not known"))
    assert ("only the role that opened it may end it" in answer.stderr) is not known


def test_a_certificate_beside_a_token_authenticates_too() -> None:
    client = FakeClient([INTENT], ends=[refused("TransactionNotFound")])
    client.cluster = Cluster("pulsar+ssl://nowhere:1", tls=Tls(certificate="c", key="k"))
    assert abort(client) is aborting.AbortOutcome.NOT_KNOWN


def test_an_admin_api_that_does_not_tell_is_none_to_abort(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(txn: TxnId) -> OpenTransaction:
        raise refused("403")

    admin = FakeAdmin({})
    monkeypatch.setattr(admin, "transaction", forbidden)
    client = FakeClient([Intent(2, "query", "run", 4, 1, TXN, "alice")], ends=[refused("TransactionNotFound")])
    answer = run(monkeypatch, client, admin, "sink", "abort", "rows", "--yes", "--admin-url", "http://localhost:8080")
    assert (answer.exit_code, "only the role alice may end it" in answer.output) == (3, True)


def test_abort_tells_a_program_what_came_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = FakeAdmin({})
    done = run(monkeypatch, FakeClient([INTENT]), admin, "sink", "abort", "rows", "--yes", "--json")
    told = json.loads(done.stdout)
    assert (told["outcome"], told["transaction"], told["batch_id"]) == ("aborted", "(2,7)", 4)
    nothing = run(monkeypatch, FakeClient([INTENT, MARKER]), admin, "sink", "abort", "rows", "--yes", "--json")
    assert json.loads(nothing.stdout)["outcome"] == "nothing open"

"""What `eos doctor` concludes from what the cluster says."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import cast

import pytest

from eos.commit.control_log import Record
from eos.doctor.check import Check, CheckVerdict, care, good, not_told, unknown
from eos.doctor.checkup import readers_not_told
from eos.doctor.doctor import Doctor, Finding, ReaderState, Unrecovered, summary
from eos.doctor.traces import Trace
from eos.errors import InvalidInput, NetworkError, Refused, TopicMissing, Unanswered
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.net.transaction_stats import Buffer, OpenTransaction
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
    opened,
    refused,
    run,
)
from tests.waiting import PATIENCE_S


def doctor(client: FakeClient, admin: FakeAdmin, patience_s: float = PATIENCE_S) -> Doctor:
    return Doctor(cast(Client, client), cast(Admin, admin), patience_s)


# ---- looking


def test_nothing_is_found_where_nothing_is_held_up() -> None:
    assert doctor(FakeClient([]), FakeAdmin({})).look([ROWS, LOG]) == []


def test_an_open_transaction_is_waited_for_and_its_sink_is_named() -> None:
    admin = FakeAdmin({ROWS: [HELD]}, open=[opened()])
    (found,) = doctor(FakeClient([BEGINS, INTENT]), admin).look([ROWS])
    age_s = cast(float, pytest.approx(time.time() - 1, abs=60))
    assert found == Finding(
        ROWS, ReaderState.WAITING, TXN, opened(), Trace("rows", "public/default", INTENT, committed=False), age_s
    )
    assert "600 s after it was opened" in found.remedy
    assert "eos sink abort rows" in found.remedy
    assert json.loads(json.dumps(summary(found)))["batch_id"] == 4


def test_a_young_transaction_is_a_batch_at_work() -> None:
    young = OpenTransaction(TXN, "OPEN", round((time.time() - 30) * 1000), 600_000, (ROWS,))
    one = doctor(FakeClient([BEGINS, INTENT]), FakeAdmin({ROWS: [HELD]}, open=[young]))
    (found,) = one.look([ROWS])
    assert (found.lasts(60), found.lasts(20)) == (False, True)


def test_a_transaction_that_no_coordinator_knows_has_frozen_the_partition() -> None:
    (found,) = doctor(FakeClient([BEGINS, INTENT]), FakeAdmin({ROWS: [HELD]})).look([ROWS])
    assert (found.state, found.loses_rows) == (ReaderState.FROZEN, False)
    assert found.remedy == f"Stop its query, if one runs. Then eos doctor --heal {ROWS}"


def test_healing_what_was_committed_is_said_to_lose_rows() -> None:
    (found,) = doctor(FakeClient([INTENT, MARKER]), FakeAdmin({ROWS: [HELD]})).look([ROWS])
    assert found.loses_rows
    assert "--accept-loss" in found.remedy


@pytest.mark.parametrize(
    ("log", "trace"),
    [
        ([INTENT], Trace("rows", "public/default", INTENT, committed=None)),
        ([INTENT, MARKER], Trace("rows", "public/default", INTENT, committed=True)),
        ([], None),
    ],
)
def test_where_a_log_ends_too_early_healing_may_lose_rows(
    log: list[Record], trace: Trace | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A MARKER that was not read is none that is missing: healing would hide the rows without a word."""
    last = FakeReader.last_message_id
    monkeypatch.setattr(FakeReader, "last_message_id", lambda self: replace(last(self), entry=9))
    (found,) = doctor(FakeClient(log), FakeAdmin({ROWS: [HELD]})).look([ROWS])
    assert found.trace == trace
    assert found.loses_rows
    if trace is None or trace.committed is None:
        assert "The control log of rows could not be read to its end" in found.remedy
    assert "eos doctor --heal" not in found.remedy


def test_a_partition_that_is_freed_while_we_look_is_no_finding() -> None:
    assert doctor(FakeClient([]), FakeAdmin({ROWS: [HELD, HELD, FREE]})).look([ROWS]) == []


def test_a_partition_that_is_deleted_while_we_look_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = FakeAdmin({ROWS: [HELD]})
    asked = admin.buffer

    def deleted(topic: str) -> Buffer:
        monkeypatch.setattr(admin, "buffer", lambda topic: there_no_longer())
        return asked(topic)

    def there_no_longer() -> Buffer:
        raise TopicMissing(f"{ROWS} does not exist")

    monkeypatch.setattr(admin, "buffer", deleted)
    assert doctor(FakeClient([]), admin).look([ROWS]) == []


@pytest.mark.parametrize("recovering", UNSETTLED)
def test_a_partition_whose_transactions_are_being_recovered_is_not_known_to_be_free(recovering: Buffer) -> None:
    for said in ([recovering], [HELD, recovering]):  # at the first look, or as it seems to have been freed
        failed: dict[str, NetworkError] = {}
        assert doctor(FakeClient([]), FakeAdmin({ROWS: said})).look([ROWS], failed) == []
        assert "it is still recovering them" in str(failed[ROWS])
        assert not_told("readers", "", failed[ROWS]).verdict is CheckVerdict.UNKNOWN
    with pytest.raises(Refused, match="still recovering"):
        doctor(FakeClient([]), FakeAdmin({ROWS: [recovering]})).heal(FROZEN)


@pytest.mark.parametrize("recovering", [*UNSETTLED, None])
def test_a_partition_that_a_policy_keeps_from_being_recovered_is_named_with_the_policy(
    recovering: Buffer | None,
) -> None:
    """The broker tries, closes the topic, and tries again: at times no broker has it loaded."""

    class Cluster(FakeAdmin):
        def buffer(self, topic: str) -> Buffer:
            if topic == ROWS and recovering is None:
                raise TopicMissing(f"{ROWS} does not exist")
            return super().buffer(topic)

    admin = Cluster({ROWS: [recovering or FREE], LOG: [FREE]}, types=("Failover", "Shared"))
    one = doctor(FakeClient([]), admin)
    (found,) = one.look([ROWS, LOG])  # the log was recovered before the policy came
    assert (found.partition, found.state, found.lasts(60), found.loses_rows) == (ROWS, "unrecovered", True, False)
    assert "allows only subscriptions of the type Failover or Shared" in found.remedy
    assert "set-subscription-types-enabled --types Exclusive,Failover,Shared public/default" in found.remedy
    assert json.loads(json.dumps(summary(found)))["state"] == "unrecovered"
    for allowed in ((), ("Exclusive",), refused("403")):
        admin.types = allowed
        failed: dict[str, NetworkError] = {}
        assert one.look([ROWS, LOG], failed) == []
        assert ("it is still recovering them" in str(failed.get(ROWS))) is (recovering is not None)
        assert LOG not in failed


@pytest.mark.parametrize("namespace", ["public/default", "public/other"])
def test_a_topic_without_recovery_that_keeps_brokers_from_telling_transactions_is_named(namespace: str) -> None:
    """Brokers collect what is open from all topics, in whatever namespace, and fail as one of them is not there."""

    class Cluster(FakeAdmin):
        def open_transactions(self) -> list[OpenTransaction]:
            raise Refused("GET", "500", f"an error\n\nMessage: Topic not found persistent://{namespace}/lost")

        def subscription_types(self, asked: str) -> tuple[str, ...]:
            assert asked == namespace
            return allowed

    allowed: tuple[str, ...] = ("Shared",)
    one = doctor(FakeClient([]), Cluster({}))
    with pytest.raises(Unrecovered, match=f"{namespace}/lost.*set-subscription-types-enabled") as told:
        one.look([ROWS])
    assert readers_not_told(told.value).verdict is CheckVerdict.CARE
    allowed = ()
    with pytest.raises(Refused, match="Topic not found") as not_told:
        one.look([ROWS])
    assert not isinstance(not_told.value, Unrecovered)


def test_a_partition_that_is_never_recovered_is_not_called_healed() -> None:
    for buffer in UNSETTLED:
        with pytest.raises(Refused, match="set-subscription-types-enabled"):
            doctor(FakeClient([]), FakeAdmin({ROWS: [buffer]}, types=("Shared",))).heal(FROZEN)


def test_a_transaction_that_the_broker_does_not_name_is_told_by_those_that_are_open() -> None:
    stranger = doctor(FakeClient([]), FakeAdmin({ROWS: [HELD]}, behind=None, open=[opened()]))
    assert [one.state for one in stranger.look([ROWS])] == [ReaderState.WAITING]
    unknown = doctor(FakeClient([]), FakeAdmin({ROWS: [HELD]}, behind=None))
    assert [one.state for one in unknown.look([ROWS])] == [ReaderState.FROZEN]


@pytest.mark.parametrize("behind", [None, refused("500"), refused("403")])
def test_what_the_broker_does_not_name_is_looked_for_anew_before_it_is_called_frozen(behind: Refused | None) -> None:
    """As the transactions were asked for, none was open: the look has taken a while."""

    class Later(FakeAdmin):
        asked = 0

        def open_transactions(self) -> list[OpenTransaction]:
            self.asked += 1
            return [opened()] if self.asked > 1 else []

    assert doctor(FakeClient([]), FakeAdmin({ROWS: [HELD, HELD, FREE]}, behind=behind)).look([ROWS]) == []
    (found,) = doctor(FakeClient([]), Later({ROWS: [HELD]}, behind=behind)).look([ROWS])
    assert (found.state, found.txn) == (ReaderState.WAITING, None)


def test_partitions_of_topics() -> None:
    one = doctor(FakeClient([]), FakeAdmin({}))
    two = "persistent://public/default/two"
    assert list(one.partitions(["rows", two])) == [ROWS, f"{two}-partition-0", f"{two}-partition-1"]
    for wrong in ("a/b", "a b", "non-persistent://public/default/rows"):
        with pytest.raises(InvalidInput, match=f"'{wrong}' is not a topic name.*Write 'name'"):
            list(one.partitions([wrong]))
    assert one.namespace("public/default") == [LOG, ROWS]


# ---- healing

FROZEN = Finding(ROWS, ReaderState.FROZEN, TXN, None, None)


def test_empty_transactions_of_its_coordinator_end_there_until_it_is_free() -> None:
    client = FakeClient([], ends=[refused("TransactionNotFound"), None])
    frozen_once_more = [HELD] * 6
    doctor(client, FakeAdmin({ROWS: [*frozen_once_more, FREE]})).heal(FROZEN)
    empty = [("new", 2), ("add", ROWS), ("commit", TxnId(2, 100))]
    assert client.asked == empty * 2


def test_every_coordinator_is_tried_where_the_transaction_is_not_known() -> None:
    client = FakeClient([])
    doctor(client, FakeAdmin({})).heal(Finding(ROWS, ReaderState.FROZEN, None, None, None))
    assert [what for kind, what in client.asked if kind == "new"] == [0, 1, 2]


def test_what_stays_frozen_says_which_open_transactions_may_hold_it() -> None:
    older = opened(TxnId(2, 3))
    one = doctor(FakeClient([]), FakeAdmin({ROWS: [HELD]}, open=[older]), patience_s=0.1)
    with pytest.raises(Unanswered, match=r"still frozen by transaction \(2,7\).*\(2,3\) on persistent"):
        one.heal(FROZEN)


def test_what_stays_frozen_says_what_its_coordinator_refuses() -> None:
    client = FakeClient([], ends=[refused("TransactionNotFound")] * 100)
    one = doctor(client, FakeAdmin({ROWS: [HELD]}), patience_s=0.1)
    with pytest.raises(Unanswered, match=r"No transaction is open in its coordinator.*TransactionNotFound"):
        one.heal(FROZEN)


def test_what_waits_can_not_be_healed() -> None:
    with pytest.raises(ValueError, match="Only a frozen partition"):
        doctor(FakeClient([]), FakeAdmin({})).heal(Finding(ROWS, ReaderState.WAITING, TXN, opened(), None))


# ---- the command


def test_doctor_heals_on_demand_and_what_loses_rows_only_when_that_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    client, admin = FakeClient([INTENT, MARKER]), FakeAdmin({ROWS: [HELD]})
    looked = run(monkeypatch, client, admin, "doctor", "--readers", "--json")
    assert looked.exit_code == 1
    assert json.loads(looked.stdout)["held_up"][0]["committed"] is True
    assert run(monkeypatch, client, admin, "doctor", "rows", "--heal").exit_code == 1
    assert client.asked == []
    admin.buffers = {ROWS: [HELD] * 7 + [FREE]}
    healed = run(monkeypatch, client, admin, "doctor", "rows", "--heal", "--accept-loss")
    assert (healed.exit_code, "is free" in healed.output, "none held up" in healed.output) == (0, True, True)


GOOD, CARE, UNKNOWN = good("clocks", "They agree."), care("CRC32C", "Slow."), unknown("Pulsar", "Not tried.")


@pytest.mark.parametrize(
    ("checks", "code", "told"),
    [
        ([GOOD], 0, "1 thing looked at: good."),
        ([GOOD, CARE, UNKNOWN], 1, "3 things looked at: 1 good, 1 to take care of, 1 that can't be known"),
        ([GOOD, UNKNOWN], 3, "2 things looked at: 1 good, 1 that can't be known"),
    ],
)
def test_what_cant_be_known_is_neither_well_nor_amiss(
    checks: list[Check], code: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eos.doctor.checkup.checkup", lambda *asked: checks)
    done = run(monkeypatch, FakeClient([]), FakeAdmin({}), "doctor")
    assert (done.exit_code, told in done.output) == (code, True), done.output
    assert [check.said in done.output for check in checks] == [check is not GOOD for check in checks]
    shown = json.loads(run(monkeypatch, FakeClient([]), FakeAdmin({}), "doctor", "--json").stdout)
    assert [one["about"] for one in shown["checks"]] == [check.about for check in checks]
    for readers_alone in (("rows",), ("--readers",)):
        assert run(monkeypatch, FakeClient([]), FakeAdmin({}), "doctor", *readers_alone).exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--accept-loss",), "--accept-loss says how far --heal may go. Nothing was healed"),
        (("--older-than", "nan"), "--older-than nan is not a number of seconds"),
        (("--older-than", "-1"), "--older-than -1 is not a number of seconds"),
        (("--namespace", "public"), "'public' is not a namespace"),
    ],
)
def test_what_would_hide_every_finding_is_refused(
    words: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = run(monkeypatch, FakeClient([]), FakeAdmin({ROWS: [HELD]}), "doctor", *words).exception
    assert isinstance(error, InvalidInput)
    assert said in str(error)


def test_a_broker_without_transactions_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    off = Refused("GET", "503", "This Broker is not configured with transactionCoordinatorEnabled=true.")
    assert readers_not_told(off).verdict is CheckVerdict.GOOD
    other = Refused("GET", "503", "Broker is starting")
    with pytest.raises(Refused, match="starting"):
        readers_not_told(other)


def test_a_role_that_may_not_know_who_waits_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(namespace: str, code: str = "403") -> tuple[str, ...]:
        raise Refused("GET", code, "no permission")

    monkeypatch.setattr("eos.doctor.checkup.checkup", lambda *asked: [GOOD])
    admin = FakeAdmin({})
    monkeypatch.setattr(admin, "topics", forbidden)
    done = run(monkeypatch, FakeClient([]), admin, "doctor")
    assert (done.exit_code, "is not told to this role" in done.output) == (3, True), done.output
    assert isinstance(run(monkeypatch, FakeClient([]), admin, "doctor", "--readers").exception, Refused)
    monkeypatch.setattr(admin, "topics", lambda namespace: forbidden(namespace, "500"))
    assert isinstance(run(monkeypatch, FakeClient([]), admin, "doctor").exception, Refused)


def test_readers_that_wait_for_a_batch_at_work_are_counted_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    young = OpenTransaction(TXN, "OPEN", round((time.time() - 30) * 1000), 600_000, (ROWS,))
    admin = FakeAdmin({ROWS: [HELD]}, open=[young])
    done = run(monkeypatch, FakeClient([BEGINS, INTENT]), admin, "doctor", "rows")
    assert (done.exit_code, "1 waits for a transaction that is open for less than 60 s" in done.output) == (0, True)
    assert run(monkeypatch, FakeClient([BEGINS, INTENT]), admin, "doctor", "rows", "--older-than", "20").exit_code == 1

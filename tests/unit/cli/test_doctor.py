"""What `eos doctor` prints where a part of what it looks at does not answer: the rest, and what is not known."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eos.doctor.check import Check, good
from eos.doctor.doctor import Doctor, Finding
from eos.errors import InvalidInput, NetworkError, Refused, Unanswered, Unreachable
from eos.pulsar.net.transaction_stats import Buffer
from eos.pulsar.wire.message_id import MessageId
from tests.unit.doctor.cluster import BEGINS, HELD, INTENT, LOG, ROWS, FakeAdmin, FakeClient, run

ERRORS = [Refused("GET", "403", "no permission"), Unanswered("no answer within 30 s"), Unreachable("refused")]
SECOND = f"{ROWS}-2"


class Fails(FakeAdmin):
    """Does not tell of some topics."""

    failing: tuple[str, ...] = ()
    error: NetworkError = ERRORS[0]

    def topics(self, namespace: str) -> tuple[str, ...]:
        return (ROWS, SECOND, LOG)

    def buffer(self, topic: str) -> Buffer:
        if topic in self.failing:
            raise self.error
        return super().buffer(topic)

    def subscriptions(self, topic: str) -> tuple[str, ...]:
        raise self.error


@pytest.fixture(autouse=True)
def checkup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eos.doctor.checkup.checkup", lambda *asked: [good("clocks", "They agree.")])


def asked(monkeypatch: pytest.MonkeyPatch, admin: FakeAdmin, *words: str) -> Any:
    return run(monkeypatch, FakeClient([BEGINS, INTENT]), admin, "doctor", *words)


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("words", [(), ("--readers",), ("rows", "rows-2"), ("--heal",)])
def test_a_partition_that_does_not_tell_hides_no_other(
    words: tuple[str, ...], error: NetworkError, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Doctor, "heal", lambda *finding, accept_loss: False)
    admin = Fails({ROWS: [HELD]})
    admin.failing, admin.error = (SECOND,), error
    done = asked(monkeypatch, admin, *words)
    assert (done.exit_code, "frozen" in done.stdout) == (1, True), done.output
    number = 2 if "rows" in words else 3
    assert f"{number - 1} of {number} partitions looked at, 1 held up." in done.output
    admin.buffers = {}
    done = asked(monkeypatch, admin, *words, "--json")
    assert (done.exit_code, f"{number - 1} of {number} partitions looked at, none held up" in done.output) == (3, False)
    (unknown,) = [one for one in json.loads(done.stdout)["checks"] if one["verdict"] == "can't be known"]
    assert unknown["about"] == f"readers of {SECOND}"
    assert str(error) in unknown["said"]
    assert "of 3 partitions looked at, none held up" in asked(monkeypatch, admin).output


def test_an_empty_namespace_is_not_told_as_one_without_waiting_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = FakeAdmin({})
    monkeypatch.setattr(admin, "topics", lambda namespace: ())
    for words in ((), ("--readers",)):
        done = asked(monkeypatch, admin, *words)
        assert (done.exit_code, "none held up" in done.output) == (0, False), done.output
        assert "public/default has no topics, so no readers were looked at." in done.output


def test_none_is_called_free_where_none_was_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden() -> list[Any]:
        raise ERRORS[0]

    admin = Fails({ROWS: [HELD]})
    monkeypatch.setattr(admin, "open_transactions", forbidden)
    done = asked(monkeypatch, admin)
    assert (done.exit_code, "held up" in done.output, "is not told to this role" in done.stdout) == (3, False, True)


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize(("buffers", "code"), [({ROWS: [HELD]}, 1), ({}, 3)])
def test_brokers_that_do_not_answer_hide_no_finding(
    buffers: dict[str, list[Buffer]], code: int, error: NetworkError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unanswered(*asked: object) -> Any:
        raise error

    monkeypatch.setattr("eos.doctor.checkup.checkup", unanswered)
    done = asked(monkeypatch, FakeAdmin(buffers))
    assert (done.exit_code, "frozen" in done.stdout, "sinks and brokers" in done.stdout) == (code, bool(buffers), True)
    admin = FakeAdmin(buffers)
    monkeypatch.setattr(admin, "open_transactions", lambda: unanswered())
    ended = asked(monkeypatch, admin)
    assert ended.exception is error, "nothing was found out"


def test_leftovers_that_may_not_be_deleted_hide_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    done = asked(monkeypatch, Fails({ROWS: [HELD]}), "--remove-leftovers")
    assert (done.exit_code, "frozen" in done.stdout, "may be there" in done.stdout) == (1, True, True), done.output


@pytest.mark.parametrize("error", ERRORS)
def test_a_partition_that_stays_frozen_keeps_no_other_from_being_healed(
    error: NetworkError, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = Fails({ROWS: [HELD], SECOND: [HELD]})
    healed = []

    def heal(self: Doctor, finding: Finding, *, accept_loss: bool) -> bool:
        healed.append(finding.partition)
        if finding.partition == ROWS:
            raise error
        admin.buffers[SECOND] = [Buffer("Ready", MessageId(5, 9), MessageId(5, 9), 0)]
        return True

    monkeypatch.setattr(Doctor, "heal", heal)
    done = asked(monkeypatch, admin, "--heal")
    assert (done.exit_code, healed) == (1, [ROWS, SECOND])
    told = " ".join(done.output.split())
    assert f"{ROWS} is not healed. {error}" in told
    assert f"{SECOND} is free." in told
    assert "3 partitions, 1 held up." in told


def test_a_partition_that_a_policy_keeps_from_telling_needs_care(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = Fails({})
    admin.failing, admin.error = (SECOND,), Refused("GET", "500", "No offloader found", "Remove the policy")
    done = asked(monkeypatch, admin, "--readers", "--json")
    (found,) = json.loads(done.stdout)["checks"]
    assert (done.exit_code, found["verdict"], "Remove the policy" in found["said"]) == (1, "take care", True)


@pytest.mark.parametrize("words", [(), ("--readers",), ("rows",), ("--heal",)])
def test_readers_that_wait_until_a_policy_changes_are_held_up(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = Fails({ROWS: [Buffer("Initializing", MessageId(-1, -1), MessageId(5, 9), 0)]}, types=("Shared",))
    done = asked(monkeypatch, admin, *words, "--json")
    told = json.loads(done.stdout)
    assert (done.exit_code, [one["state"] for one in told["held_up"]]) == (1, ["unrecovered"])
    assert not [one for one in told["checks"] if one["about"] != "clocks"]
    assert "1 held up." in asked(monkeypatch, admin, *words).output
    admin.types = Refused("GET", "403", "no permission")
    assert asked(monkeypatch, admin, *words).exit_code == 3


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("words", [(), ("--heal",)])
def test_brokers_that_hang_are_not_waited_for_once_for_each_partition(
    words: tuple[str, ...], error: NetworkError, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each partition costs a time-out of 30 s. A refusal costs nothing, and says nothing of the other partitions."""
    waited: list[str] = []

    class Many(Fails):
        def topics(self, namespace: str) -> tuple[str, ...]:
            return tuple(f"{ROWS}-{number:03}" for number in range(100))

        def buffer(self, topic: str) -> Buffer:
            if topic > f"{ROWS}-009":
                waited.append(topic)
                raise error
            return super().buffer(topic)

    monkeypatch.setattr(Doctor, "heal", lambda *finding, accept_loss: True)
    done = asked(monkeypatch, Many({f"{ROWS}-002": [HELD]}), *words, "--json")
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert [one["partition"] for one in told["held_up"]] == [f"{ROWS}-002"]
    abouts = [one["about"] for one in told["checks"]]
    if isinstance(error, Refused):
        assert len(abouts) == 90 + (not words)
        return
    silent = [f"{ROWS}-{number:03}" for number in (10, 11, 12)]
    assert waited == silent
    also = [] if words else ["sinks and brokers"]
    assert abouts == [*(f"readers of {topic}" for topic in silent), "readers of 87 other partitions", *also]
    assert "gave no answer, so eos doctor stopped asking" in told["checks"][3]["said"]
    assert done.stderr.count("No answer about the readers of") == 3


def test_a_partition_that_answers_shows_that_its_broker_does_not_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    class EverySecond(Fails):
        def topics(self, namespace: str) -> tuple[str, ...]:
            return tuple(f"{ROWS}-{number}" for number in range(8))

    admin = EverySecond({})
    admin.failing, admin.error = tuple(f"{ROWS}-{number}" for number in range(0, 8, 2)), ERRORS[1]
    assert "4 of 8 partitions looked at" in asked(monkeypatch, admin, "--readers").output
    assert len(json.loads(asked(monkeypatch, admin, "--readers", "--json").stdout)["checks"]) == 4


@pytest.mark.parametrize(
    ("words", "namespace"),
    [
        (("orders-out",), "public/default"),
        (("persistent://sales/eu/orders-out", "sales/eu/late"), "sales/eu"),
        (("sales/eu/orders-out", "--namespace", "public/control"), "public/control"),
        (("sales/eu/orders-out", "sales/us/orders-out", "--namespace", "sales/us"), "sales/us"),
        ((), "public/default"),
    ],
)
def test_a_preflight_check_looks_for_the_control_topic_where_the_sink_makes_it(
    words: tuple[str, ...], namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = list[tuple[str, str]]()

    def needs(client: object, admin: object, where: str, sink: str, topics: list[str]) -> list[Check]:
        looked.append((where, sink))
        return []

    monkeypatch.setattr("eos.doctor.checkup.job_needs", needs)
    done = asked(monkeypatch, FakeAdmin({}), "--preflight", "--sink", "orders", *words)
    assert (done.exit_code, looked) == (0, [(namespace, "orders")]), done.output


def test_a_preflight_check_does_not_guess_among_several_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eos.doctor.checkup.job_needs", lambda *needs: [good("clocks", f"Of {needs[2]}.")])
    topics = ("sales/us/orders-out", "sales/eu/orders-out")
    ended = asked(monkeypatch, FakeAdmin({}), "--preflight", "--sink", "orders", *topics)
    assert isinstance(ended.exception, InvalidInput)
    assert "in sales/eu and sales/us, and the control topic of the sink orders" in str(ended.exception)
    read = asked(monkeypatch, FakeAdmin({}), "--preflight", *topics)
    assert (read.exit_code, "Of sales/eu." in read.stdout) == (0, True), "a job that only reads has no control topic"

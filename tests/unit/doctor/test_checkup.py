"""What `eos doctor --preflight` says of the topics of a job: there, missing, not allowed, not told are four answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import pytest

from eos.doctor import checkup
from eos.doctor.check import Check, CheckVerdict
from eos.errors import NetworkError, Refused, TopicMissing, Unanswered
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.net.policies import Backlog, TopicPolicies
from eos.pulsar.protocol import refusals

LOG, ROWS = "persistent://public/default/__eos-rows", "persistent://public/default/rows"
KEPT = TopicPolicies(0, (), -1, -1)
NO_RIGHT = Refused("open a producer", "AuthorizationError", "Client is not authorized to Produce")
FAILED_CHECK = "Exception occurred while trying to authorize lookup"


def refused(code: str, words: str = "") -> Refused:
    return refusals.refused("open", code, words)


@dataclass
class Cluster:
    """Client and admin API of one cluster. `fails` has what is raised by whom: "keeping", "partitions", "producer",
    "reader".
    """

    fails: dict[tuple[str, str], Exception] = field(default_factory=dict)
    opened: list[str] = field(default_factory=list)

    def _answer(self, verb: str, topic: str) -> None:
        if (verb, topic) in self.fails:
            raise self.fails[verb, topic]

    def keeping(self, topic: str) -> TopicPolicies:
        self._answer("keeping", topic)
        return KEPT

    def entry_filters(self, topic: str) -> tuple[str, ...]:
        return ()

    def partitions(self, topic: str) -> int:
        self._answer("partitions", topic)
        return 0

    def producer(self, topic: str) -> Cluster:
        self._answer("producer", topic)
        self.opened.append(topic)
        return self

    def entry_reader(self, topic: str, start: None, *, permits: int) -> Reader:
        return Reader(self, topic)

    def close(self) -> None:
        self.opened.append("closed")

    def replicated_on(self, topic: str) -> tuple[str, ...]:
        return ("here",)

    def subscriptions(self, topic: str) -> tuple[str, ...]:
        return ("__eos-hold",)

    def backlog(self, topic: str) -> Backlog:
        return Backlog(0, 0, "", {})


@dataclass
class Reader:
    cluster: Cluster
    topic: str

    def last_message_id(self) -> None:
        self.cluster._answer("reader", self.topic)
        self.cluster.opened.append(self.topic)

    def close(self) -> None:
        self.cluster.opened.append("closed")


@pytest.fixture(autouse=True)
def no_machine_and_no_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: object) -> Iterator[Check]:
        return iter(())

    monkeypatch.setattr(checkup, "machine", nothing)
    monkeypatch.setattr(checkup, "brokers", nothing)
    monkeypatch.setattr(checkup, "number_of_topics", lambda *_: Check("topics", CheckVerdict.GOOD, ""))


def verdicts(cluster: Cluster, sink: str | None = "rows") -> dict[str, CheckVerdict]:
    found = checkup.job_needs(cast(Client, cluster), cast(Admin, cluster), "public/default", sink, [ROWS])
    return {one.about: one.verdict for one in found}


def test_a_job_that_has_all_it_needs_is_told_so_line_by_line() -> None:
    cluster = Cluster()
    assert verdicts(cluster) == dict.fromkeys(
        (
            *("topics", "log of rows", f"right to read {LOG}", f"right to write to {LOG}"),
            *(f"topic {ROWS}", f"right to write to {ROWS}", "rows of rows"),
        ),
        CheckVerdict.GOOD,
    )
    assert cluster.opened == [LOG, "closed", LOG, "closed", ROWS, "closed"]


def test_a_role_that_may_not_ask_for_policies_is_told_whether_it_may_write() -> None:
    """Only administrators of a tenant may ask, and a job needs no such role."""
    forbidden = Refused("GET", "403", "Unauthorized to validateTopicPolicyOperation")
    cluster = Cluster({("keeping", topic): forbidden for topic in (LOG, ROWS)})
    found = verdicts(cluster)
    asked = [f"right to read {LOG}", f"right to write to {LOG}", f"topic {ROWS}", f"right to write to {ROWS}"]
    assert [found[one] for one in asked] == [CheckVerdict.GOOD] * 4
    assert (found["log of rows"], found["rows of rows"]) == (CheckVerdict.UNKNOWN, CheckVerdict.UNKNOWN)
    cluster.fails["producer", LOG] = cluster.fails["producer", ROWS] = NO_RIGHT
    found = verdicts(cluster)
    assert (found[asked[1]], found[asked[3]]) == (CheckVerdict.CARE, CheckVerdict.CARE)


def test_a_control_topic_with_partitions_needs_care_and_a_driver_that_owns_it_does_not() -> None:
    class Partitioned(Cluster):
        def partitions(self, topic: str) -> int:
            return 4 if topic == LOG else 0

    found = verdicts(Partitioned())
    assert (found["log of rows"], f"right to write to {LOG}" in found) == (CheckVerdict.CARE, False)
    owned = refused("ProducerBusy", "Topic has an existing exclusive producer")
    assert verdicts(Cluster({("producer", LOG): owned}))[f"right to write to {LOG}"] is CheckVerdict.GOOD


def test_the_namespaces_of_the_jobs_topics_are_looked_at_too() -> None:
    """That of the control topic is among what counts of the brokers."""

    class Refuses(Cluster):
        def subscription_types(self, namespace: str) -> tuple[str, ...]:
            return ("Shared",)

    others = ["persistent://public/other/rows", "persistent://public/other/more"]
    cluster = Refuses()
    found = checkup.job_needs(cast(Client, cluster), cast(Admin, cluster), "public/default", None, [ROWS, *others])
    types = {one.about: one.verdict for one in found if "types" in one.about}
    assert types == {"subscription types of public/other": CheckVerdict.CARE}


def test_a_job_that_only_reads_is_asked_for_no_right_to_write() -> None:
    cluster = Cluster({("producer", ROWS): NO_RIGHT})
    assert verdicts(cluster, sink=None) == dict.fromkeys(
        ("topics", f"topic {ROWS}", f"right to read {ROWS}", "rows of the job"), CheckVerdict.GOOD
    )
    assert cluster.opened == [ROWS, "closed"]


@pytest.mark.parametrize(
    ("asked", "error", "about", "verdict"),
    [
        (("keeping", LOG), TopicMissing("no topic"), "log of rows", CheckVerdict.UNKNOWN),
        (("partitions", LOG), TopicMissing("no topic"), "log of rows", CheckVerdict.UNKNOWN),
        (("partitions", LOG), NO_RIGHT, "log of rows", CheckVerdict.CARE),
        (("producer", LOG), NO_RIGHT, f"right to write to {LOG}", CheckVerdict.CARE),
        (("keeping", LOG), Refused("GET", "401", "no right"), "log of rows", CheckVerdict.UNKNOWN),
        (("keeping", LOG), Refused("GET", "500", "no bookies", "Start bookies"), "log of rows", CheckVerdict.CARE),
        (("keeping", ROWS), Refused("GET", "500", "no bookies", "Start bookies"), f"topic {ROWS}", CheckVerdict.CARE),
        (("partitions", ROWS), TopicMissing("no topic"), f"topic {ROWS}", CheckVerdict.CARE),
        (("keeping", ROWS), TopicMissing("no topic"), f"topic {ROWS}", CheckVerdict.CARE),
        (("partitions", ROWS), NO_RIGHT, f"topic {ROWS}", CheckVerdict.CARE),
        (("partitions", ROWS), refused("AuthorizationError", FAILED_CHECK), f"topic {ROWS}", CheckVerdict.UNKNOWN),
        (("reader", LOG), refused("AuthorizationError", FAILED_CHECK), f"right to read {LOG}", CheckVerdict.UNKNOWN),
        (("partitions", ROWS), Unanswered("no answer"), f"topic {ROWS}", CheckVerdict.UNKNOWN),
        (("producer", ROWS), NO_RIGHT, f"right to write to {ROWS}", CheckVerdict.CARE),
        (("producer", ROWS), refused("IncompatibleSchema"), f"right to write to {ROWS}", CheckVerdict.UNKNOWN),
        (("producer", ROWS), refused("PersistenceError"), f"right to write to {ROWS}", CheckVerdict.UNKNOWN),
        (
            ("producer", ROWS),
            refused("MetadataError", "Encryption is required"),
            f"right to write to {ROWS}",
            CheckVerdict.CARE,
        ),
        (
            ("producer", ROWS),
            refused("ProducerBlockedQuotaExceededError"),
            f"right to write to {ROWS}",
            CheckVerdict.CARE,
        ),
        (("reader", LOG), refused("NotAllowedError", "Exclusive sub type"), f"right to read {LOG}", CheckVerdict.CARE),
        (("reader", LOG), TopicMissing("removed"), f"right to read {LOG}", CheckVerdict.GOOD),
        (("reader", LOG), Unanswered("no answer"), f"right to read {LOG}", CheckVerdict.UNKNOWN),
        (("producer", ROWS), Unanswered("no answer"), f"right to write to {ROWS}", CheckVerdict.UNKNOWN),
    ],
)
def test_missing_and_not_allowed_need_care_and_what_is_not_told_is_not_known(
    asked: tuple[str, str], error: NetworkError, about: str, verdict: CheckVerdict
) -> None:
    cluster = Cluster({asked: error})
    assert verdicts(cluster)[about] is verdict
    if about == f"topic {ROWS}":
        assert ROWS not in cluster.opened, "to connect a producer might make the topic"

"""What is refused of the policies of a control topic, by the answers of an admin API."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import TracebackType

import pytest

from eos.config import Cluster
from eos.errors import InvalidInput, NetworkError, Refused, Unanswered, Unreachable
from eos.preflight import retention
from eos.pulsar.net.policies import TopicPolicies
from eos.pulsar.net.transaction_stats import OpenTransaction
from eos.pulsar.wire.txn import TxnId

TOPIC = "persistent://tenant/jobs/__eos-daily"


@dataclass
class FakeAdmin:
    """Answers by what its namespace and its broker are set to; `refuses` some questions."""

    own: int | None = None
    brokers: str | None = "0"
    retained: tuple[int, int] = (0, 0)
    refuses: dict[str, NetworkError] = field(default_factory=dict)

    def __enter__(self) -> FakeAdmin:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close nothing."""

    def subscription_expiry_minutes(self, topic: str) -> int | None:
        self._ask("namespace")
        assert topic == TOPIC
        return self.own

    def version(self) -> str:
        self._ask("version")
        return "4.2.4"

    def setting(self, name: str) -> str | None:
        self._ask("setting")
        assert name == "subscriptionExpirationTimeMinutes"
        return self.brokers

    def keeping(self, topic: str) -> TopicPolicies:
        self._ask("policies")
        assert topic == TOPIC
        return TopicPolicies(0, (), *self.retained)

    def _ask(self, question: str) -> None:
        if question in self.refuses:
            raise self.refuses[question]


def check(monkeypatch: pytest.MonkeyPatch, admin: FakeAdmin) -> None:
    monkeypatch.setattr(retention, "Admin", lambda *_: admin)
    retention.check_expiry("http://nowhere", Cluster("pulsar://nowhere"), TOPIC)


@pytest.mark.parametrize(
    "admin",
    [
        FakeAdmin(),
        FakeAdmin(brokers=None),
        FakeAdmin(own=0, brokers="60"),
        FakeAdmin(own=60, retained=(-1, -1)),
        FakeAdmin(own=60, refuses={"namespace": Refused("GET", "403", "not yours")}),
        FakeAdmin(refuses={"setting": Refused("GET", "403", "only for superusers")}),
    ],
)
def test_a_subscription_that_stays_is_fine_and_so_is_what_a_role_may_not_know(
    monkeypatch: pytest.MonkeyPatch, admin: FakeAdmin
) -> None:
    check(monkeypatch, admin)


@pytest.mark.parametrize(
    "admin",
    [
        FakeAdmin(own=60),
        FakeAdmin(brokers="60"),
        FakeAdmin(own=60, retained=(-1, 1000)),
        FakeAdmin(own=60, retained=(10_080, -1)),
    ],
)
def test_a_subscription_that_is_deleted_while_no_job_runs_is_refused_with_the_command_that_retains_the_records(
    monkeypatch: pytest.MonkeyPatch, admin: FakeAdmin
) -> None:
    with pytest.raises(InvalidInput, match=rf"for 60 minutes .* set-retention --time -1 --size -1 {TOPIC}"):
        check(monkeypatch, admin)


AWAY = [
    Unanswered("no answer"),
    Unreachable("connection refused"),
    *(Refused("GET", code, "not now") for code in ("429", "500", "502", "503", "504")),
]


@pytest.mark.parametrize("error", AWAY, ids=repr)
def test_an_admin_api_that_is_away_does_not_call_for_a_change(
    monkeypatch: pytest.MonkeyPatch, error: NetworkError
) -> None:
    """As while brokers are restarted one by one: the sink asks again, as it does of its control topic."""
    with pytest.raises(NetworkError) as raised:
        check(monkeypatch, FakeAdmin(refuses={"namespace": error}))
    assert raised.value is error


@pytest.mark.parametrize("error", [*AWAY, Refused("GET", "404", "no such page")], ids=repr)
def test_a_sink_is_not_made_with_an_admin_api_that_is_away(
    monkeypatch: pytest.MonkeyPatch, error: NetworkError
) -> None:
    monkeypatch.setattr(retention, "Admin", lambda *_: FakeAdmin(refuses={"version": error}))
    with pytest.raises(InvalidInput, match='can\'t use admin_url="http://nowhere"'):
        retention.check_admin("http://nowhere", Cluster("pulsar://nowhere"))


def test_a_refusal_of_the_admin_api_calls_for_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="can't use admin_url"):
        check(monkeypatch, FakeAdmin(refuses={"namespace": Refused("GET", "405", "not allowed here")}))


@pytest.mark.parametrize("code", ["401", "403"])
def test_a_role_that_may_not_ask_for_policies_is_told_what_it_needs(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    admin = FakeAdmin(refuses={"policies": Refused("GET", code, "Unauthorized to validateTopicPolicyOperation")})
    monkeypatch.setattr(retention, "Admin", lambda *_: admin)
    with pytest.raises(InvalidInput, match=rf"{TOPIC} is not told to this role.* Or leave admin_url out"):
        retention.check_retention("http://nowhere", Cluster("pulsar://nowhere"), TOPIC)
    admin.refuses["policies"] = Refused("GET", "405", "not allowed here")
    with pytest.raises(InvalidInput, match="can't use admin_url"):
        retention.check_retention("http://nowhere", Cluster("pulsar://nowhere"), TOPIC)


@pytest.mark.parametrize(("ahead_s", "said"), [(-90, "opened 90 s ago"), (3_600, "opened 0 s ago")])
def test_a_transaction_is_not_opened_in_the_future(monkeypatch: pytest.MonkeyPatch, ahead_s: int, said: str) -> None:
    """The broker's clock may be ahead of the driver's."""
    now_ms = 1_790_000_000_000
    opened = OpenTransaction(TxnId(2, 7), "OPEN", now_ms + ahead_s * 1_000, 600_000, ())
    monkeypatch.setattr("eos.preflight.retention.time.time_ns", lambda: now_ms * 1_000_000)
    monkeypatch.setattr(FakeAdmin, "open_transactions", lambda self: [opened], raising=False)
    monkeypatch.setattr(retention, "Admin", lambda *_: FakeAdmin())
    told = retention.holders("http://nowhere", Cluster("pulsar://nowhere"), 2)
    assert told is not None
    assert said in told

"""How the admin API is asked: a body goes where a broker sends us on to, and certificates are loaded only for https."""

from __future__ import annotations

import ssl

import httpx
import pytest

from eos.config import Credentials, Tls
from eos.errors import InvalidInput, Refused, TopicMissing
from eos.pulsar.net import admin_requests
from eos.pulsar.net.admin import Admin, if_there
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.txn import TxnId
from tests.modules import modules_with
from tests.unit.pulsar.net.test_admin import TOPIC, Server
from tests.unit.pulsar.net.test_admin import admin as admin
from tests.unit.pulsar.net.test_admin import server as server


def test_a_body_follows_to_the_owner_and_https_is_trusted_as_the_caller_says(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str, bytes, str]] = []
    trusted: list[Tls] = []

    def answer(_: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        asked.append((request.method, str(request.url), request.read(), request.headers["Authorization"]))
        if request.url.host == "owner.example":
            return httpx.Response(204)
        return httpx.Response(307, headers={"Location": str(request.url).replace("http://first", "https://owner")})

    def context(tls: Tls, credentials: Credentials) -> ssl.SSLContext:
        trusted.append(tls)
        return ssl.create_default_context()

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", answer)
    monkeypatch.setattr(admin_requests, "tls_context", context)
    tls = Tls(trust_certs="ca.pem")
    with Admin("http://first.example", Credentials("token", "secret"), tls) as admin:
        assert trusted == [], "to load certificates takes longer than to ask without them"
        admin.create("t", 3)
    path = ".example/admin/v2/persistent/public/default/t/partitions"
    assert asked == [
        ("PUT", f"http://first{path}", b"3", "Bearer secret"),
        ("PUT", f"https://owner{path}", b"3", "Bearer secret"),
    ]
    assert trusted == [tls]


def test_a_topic_without_partitions_is_created_without_a_body(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str, bytes]] = []

    def answer(_: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        asked.append((request.method, request.url.path, request.read()))
        return httpx.Response(204)

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", answer)
    with Admin("http://first.example") as admin:
        admin.create("persistent://a/b/c", 0)
    assert asked == [("PUT", "/admin/v2/persistent/a/b/c", b"")]


def test_nobody_else_speaks_http_to_a_broker() -> None:
    assert modules_with(r"httpx\.", "eos", "statestore", "pytest_eos") == {
        "eos/pulsar/net/admin_requests.py",
        "eos/pulsar/net/http.py",  # makes the clients of both
        "eos/pulsar/net/oauth2.py",  # the issuer of tokens
        "statestore/drills/admin.py",  # reads answers
        "statestore/drills/standalone.py",  # the page of Spark's master
    }


@pytest.mark.parametrize(
    ("headers", "status", "reason", "kind"),
    [
        ({}, 200, "", "message"),
        ({"X-Pulsar-txn-aborted": "false"}, 200, "", "message"),
        ({"X-Pulsar-txn-aborted": "true"}, 200, "", "aborted"),
        ({"X-Pulsar-marker-type": "22", "X-Pulsar-txn-aborted": "true"}, 200, "", "marker"),
        ({}, 404, "Message id not found", "gone"),
        ({}, 500, "Message: No such entry\n\nStacktrace:", "gone"),
        ({}, 404, "Not Found", None),
        ({}, 500, "Bookie handle is not available", None),
        ({}, 403, "not authorized", None),
    ],
)
def test_what_an_entry_is(
    server: Server, admin: Admin, headers: dict[str, str], status: int, reason: str, kind: str | None
) -> None:
    server.answers = {f"{TOPIC}/ledger/5/entry/4": (status, {"reason": reason} if reason else None)}
    server.headers = headers
    if kind is not None:
        assert admin.entry_kind("persistent://public/default/t/x", EntryId(5, 4)) == kind
        return
    with pytest.raises(Refused, match=reason):
        admin.entry_kind("persistent://public/default/t/x", EntryId(5, 4))


@pytest.mark.parametrize(("told", "clusters"), [(["west", "east"], ("east", "west")), (None, ())])
def test_the_clusters_that_a_topic_is_replicated_on(
    server: Server, admin: Admin, told: list[str] | None, clusters: tuple[str, ...]
) -> None:
    server.answers = {f"{TOPIC}/replication?applied=true": (200, told)}
    assert admin.replicated_on("persistent://public/default/t/x") == clusters


@pytest.mark.parametrize(("status", "advice"), [(500, True), (412, False)])
def test_a_server_error_whose_words_name_a_known_cause_comes_with_what_helps(
    server: Server, admin: Admin, status: int, advice: bool
) -> None:
    words = "--- An unexpected error occurred in the server ---\n\nMessage: Not enough non-faulty bookies available"
    server.answers = {"/admin/v2/brokers/version": (status, {"reason": words})}
    with pytest.raises(Refused) as refused:
        admin.version()
    assert ("set-persistence" in refused.value.advice) is advice


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (404, "Transaction coordinator with id 0 not found!"),
        (404, "Topic not found persistent://public/default/x"),
        (500, "Message: Topic not found persistent://public/default/x\n\nStacktrace: ..."),
        (503, "The broker is closing"),
    ],
)
def test_a_transaction_of_which_a_broker_cannot_tell_has_not_ended(
    server: Server, admin: Admin, status: int, reason: str
) -> None:
    server.answers = {
        "/admin/v3/transactions/transactionMetadata/0/1": (status, {"reason": reason}),
        "/admin/v2/persistent/public/default/x/stats": (404, {"reason": "Topic not found"}),
    }
    with pytest.raises(Refused, match=reason.partition("\n")[0]):
        admin.transaction(TxnId(0, 1))


STATS = "/admin/v2/persistent/public/default/topic-a/stats"


@pytest.mark.parametrize(
    "reason",
    [
        "Topic not found",
        "Topic persistent://public/default/topic-a not found",
        "Topic persistent://public/default/topic-a not found.",
        "Topic persistent://public/default/topic-a does not exist",
        "Topic not found persistent://public/default/topic-a",
        "Topic does not exist and cannot be auto-created",
        "Topic partitions were not yet created",
        "Topic's namespace does not exist",
        "Topic or subscription not found",
        "Partitioned Topic not found",
        "Partitioned Topic not found: persistent://public/default/topic-a has zero partitions",
        "Partitioned Topic persistent://public/default/topic-a not found",
        "Partitioned topic not found persistent://public/default/topic-a",
        "Partition metadata not found for the partitioned topic: persistent://public/default/topic-a",
        "Subscription mine not found for topic persistent://public/default/topic-a",
        " --- An unexpected error occurred in the server ---\n\nMessage: Topic topic-a not found\n\nStacktrace:\n\nat",
    ],
)
def test_a_broker_says_that_a_topic_is_missing_in_several_words(server: Server, admin: Admin, reason: str) -> None:
    """Those in the classes of 4.2.4, and of older brokers."""
    server.answers = {STATS: (404, {"reason": reason})}
    with pytest.raises(TopicMissing, match=reason.strip()[:5]):
        admin.backlog("topic-a")
    assert if_there(admin.backlog, "topic-a") is None


@pytest.mark.parametrize(
    "answer",
    [
        {"timestamp": "2026", "status": 404, "error": "Not Found", "path": STATS},
        {"reason": f"No route for {STATS}"},
        {"reason": f"{STATS} not found"},
        {"message": "Topic not found"},
        {"reason": "Namespace does not exist"},
        {"reason": "Transaction buffer Snapshot for the topic does not exist"},
        {"reason": None, "path": STATS},
        f"Cannot GET {STATS}: Not Found".encode(),
        b"Topic not found",
        b"",
    ],
)
def test_an_answer_404_of_something_else_says_nothing_of_the_topic(
    server: Server, admin: Admin, answer: object
) -> None:
    """A gateway before the brokers may show the path of what it does not pass on, and the topic may hold messages."""
    server.answers = {STATS: (404, answer)}
    with pytest.raises(Refused, match="answered 404"):
        if_there(admin.backlog, "topic-a")


@pytest.mark.parametrize("host", ["my..broker", ".broker", "a" * 64 + ".example.com", "xn--a"])
def test_a_host_that_no_name_server_can_be_asked_for_is_refused(host: str) -> None:
    with pytest.raises(InvalidInput, match=r"has no host that can be read"):
        Admin(f"http://{host}:8080")


def test_several_hosts_as_in_a_service_url_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r'"http://a:8080,b:8080" names several hosts. It must name one'):
        Admin("http://a:8080,b:8080")

"""The admin client against a scripted HTTP server."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal

import httpx
import pytest

from eos.config import Credentials
from eos.errors import InvalidInput, NoCredentials, Refused, TopicMissing, Unanswered, Unreachable
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.admin_requests import headers
from eos.pulsar.net.authentication import auth_data, provider
from eos.pulsar.net.policies import Backlog
from eos.pulsar.wire.message_id import MessageId, TopicLedger
from eos.pulsar.wire.txn import TxnId
from tests.unit.pulsar.net.fake_broker import free_port
from tests.waiting import PATIENCE_S


class Server:
    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, object]] = {}
        self.headers: dict[str, str] = {}
        self.asked: list[tuple[str, str, str | None]] = []
        self.released = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append((self.command, self.path, self.headers["Authorization"]))
                if self.path not in outer.answers:
                    outer.released.wait(PATIENCE_S)
                    return
                status, answer = outer.answers[self.path]
                self.send_response(status)
                body = answer if isinstance(answer, bytes) else b"" if answer is None else json.dumps(answer).encode()
                self.send_header("Content-Length", str(len(body)))
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_DELETE = do_GET  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, args=[0.01], daemon=True).start()

    def close(self) -> None:
        self.released.set()
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    started = Server()
    yield started
    started.close()


@pytest.fixture
def admin(server: Server) -> Iterator[Admin]:
    with Admin(server.url) as opened:
        yield opened


TOPIC = "/admin/v2/persistent/public/default/t%2Fx"
STATS = "/admin/v3/transactions/transactionBufferStats/public/default/t%2Fx"


def test_what_makes_a_broker_delete(server: Server, admin: Admin) -> None:
    age = {"limit": 0, "limitSize": 0, "limitTime": 5, "policy": "producer_exception"}
    quota = {"limitSize": 10, "limitTime": -1, "policy": "consumer_backlog_eviction"}
    server.answers = {
        f"{TOPIC}/retention?applied=true": (200, {"retentionTimeInMinutes": 5, "retentionSizeInMB": -1}),
        f"{TOPIC}/backlogQuotaMap?applied=true": (200, {"destination_storage": quota, "message_age": age}),
        f"{TOPIC}/messageTTL?applied=true": (200, 60),
        f"{TOPIC}/maxConsumers?applied=true": (200, 5),
    }
    keeping = admin.keeping("persistent://public/default/t/x")
    assert (keeping.ttl_s, keeping.retention_minutes, keeping.retention_mb) == (60, 5, -1)
    assert [str(quota) for quota in keeping.quotas] == [
        "destination_storage of 10 bytes, policy consumer_backlog_eviction",
        "message_age of 5 s, policy producer_exception",
    ]
    assert keeping.most_consumers == 5
    quota["limitSize"] = age["limitTime"] = -1
    assert admin.keeping("persistent://public/default/t/x").quotas == ()


def test_what_limits_reading(server: Server, admin: Admin) -> None:
    rate = {"dispatchThrottlingRateInMsg": 5, "dispatchThrottlingRateInByte": -1, "ratePeriodInSecond": 2}
    server.answers = {
        f"{TOPIC}/dispatchRate?applied=true": (200, None),
        f"{TOPIC}/subscriptionDispatchRate?applied=true": (200, rate),
    }
    assert admin.read_rates("persistent://public/default/t/x") == ("subscriptionDispatchRate of 5 messages in 2 s",)
    rate["dispatchThrottlingRateInMsg"] = 0  # as good as none
    assert admin.read_rates("persistent://public/default/t/x") == ()


@pytest.mark.parametrize(
    ("readable_to", "ongoing", "held_up"), [("5:1", 1, True), ("5:7", 1, False), ("5:1", 0, False)]
)
def test_whether_readers_are_held_up(
    server: Server, admin: Admin, readable_to: str, ongoing: int, held_up: bool
) -> None:
    stats = {"state": "Ready", "maxReadPosition": readable_to, "ongoingTxnSize": ongoing}
    server.answers = {STATS: (200, stats), f"{TOPIC}/internalStats": (200, {"lastConfirmedEntry": "5:7"})}
    buffer = admin.buffer("persistent://public/default/t/x")
    assert (buffer.last, buffer.held_up) == (MessageId(5, 7), held_up)


@pytest.mark.parametrize(
    ("state", "known"),
    [("Ready", True), ("NoSnapshot", True), ("None", False), ("Initializing", False), ("Close", False)],
)
def test_a_broker_that_still_recovers_transactions_does_not_know_them(
    server: Server, admin: Admin, state: str, known: bool
) -> None:
    stats = {"state": state, "maxReadPosition": "-1:-1", "ongoingTxnSize": 0}
    server.answers = {STATS: (200, stats), f"{TOPIC}/internalStats": (200, {"lastConfirmedEntry": "5:7"})}
    assert admin.buffer("persistent://public/default/t/x").known is known


def test_open_transactions_oldest_first(server: Server, admin: Admin) -> None:
    def stats(number: int, opened: int) -> dict[str, object]:
        return {
            "txnId": f"(0,{number})",
            "status": "OPEN",
            "openTimestamp": opened,
            "timeoutAt": 1000,
            "producedPartitions": {"b": {}, "a": {}},
        }

    slow = {"(0,1)": stats(1, 20), "(0,2)": stats(2, 10)}
    server.answers = {
        "/admin/v3/transactions/slowTransactions/7": (200, slow),
        "/admin/v3/transactions/transactionMetadata/0/1": (200, stats(1, 20)),
        "/admin/v3/transactions/transactionMetadata/0/8": (403, {"reason": "not for you"}),
        "/admin/v3/transactions/transactionMetadata/0/9": (404, {"reason": "txdID `(0,9)`not found "}),
        "/admin/v3/transactions/abortTransaction/0/1": (204, None),
    }
    assert [one.txn for one in admin.open_transactions(7)] == [TxnId(0, 2), TxnId(0, 1)]
    known = admin.transaction(TxnId(0, 1))
    assert known is not None
    assert known.partitions == ("a", "b")
    assert admin.transaction(TxnId(0, 9)) is None
    with pytest.raises(Refused, match="not for you"):
        admin.transaction(TxnId(0, 8))
    admin.abort(TxnId(0, 1))
    assert server.asked[-1][:2] == ("POST", "/admin/v3/transactions/abortTransaction/0/1")


def test_problems(server: Server, admin: Admin) -> None:
    path = "/admin/v2/brokers/version"
    with (
        Admin(server.url, timeout_s=0.2) as hurried,
        pytest.raises(Unanswered, match=r"GET .*/brokers/version: no answer within 0\.2 s"),
    ):
        hurried.version()
    server.answers = {path: (401, {"reason": "who are you\n\nStacktrace: ..."})}
    with pytest.raises(Refused, match=r"the broker answered 401: who are you$"):
        admin.version()
    server.answers = {path: (404, {"reason": "Topic t not found"})}
    with pytest.raises(TopicMissing, match="Topic t not found"):
        admin.version()
    server.answers = {path: (500, "not an object")}
    with pytest.raises(Refused, match="500"):
        admin.version()
    with (
        free_port() as port,
        Admin(f"http://127.0.0.1:{port}") as admin,
        pytest.raises(Unreachable, match="Check that the broker is up"),
    ):
        admin.version()
    with pytest.raises(InvalidInput, match="http://"):
        Admin("pulsar://a:6650")


def test_credentials_as_headers_and_for_the_binary_protocol(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret\n")
    from_file = Credentials("token", f"file://{file}")
    assert headers(from_file, PATIENCE_S) == {"Authorization": "Bearer secret"}
    assert auth_data(from_file, PATIENCE_S) == b"secret"
    basic = headers(Credentials("basic", "me:pass"), PATIENCE_S)
    assert basic["Authorization"] == f"Basic {base64.b64encode(b'me:pass').decode()}"
    assert headers(Credentials(), PATIENCE_S) == {}
    assert auth_data(Credentials("tls"), PATIENCE_S) == b""
    with pytest.raises(NoCredentials, match="can't read the credentials for 'token' authentication in /none/there: No"):
        auth_data(Credentials("token", "file:/none/there"), PATIENCE_S)


def test_another_broker_is_asked_with_the_same_token(server: Server) -> None:
    owner = Server()
    owner.answers = {"/admin/v2/brokers/version": (200, b"4.2.4")}
    server.answers = {"/admin/v2/brokers/version": (307, None)}
    server.headers = {"Location": f"{owner.url}/admin/v2/brokers/version"}
    with Admin(server.url, Credentials("token", "secret")) as admin:
        assert admin.version() == "4.2.4"
        assert owner.asked == [("GET", "/admin/v2/brokers/version", "Bearer secret")]
        server.headers = {"Location": f"{server.url}/admin/v2/brokers/version"}
        with pytest.raises(Refused, match="307"):
            admin.version()
    owner.close()


def test_no_token_goes_in_the_clear_where_tls_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def answer(_: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(307, headers={"Location": "http://owner.example:8080/admin/v2/brokers/version"})

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", answer)
    with (
        Admin("https://broker.example:8443", Credentials("token", "secret")) as admin,
        pytest.raises(Unreachable, match=r"sends us on to http://owner\.example:8080/.*in the clear"),
    ):
        admin.version()
    assert asked == ["https://broker.example:8443/admin/v2/brokers/version"]


def test_a_token_is_asked_for_again_when_it_is_accepted_no_more(server: Server) -> None:
    tokens = iter(["first", "second", "third"])
    credentials = Credentials("token", provider("tokens", b"of this test", lambda: next(tokens)))
    server.answers = {"/admin/v2/brokers/version": (200, b"4.2.4")}
    with Admin(server.url, credentials) as admin:
        for _ in range(2):
            assert admin.version() == "4.2.4"
        server.answers = {"/admin/v2/brokers/version": (401, {"reason": "expired"})}
        with pytest.raises(Refused, match="401: expired"):
            admin.version()
    assert [shown for *_, shown in server.asked] == [f"Bearer {one}" for one in ("first", "first", "first", "second")]


def test_a_token_that_was_asked_for_just_now_is_not_asked_for_again(server: Server) -> None:
    tokens = iter(["first", "second"])
    server.answers = {"/admin/v2/brokers/version": (401, {"reason": "no"})}
    credentials = Credentials("token", provider("tokens", b"of that test", lambda: next(tokens)))
    with Admin(server.url, credentials) as admin, pytest.raises(Refused, match="401"):
        admin.version()
    assert next(tokens) == "second"


@pytest.mark.parametrize("credentials", [Credentials("token", "same"), Credentials("basic", "me:same")])
def test_what_can_not_change_is_shown_once(server: Server, credentials: Credentials) -> None:
    server.answers = {"/admin/v2/brokers/version": (401, {"reason": "no"})}
    with Admin(server.url, credentials) as admin:
        for _ in range(2):
            with pytest.raises(Refused, match="401"):
                admin.version()
    assert len(server.asked) == 2


@pytest.mark.parametrize("method", ["token", "basic"])
def test_a_refusal_that_repeats_what_was_shown_is_told_without_it(
    server: Server, method: Literal["token", "basic"]
) -> None:
    shown = headers(Credentials(method, "me:s3cr3t"), PATIENCE_S)["Authorization"].split()[1]
    server.answers = {"/admin/v2/brokers/version": (401, {"reason": f"who is {shown}?"})}
    with Admin(server.url, Credentials(method, "me:s3cr3t")) as admin, pytest.raises(Refused, match=r"401: who is …\?"):
        admin.version()


def test_the_topics_of_a_namespace(server: Server, admin: Admin) -> None:
    server.answers = {"/admin/v2/persistent/public/default": (200, ["persistent://public/default/a-partition-0"])}
    assert admin.topics("public/default") == ("persistent://public/default/a-partition-0",)


def test_ledgers_come_in_their_order(server: Server, admin: Admin) -> None:
    told = [{"ledgerId": 9, "entries": 0, "size": 0}, {"ledgerId": 7, "entries": 3, "size": 90, "offloaded": False}]
    server.answers[f"{TOPIC}/internalStats"] = (200, {"ledgers": told, "currentLedgerEntries": 5})
    assert admin.ledgers("t/x") == [TopicLedger(7, 3, 90), TopicLedger(9, 0, 0)]


TOPIC_STATS = "/admin/v2/persistent/public/default/log/stats"


def test_who_is_connected_is_told_once_each(server: Server, admin: Admin) -> None:
    writer, holder = {"producerName": "p", "address": "/10.0.0.1:5"}, {"consumerName": "c", "address": "/10.0.0.1:5"}
    other = {"consumerName": "d", "address": "/10.0.0.2:5"}
    subscriptions = {"hold": {"consumers": [holder, {"consumerName": "e"}]}, "another": {"consumers": [other]}}
    server.answers[TOPIC_STATS] = (200, {"publishers": [writer], "subscriptions": subscriptions})
    assert admin.connected("log", "hold") == ("10.0.0.1:5", "an address not told")
    assert admin.connected("log", "missing") == ("10.0.0.1:5",)


def test_the_clock_is_compared_by_the_date_of_an_answer(
    server: Server, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that sends no second Date of its own is one without a clock."""
    server.answers["/admin/v2/brokers/version"] = (200, "4.2.4")
    ahead_s = admin.clock_ahead_s()
    assert ahead_s is not None
    assert abs(ahead_s) < 60, "it is the same clock, and the machine may pause"
    monkeypatch.setattr(BaseHTTPRequestHandler, "date_time_string", lambda handler: "Tue, 24 Nov 2099 12:00:00 GMT")
    ahead_s = admin.clock_ahead_s()
    assert ahead_s is not None
    assert ahead_s > 1_000_000_000
    monkeypatch.setattr(BaseHTTPRequestHandler, "send_response", BaseHTTPRequestHandler.send_response_only)
    assert admin.clock_ahead_s() is None


def test_a_coordinator_tells_its_state_and_what_is_open(server: Server, admin: Admin) -> None:
    asked = "/admin/v3/transactions/coordinatorStats?coordinatorId=3"
    server.answers[asked] = (200, {"state": "Ready", "ongoingTxnSize": 8, "lowWaterMark": 4})
    assert admin.coordinator(3) == ("Ready", 8)


def test_settings_are_text_and_what_is_not_set_is_left_out(server: Server, admin: Admin) -> None:
    server.answers["/admin/v2/brokers/configuration/runtime"] = (200, {"a": 1, "b": "true", "c": None})
    assert admin.settings() == {"a": "1", "b": "true"}
    assert (admin.setting("a"), admin.setting("c")) == ("1", None)


def test_a_namespace_may_say_nothing_of_the_creation_of_topics(server: Server, admin: Admin) -> None:
    where = "/admin/v2/namespaces/public/default/autoTopicCreation"
    server.answers[where] = (200, None)
    assert admin.auto_creation("public/default") is None
    server.answers[where] = (200, {"allowAutoTopicCreation": False})
    assert admin.auto_creation("public/default") == {"allowAutoTopicCreation": False}


def test_a_web_server_that_is_no_admin_api_is_told_from_one(server: Server, admin: Admin) -> None:
    page, asked = b"<html>Log in, please</html>", "/admin/v2/persistent/public/default"
    server.headers = {"Content-Type": "text/html"}
    for status, error in ((200, Unreachable), (404, Refused)):
        server.answers = {asked: (status, page)}
        with pytest.raises(error, match=f"{asked}: .*is no admin API of Pulsar") as told:
            admin.topics("public/default")
        assert "html" not in str(told.value)


@pytest.mark.parametrize("url", ["http://", "http://[::1", "https:///x"])
def test_an_admin_url_without_a_host_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"has no host that can be read. Write http://host:8080"):
        Admin(url)


def test_a_user_in_an_admin_url_is_refused_and_not_shown() -> None:
    with pytest.raises(InvalidInput, match="before the @") as told:
        Admin("http://me:s3cret@localhost:8080")
    assert "s3cret" not in str(told.value)


def test_a_web_page_is_no_version(server: Server, admin: Admin) -> None:
    server.answers = {"/admin/v2/brokers/version": (200, b"<html>Log in, please</html>")}
    with pytest.raises(Unreachable, match=r"is no admin API of Pulsar"):
        admin.version()


@pytest.mark.parametrize("told", [0, 60, None])
def test_a_number_of_a_namespaces_own_is_told_from_none(server: Server, admin: Admin, told: int | None) -> None:
    names = ("max_topics_per_namespace", "subscription_expiration_time_minutes")
    server.answers = {"/admin/v2/namespaces/public/default": (200, {} if told is None else dict.fromkeys(names, told))}
    assert admin.most_topics("public/default") == told
    assert admin.subscription_expiry_minutes("persistent://public/default/t") == told


def test_the_backlog_of_a_topic(server: Server, admin: Admin) -> None:
    told = {"backlogSize": 112, "subscriptions": {"lags": {"msgBacklog": 7}}, "oldestBacklogMessageAgeSeconds": -1}
    server.answers = {f"{TOPIC}/stats": (200, told)}
    assert admin.backlog("t/x") == Backlog(112, None, "", {"lags": 7})
    told |= {"oldestBacklogMessageAgeSeconds": 30, "oldestBacklogMessageSubscriptionName": "lags"}
    assert admin.backlog("t/x") == Backlog(112, 30, "lags", {"lags": 7})

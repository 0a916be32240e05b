"""Requests to the admin API: who asks shows who it is, redirects are followed, and refusals become our errors."""

from __future__ import annotations

import base64
import re
from collections.abc import Generator
from typing import Any, Final
from urllib.parse import quote

import httpx

from eos.addresses import is_host
from eos.closing import Closing
from eos.config import Credentials, OAuth2, Tls
from eos.errors import EosError, InvalidInput, Refused, TopicMissing, Unanswered, Unreachable
from eos.pulsar.net.authentication import secret, without
from eos.pulsar.net.http import by_proxy, http_client
from eos.pulsar.net.service_url import refuse_user
from eos.pulsar.net.transport import tls_advice, tls_context
from eos.pulsar.protocol.refusals import advice_for, refused
from eos.pulsar.protocol.topics import full_name

FORBIDDEN = ("401", "403")
"""HTTP statuses of what the role may not ask: the answer is not known, rather than no."""

_MOST_REDIRECTS = 5

_NO_TOPIC: Final = re.compile(
    r"(?:^|Message:[ ])(?:(?:Partitioned )?Topic\b.*(?:not found|does not exist|not yet created)"
    r"|Subscription .* not found for topic |Partition metadata not found for )",
    re.IGNORECASE | re.DOTALL,
)
"""A broker's words in an answer 404 where a topic is missing (AdminResource, PersistentTopicsBase, TransactionsBase).

A subscription that is missing counts too. A gateway before the brokers answers 404 in words of its own for any path
that it does not pass on, and its words may show the path, with the name of the topic.
"""

_NOT_LOADED: Final = re.compile(r"Topic not found (persistent://\S+)")


def topic_not_loaded(refused: Refused) -> str | None:
    """Return the topic that a broker needed and does not have loaded; None where it names none."""
    found = _NOT_LOADED.search(refused.detail)
    return found[1] if found else None


class AdminRequests(Closing):
    """Asks the admin API; `eos.pulsar.net.admin.Admin` knows what for."""

    def __init__(
        self,
        admin_url: str,
        credentials: Credentials = Credentials(),  # noqa: B008  frozen
        tls: Tls = Tls(),  # noqa: B008  frozen
        timeout_s: float = 30.0,
    ) -> None:
        """Args: "http://host:8080" or "https://host:8443"; as for `Cluster`; seconds for any answer."""
        refuse_user(admin_url)
        if not admin_url.startswith(("http://", "https://")):
            raise InvalidInput(f'the admin URL "{admin_url}" must begin with http:// or https://')
        if "," in admin_url:
            raise InvalidInput(
                f'the admin URL "{admin_url}" names several hosts. It must name one, such as a proxy or one of them'
            )
        if not _host(admin_url):
            raise InvalidInput(f'the admin URL "{admin_url}" has no host that can be read. Write http://host:8080')
        self._url = admin_url.rstrip("/")
        self._credentials, self._tls, self._timeout_s = credentials, tls, timeout_s
        self._shown = _Shown(credentials, timeout_s)
        self._clients: dict[str, httpx.Client] = {}
        self._http(admin_url.partition(":")[0])

    def close(self) -> None:
        """Close its connections."""
        for client in self._clients.values():
            client.close()

    def _json(self, path: str) -> Any:
        answer = self._ask("GET", path)
        try:
            return answer.json() if answer.content else None
        except ValueError:
            raise Unreachable(f"GET {self._url}/admin/{path}: {NO_ADMIN_API}") from None

    def _json_from_topics(self, path: str) -> Any:
        """Ask for what a broker collects from topics, and have each of them loaded.

        Of a topic that no broker has loaded, as after a restart, it says in an answer 500 that it is not found. To ask
        for the topic's stats loads it (measured on 4.2.4). Raises Refused, too, where a topic no longer exists.
        """
        loaded: set[str] = set()
        while True:
            try:
                return self._json(path)
            except Refused as refused:
                missing = topic_not_loaded(refused)
                if missing is None or missing in loaded:
                    raise
                loaded.add(missing)
                try:
                    self._ask("GET", f"v2/{path_of(missing)}/stats")
                except TopicMissing:
                    raise refused from None

    def _ask(self, method: str, path: str, body: object = None) -> httpx.Response:
        """Ask. Args: GET, PUT, …, the path after /admin/ or from a slash on, and the JSON to send, or None."""
        url = f"{self._url}{path}" if path.startswith("/") else f"{self._url}/admin/{path}"
        asked = f"{method} {url}"
        try:
            answer = self._follow(method, url, body)
        except httpx.TimeoutException as error:
            raise Unanswered(f"{asked}: no answer within {self._timeout_s:g} s{by_proxy(url)}") from error
        except httpx.TransportError as error:
            advice = tls_advice(str(error)) or "Check that the broker is up and the admin URL is right"
            raise Unreachable(f"{asked}: {error}. {advice}{by_proxy(url)}") from error
        if answer.is_success:
            return answer
        raise _problem(asked, answer)

    def _http(self, scheme: str) -> httpx.Client:
        """Return the client for addresses that begin so: to load certificates takes longer than to ask without them."""
        if scheme not in self._clients:
            verify = tls_context(self._tls, self._credentials) if scheme == "https" else False
            self._clients[scheme] = http_client(self._url, timeout_s=self._timeout_s, verify=verify, auth=self._shown)
        return self._clients[scheme]

    def _follow(self, method: str, url: str, body: object) -> httpx.Response:
        """Ask, also where a broker sends us on to the topic's owner: httpx alone would go there without our token."""
        answer = self._http(url.partition(":")[0]).request(method, url, json=body)
        for _ in range(_MOST_REDIRECTS):
            if answer.next_request is None:
                break
            there = answer.next_request.url
            if answer.url.scheme == "https" and there.scheme != "https":
                raise Unreachable(
                    f"{method} {url}: the broker sends us on to {there}, where what shows who we are would go in the "
                    "clear. Have the brokers announce their address with TLS (webServicePortTls)"
                )
            answer = self._http(there.scheme).request(method, there, json=body)
        return answer


class _Shown(httpx.Auth):
    """Sends the credentials with each request, those of the first, and fresh ones when these are no longer accepted."""

    def __init__(self, credentials: Credentials, timeout_s: float) -> None:
        self._credentials, self._timeout_s = credentials, timeout_s
        self._headers: dict[str, str] | None = None

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Ask, and once more where the credentials may have been renewed."""
        asked_before = self._headers is not None
        if self._headers is None:
            self._headers = headers(self._credentials, self._timeout_s)
        request.headers.update(self._headers)
        answer = yield request
        kept = asked_before or isinstance(self._credentials.data, OAuth2)
        if answer.status_code == httpx.codes.UNAUTHORIZED and kept and self._credentials.renewable:
            self._headers = headers(self._credentials, self._timeout_s, fresh=True)
            request.headers.update(self._headers)
            yield request


def headers(credentials: Credentials, timeout_s: float, *, fresh: bool = False) -> dict[str, str]:
    """Return the HTTP headers that show who we are; none for "none" and "tls". Args, raises: as `secret`."""
    if credentials.method == "token":
        return {"Authorization": f"Bearer {secret(credentials, timeout_s, fresh=fresh)}"}
    if credentials.method == "basic":
        encoded = base64.b64encode(secret(credentials, timeout_s, fresh=fresh).encode()).decode()
        return {"Authorization": f"Basic {encoded}", "X-Pulsar-Auth-Method-Name": "basic"}
    return {}


NO_ADMIN_API = (
    "what answers there is no admin API of Pulsar. Check that the admin URL is scheme, host and port of a broker, "
    "without a path, and what stands between"
)


def _host(url: str) -> str:
    try:
        host = httpx.URL(url).host
    except (httpx.InvalidURL, UnicodeError):
        return ""
    return host if is_host(host) else ""


def _problem(asked: str, answer: httpx.Response) -> EosError:
    told = ""
    try:
        reason = told = str(answer.json()["reason"]).strip()
    except (ValueError, KeyError, TypeError):
        page = "html" in answer.headers.get("Content-Type", "")
        reason = NO_ADMIN_API if page else answer.text
    shown = answer.request.headers.get("Authorization", "").rpartition(" ")[2]
    reason = without(shown.encode(), reason.strip().split("\n\nStacktrace")[0])
    if answer.status_code == httpx.codes.NOT_FOUND and _NO_TOPIC.search(told):
        return TopicMissing(reason)
    status = str(answer.status_code)
    if answer.is_server_error:  # of any cause, which its words alone may name
        return Refused(asked, status, reason, advice_for(reason))
    return refused(asked, status, reason)


def path_of(topic: str, *, scheme: bool = True) -> str:
    """Return a topic as the admin API's paths have it. Args: the topic; whether "persistent" stands before."""
    domain, _, rest = full_name(topic).partition("://")
    tenant, namespace, name = rest.split("/", 2)
    path = f"{tenant}/{namespace}/{quote(name, safe='')}"
    return f"{domain}/{path}" if scheme else path

"""Finds brokers, and asks again where the answer is only "not yet"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from eos.backoff import Backoff
from eos.config import Cluster
from eos.errors import (
    AuthorizationUnknown,
    ConnectionLost,
    ConsumerClosed,
    EosError,
    InvalidInput,
    NetworkError,
    ProducerClosed,
    Refused,
    RefusedForGood,
    TopicMissing,
    Unanswered,
    Unreachable,
)
from eos.pulsar.net.connection import Connection
from eos.pulsar.net.pool import Pool, not_yet
from eos.pulsar.protocol.lookup import (
    BrokerAddress,
    Lookup,
    State,
    ask_partitions,
    ask_topics,
    partitions_answer,
    topics_answer,
)
from eos.pulsar.protocol.refusals import told_by_proxy
from eos.pulsar.protocol.schemas import Registered, ask_schema, schema_answer

T = TypeVar("T")

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0

# A broker's answer to LOOKUP where tenant or namespace are missing. The answer to PARTITIONED_METADATA is
# TopicNotFound without a word, as for a topic that is missing alone.
_NO_NAMESPACE = "Namespace not found"


class BrokerLookup:
    """Lookups of one client."""

    def __init__(self, cluster: Cluster, pool: Pool) -> None:
        """Args: the cluster's settings; the client's connections."""
        self._cluster = cluster
        self._pool = pool
        self._last: dict[str, Connection] = {}

    def last_owner(self, topic: str) -> Connection:
        """Return a connection to the broker that served this physical topic last; a lookup if not known.

        A broker refuses requests for a topic that it no longer serves (ServiceNotReady): then `forget` the topic and
        ask again. Raises what `owner` raises.
        """
        connection = self._last.get(topic)
        if connection is None or not connection.alive:
            connection = self._last[topic] = self.owner(topic)
        return connection

    def forget(self, topic: str) -> None:
        """Let the next `last_owner` look the topic up."""
        self._last.pop(topic, None)

    def owner(self, topic: str) -> Connection:
        """Return a connection to the broker that serves this physical topic, asking once.

        Raises Refused, TopicMissing, Unreachable, Unanswered, ConnectionLost.
        """
        lookup = Lookup(topic, tls=self._pool.tls, listener=self._cluster.listener_name)
        with self._service() as connection:
            broker = _looked_up(lookup, connection, topic)
        while lookup.state is not State.FOUND:
            connection = self._pool.reach(broker, connection)
            broker = _looked_up(lookup, connection, topic)
        return self._pool.reach(broker, connection)

    def partitions(self, topic: str) -> int:
        """Return a topic's number of partitions, 0 when it is not partitioned, without creating anything.

        Raises TopicMissing, InvalidInput, NetworkError, Refused, Unreachable, Unanswered, ConnectionLost.
        """
        try:
            with self._service() as connection:
                return _partitions(connection, topic)
        except TopicMissing:
            with suppress(NetworkError):
                self.owner(topic)  # its TopicMissing tells a missing namespace from a missing topic; creates neither
            raise
        except Refused as refused:
            if not told_by_proxy(refused):
                raise
            return _partitions(self.owner(topic), topic)  # by what the broker behind the proxy says itself

    def topics(self, namespace: str) -> list[str]:
        """Return the persistent topics of a namespace, each partition by its own name.

        Raises InvalidInput, NetworkError, Refused, Unreachable, Unanswered, ConnectionLost.
        """
        with self._service() as connection:
            answer = connection.ask(ask_topics(namespace), f"ask for the topics of {namespace}")
            return topics_answer(answer, namespace)

    def schema(self, topic: str, version: bytes | None) -> Registered | None:
        """Return a version of a topic's schema, None where the registry has none.

        Raises NetworkError, Refused, Unreachable, Unanswered, ConnectionLost.
        """
        with self._service() as connection:
            answer = connection.ask(ask_schema(topic, version), f"ask for the schema of {topic}")
            return schema_answer(answer, topic)

    @contextmanager
    def _service(self) -> Iterator[Connection]:
        """Give a connection to a host of the service URL. Where nothing comes of it now, another one is next."""
        connection = self._pool.service()
        try:
            yield connection
        except (Refused, Unanswered, ConnectionLost) as error:
            if not isinstance(error, Refused) or not_yet(error):
                self._pool.pass_over(connection)
            raise

    def patiently(self, asked: str, attempt: Callable[[], T]) -> T:
        """Try until it works or the request time-out has passed.

        Tried again: answers that mean "not yet", a consumer or a producer that the broker
        closed before it confirmed it, and a broker that can't be reached although this client was connected
        before. Anything else is raised at once.
        Raises Unanswered, with the last problem in it, when the time is up.
        """
        limit = self._cluster.request_timeout_s
        backoff = Backoff(limit, FIRST_PAUSE_S, LONGEST_PAUSE_S)
        while True:
            try:
                return attempt()
            except Refused as refused:
                if not not_yet(refused):
                    raise
                problem: EosError = refused
            except (ConsumerClosed, ProducerClosed) as closed:
                problem = closed
            except Unreachable as unreachable:
                if not self._pool.ever_connected or isinstance(unreachable, InvalidInput):
                    raise
                problem = unreachable
            if not backoff.pause():
                raise Unanswered(f"{asked}: not possible within {limit:g} s. The last problem was: {problem}")


def _looked_up(lookup: Lookup, connection: Connection, topic: str) -> BrokerAddress:
    """Ask one broker, or one proxy, for a topic's broker. Raises what `BrokerLookup.owner` does."""
    answer = connection.ask(lookup.ask(), f"look up {topic}")
    with topic_exists(topic):
        return lookup.receive(answer)


def _partitions(connection: Connection, topic: str) -> int:
    """Ask one broker, or one proxy, for a topic's number of partitions. Raises what `BrokerLookup.partitions` does."""
    if connection.creates_topics_unasked:
        raise InvalidInput(
            f"the broker or proxy {connection.broker} is too old. It can't be asked for the partitions of a topic "
            "without creating the topic (PIP-344, Pulsar 3.0.6, 3.2.4 or newer)"
        )
    answer = connection.ask(ask_partitions(topic), f"ask for the partitions of {topic}")
    with topic_exists(topic):
        return partitions_answer(answer, topic)


@contextmanager
def topic_exists(topic: str) -> Iterator[None]:
    """Turn the broker's TopicNotFound into TopicMissing."""
    try:
        yield
    except Refused as refused:
        if refused.code != "TopicNotFound":
            raise
        if _NO_NAMESPACE in refused.detail:
            tenant, name = topic.partition("://")[2].split("/")[:2]
            raise TopicMissing(
                f"the topic {topic} can't exist, since there is no namespace {tenant}/{name}. Check its name, or "
                f"create it: pulsar-admin namespaces create {tenant}/{name} (and first the tenant, if it is missing "
                f"too: pulsar-admin tenants create {tenant})"
            ) from refused
        raise TopicMissing(
            f"the topic {topic} does not exist. Check its name, or create it first: pulsar-admin topics create "
            f"(or create-partitioned-topic) {topic}"
        ) from refused


@contextmanager
def subscription_exists(topic: str, subscription: str, start: str) -> Iterator[None]:
    """Say how to create a subscription that the broker does not create by itself."""
    try:
        yield
    except Refused as refused:
        if refused.code != "SubscriptionNotFound":
            raise
        raise RefusedForGood(
            refused.asked,
            refused.code,
            refused.detail,
            f'The subscription "{subscription}" must be created by hand, since the broker or the namespace is set to '
            "allowAutoSubscriptionCreation=false: pulsar-admin topics create-subscription "
            f"--subscription {subscription} --messageId {start} {topic}",
        ) from refused


@contextmanager
def coordinators_allowed() -> Iterator[None]:
    """Say what a role lacks that may not look for transaction coordinators."""
    try:
        yield
    except Refused as refused:
        if refused.code != "AuthorizationError" or isinstance(refused, AuthorizationUnknown):
            raise
        raise RefusedForGood(
            refused.asked,
            refused.code,
            refused.detail,
            "Transactions need a role that may look up the coordinators: "
            "pulsar-admin namespaces grant-permission pulsar/system --actions consume --role ROLE",
        ) from refused

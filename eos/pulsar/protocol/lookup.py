"""Finding things: how many partitions a topic has, and which broker serves it.

LOOKUP goes to any broker. The answer is CONNECT with the owner's address, or a failure, or a REDIRECT to another
broker. The client then asks that broker the same, with `authoritative` copied from the answer. Brokers that disagree
while a topic moves can redirect in a circle, so the client gives up after `max_redirects`. With
`proxy_through_service_url` the client can't reach the owner directly. It connects to the address already in use and
names the owner in CONNECT.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from eos.errors import Refused
from eos.pulsar.protocol.machine import Machine, TransitionTable
from eos.pulsar.protocol.requests import Type, granted, refusal
from eos.pulsar.wire.pulsar_pb2 import (
    BaseCommand,
    CommandGetTopicsOfNamespace,
    CommandLookupTopic,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadata,
)

MAX_REDIRECTS = 20
"""As many as the Java client follows (ClientConfigurationData.maxLookupRedirects)."""

_Answer = CommandLookupTopicResponse.LookupType


class State(StrEnum):
    """Where the lookup stands."""

    NEW = "new"
    ASKED = "asked"
    REDIRECTED = "redirected"
    FOUND = "found"
    FAILED = "failed"


class Input(StrEnum):
    """Its inputs."""

    ASK = "ask"
    REDIRECT = "redirect"
    CONNECT = "connect"
    FAILURE = "failure"
    TOO_MANY = "too many redirects"


LOOKUP: TransitionTable[State, Input] = TransitionTable(
    name="lookup",
    start=State.NEW,
    ours=frozenset({Input.ASK}),
    moves={
        (State.NEW, Input.ASK): State.ASKED,
        (State.ASKED, Input.REDIRECT): State.REDIRECTED,
        (State.ASKED, Input.CONNECT): State.FOUND,
        (State.ASKED, Input.FAILURE): State.FAILED,
        (State.ASKED, Input.TOO_MANY): State.FAILED,
        (State.REDIRECTED, Input.ASK): State.ASKED,
    },
)


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where a broker answers.

    Attributes:
        url: the broker's own address, "pulsar://host:port" or "pulsar+ssl://host:port".
        proxied: it is reached through the service URL, not directly.
    """

    url: str
    proxied: bool = False


class Lookup:
    """One question: which broker serves this topic?"""

    def __init__(
        self, topic: str, *, tls: bool, listener: str | None = None, max_redirects: int = MAX_REDIRECTS
    ) -> None:
        """Args: the topic; take the TLS address; the advertised listener; how many redirects to follow."""
        self._machine = Machine(LOOKUP)
        self._topic = topic
        self._tls = tls
        self._listener = listener
        self._left = max_redirects
        self._authoritative = False

    @property
    def state(self) -> State:
        """Where the lookup stands."""
        return self._machine.state

    def ask(self) -> BaseCommand:
        """Return the question, to be sent to the first broker or to the one redirected to."""
        self._machine.take(Input.ASK)
        question = CommandLookupTopic(topic=self._topic, authoritative=self._authoritative)
        if self._listener is not None:
            question.advertised_listener_name = self._listener
        return BaseCommand(type=Type.LOOKUP, lookup_topic=question)

    def receive(self, command: BaseCommand) -> BrokerAddress:
        """Take the answer: the owner when the state is FOUND, the broker to ask when REDIRECTED.

        Raises Refused when the broker refuses or redirects too often.
        """
        asked = f"look up {self._topic}"
        answer = command.lookup_topic_response
        problem = refusal(command, asked)
        if problem is not None or answer.response == _Answer.Failed:
            self._machine.take(Input.FAILURE)
            raise problem or Refused(asked, "UnknownError", "no reason given")
        url = answer.broker_service_url_tls if self._tls else answer.broker_service_url
        if not url:
            self._machine.take(Input.FAILURE)
            kind = "TLS" if self._tls else "plain"
            raise Refused(asked, "ServiceNotReady", f"the owner of the topic advertises no {kind} address")
        if self._tls and not answer.proxy_through_service_url and not url.startswith("pulsar+ssl://"):
            # A proxy names brokers that it reaches without TLS. The connection to the proxy itself has TLS.
            self._machine.take(Input.FAILURE)
            raise Refused(
                asked,
                "ServiceNotReady",
                f"the owner of the topic advertises {url} as its TLS address. Credentials and messages would go there "
                "in the open",
            )
        if answer.response == _Answer.Connect:
            self._machine.take(Input.CONNECT)
        elif self._left == 0:
            self._machine.take(Input.TOO_MANY)
            raise Refused(asked, "ServiceNotReady", f"brokers redirect without end, last to {url}")
        else:
            self._left -= 1
            self._authoritative = answer.authoritative
            self._machine.take(Input.REDIRECT)
        return BrokerAddress(url, answer.proxy_through_service_url)


def ask_partitions(topic: str) -> BaseCommand:
    """Return the question for a topic's number of partitions, which creates nothing (PIP-344)."""
    return BaseCommand(
        type=Type.PARTITIONED_METADATA,
        partition_metadata=CommandPartitionedTopicMetadata(topic=topic, metadata_auto_creation_enabled=False),
    )


def partitions_answer(command: BaseCommand, topic: str) -> int:
    """Return the number of partitions, 0 for a non-partitioned topic.

    Raises Refused; its code is "TopicNotFound" when the topic does not exist.
    """
    return granted(command, f"ask for the partitions of {topic}").partition_metadata_response.partitions


def ask_topics(namespace: str) -> BaseCommand:
    """Return the question for the persistent topics of a "tenant/namespace"."""
    mode = CommandGetTopicsOfNamespace.Mode.PERSISTENT
    return BaseCommand(
        type=Type.GET_TOPICS_OF_NAMESPACE,
        get_topics_of_namespace=CommandGetTopicsOfNamespace(namespace=namespace, mode=mode),
    )


def topics_answer(command: BaseCommand, namespace: str) -> list[str]:
    """Return the physical topics, each partition by its own name. Raises Refused."""
    return list(granted(command, f"ask for the topics of {namespace}").get_topics_of_namespace_response.topics)

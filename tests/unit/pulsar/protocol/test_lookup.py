from __future__ import annotations

import pytest

from eos.errors import InvalidInput, OutOfTurn, Refused
from eos.pulsar.protocol.lookup import (
    BrokerAddress,
    Lookup,
    State,
    ask_partitions,
    ask_topics,
    partitions_answer,
    topics_answer,
)
from eos.pulsar.protocol.requests import Type
from eos.pulsar.protocol.topics import (
    full_name,
    partition_name,
    persistent_name,
    split_partition,
    valid_topic,
    whole_topic,
)
from eos.pulsar.wire.pulsar_pb2 import (
    BaseCommand,
    CommandError,
    CommandGetTopicsOfNamespaceResponse,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadataResponse,
    ServerError,
)

Kind = CommandLookupTopicResponse.LookupType


def answer(kind: Kind, **fields: object) -> BaseCommand:
    fields.setdefault("broker_service_url", "pulsar://b:6650")
    fields.setdefault("broker_service_url_tls", "pulsar+ssl://b:6651")
    response = CommandLookupTopicResponse(response=kind, **fields)  # type: ignore[arg-type]
    return BaseCommand(type=Type.LOOKUP_RESPONSE, lookup_topic_response=response)


@pytest.mark.parametrize(("tls", "url"), [(False, "pulsar://b:6650"), (True, "pulsar+ssl://b:6651")])
def test_the_owner_is_found_at_its_plain_or_tls_address(tls: bool, url: str) -> None:
    lookup = Lookup("t", tls=tls)
    lookup.ask()
    assert lookup.receive(answer(Kind.Connect)) == BrokerAddress(url)
    assert lookup.state is State.FOUND


def test_a_redirect_is_followed_with_the_authority_of_the_answer() -> None:
    lookup = Lookup("t", tls=False, listener="internal")
    first = lookup.ask().lookup_topic
    assert (first.topic, first.authoritative, first.advertised_listener_name) == ("t", False, "internal")
    assert lookup.receive(answer(Kind.Redirect, authoritative=True)).url == "pulsar://b:6650"
    assert lookup.state is State.REDIRECTED
    assert lookup.ask().lookup_topic.authoritative


def test_a_proxied_owner_is_marked() -> None:
    lookup = Lookup("t", tls=False)
    lookup.ask()
    assert lookup.receive(answer(Kind.Connect, proxy_through_service_url=True)).proxied


def test_redirects_are_bounded() -> None:
    lookup = Lookup("t", tls=False, max_redirects=2)
    for _ in range(2):
        lookup.ask()
        lookup.receive(answer(Kind.Redirect))
    lookup.ask()
    with pytest.raises(Refused, match="redirect without end"):
        lookup.receive(answer(Kind.Redirect))
    assert lookup.state is State.FAILED


@pytest.mark.parametrize(
    "refusal",
    [
        answer(Kind.Failed, error=ServerError.ServiceNotReady, message="loading"),
        BaseCommand(type=Type.ERROR, error=CommandError(error=ServerError.ServiceNotReady, message="loading")),
    ],
    ids=["failed", "error"],
)
def test_a_failure_carries_the_brokers_words(refusal: BaseCommand) -> None:
    lookup = Lookup("t", tls=False)
    lookup.ask()
    with pytest.raises(Refused, match="look up t: the broker answered ServiceNotReady: loading"):
        lookup.receive(refusal)
    assert lookup.state is State.FAILED


def test_an_owner_without_a_tls_address_is_an_error_that_says_so() -> None:
    lookup = Lookup("t", tls=True)
    lookup.ask()
    with pytest.raises(Refused, match="advertises no TLS address"):
        lookup.receive(answer(Kind.Connect, broker_service_url_tls=""))


@pytest.mark.parametrize("kind", [Kind.Connect, Kind.Redirect])
def test_a_client_with_tls_is_not_sent_to_a_plain_address(kind: Kind) -> None:
    lookup = Lookup("t", tls=True)
    lookup.ask()
    with pytest.raises(Refused, match=r"advertises pulsar://b:6650 as its TLS address\. Credentials"):
        lookup.receive(answer(kind, broker_service_url_tls="pulsar://b:6650"))
    assert lookup.state is State.FAILED


def test_a_proxy_with_tls_may_reach_its_brokers_without() -> None:
    lookup = Lookup("t", tls=True)
    lookup.ask()
    plain = answer(Kind.Connect, broker_service_url_tls="pulsar://b:6650", proxy_through_service_url=True)
    assert lookup.receive(plain) == BrokerAddress("pulsar://b:6650", proxied=True)


def test_two_questions_in_a_row_are_out_of_turn() -> None:
    lookup = Lookup("t", tls=False)
    lookup.ask()
    with pytest.raises(OutOfTurn):
        lookup.ask()


def test_asking_for_partitions_creates_nothing() -> None:
    question = ask_partitions("t").partition_metadata
    assert question.HasField("metadata_auto_creation_enabled")
    assert not question.metadata_auto_creation_enabled


def test_the_number_of_partitions_or_the_refusal() -> None:
    kind = CommandPartitionedTopicMetadataResponse.LookupType
    good = CommandPartitionedTopicMetadataResponse(partitions=3, response=kind.Success)
    command = BaseCommand(type=Type.PARTITIONED_METADATA_RESPONSE, partition_metadata_response=good)
    assert partitions_answer(command, "t") == 3
    bad = CommandPartitionedTopicMetadataResponse(response=kind.Failed, error=ServerError.TopicNotFound, message="no t")
    command = BaseCommand(type=Type.PARTITIONED_METADATA_RESPONSE, partition_metadata_response=bad)
    with pytest.raises(Refused) as caught:
        partitions_answer(command, "t")
    assert caught.value.code == "TopicNotFound"


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("t", "persistent://public/default/t"),
        ("a/b/t", "persistent://a/b/t"),
        ("non-persistent://a/b/t", "non-persistent://a/b/t"),
    ],
)
def test_names_of_topics(short: str, full: str) -> None:
    assert full_name(short) == full
    assert partition_name(full, 2) == f"{full}-partition-2"


def test_a_name_is_taken_apart_into_topic_and_partition() -> None:
    assert split_partition("persistent://a/b/t-partition-12") == ("persistent://a/b/t", 12)
    assert split_partition("persistent://a/b/t-partition-0") == ("persistent://a/b/t", 0)
    assert split_partition("persistent://a/b/t-partition-2147483647") == ("persistent://a/b/t", 2**31 - 1)
    assert split_partition("persistent://a/b/t-partition-1-partition-2") == ("persistent://a/b/t-partition-1", 2)


@pytest.mark.parametrize(
    "name",
    [
        *("t", "t-partition-", "t-partition-01", "t-partition-00", "t-partition--1", "t-partition-+1"),
        *("t-partition-2147483648", "t-partition-99999999999", "t-partition-1x", "t-partition-1-partition-02"),
    ],
)
def test_a_name_that_is_a_whole_topic_to_pulsar_is_one(name: str) -> None:
    full = f"persistent://a/b/{name}"
    assert split_partition(full) == (full, None)
    assert whole_topic(full) == full
    assert valid_topic(full) == full


@pytest.mark.parametrize("name", ["a/b", "non-persistent://a/b/t", "persistent://a/b c/t", ""])
def test_a_malformed_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"is not a topic name\.( It has a blank\.)? Write"):
        persistent_name(name)


def test_the_persistent_topics_of_a_namespace_or_the_refusal() -> None:
    asked = ask_topics("a/b").get_topics_of_namespace
    assert (asked.namespace, asked.mode) == ("a/b", asked.Mode.PERSISTENT)
    good = CommandGetTopicsOfNamespaceResponse(topics=["persistent://a/b/t-partition-0"])
    command = BaseCommand(type=Type.GET_TOPICS_OF_NAMESPACE_RESPONSE, get_topics_of_namespace_response=good)
    assert topics_answer(command, "a/b") == ["persistent://a/b/t-partition-0"]
    with pytest.raises(InvalidInput, match="ask for the topics of a/b"):
        topics_answer(BaseCommand(type=Type.ERROR, error=CommandError(error=ServerError.AuthorizationError)), "a/b")

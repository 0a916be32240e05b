"""The requests that a real broker refuses for good, and whether this library's words for them are right."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, suppress

import httpx
import pyarrow as pa
import pytest

from eos.errors import InvalidInput, Refused, RefusedForGood, TopicMissing
from eos.pulsar.net.client import Client, InFlight
from eos.pulsar.net.producer import Producer
from eos.pulsar.net.producer_group import open_producers
from eos.pulsar.net.retaining_subscription import RetainingSubscription
from eos.pulsar.protocol.schemas import Declared
from eos.pulsar.wire.batch import BatchEncoder
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import MessageId
from tests.contract.conftest import Running
from tests.waiting import until


class Namespace:
    """A namespace of the test's own, and its settings."""

    def __init__(self, admin_url: str) -> None:
        self.name = f"public/refusals-{uuid.uuid4().hex[:10]}"
        self._http = httpx.Client(base_url=f"{admin_url}/admin/v2/", timeout=30)
        # Without a body it gets the broker's own cluster; one that has no cluster can't be deleted (412).
        self._do("PUT", f"namespaces/{self.name}", None)

    def set(self, setting: str, value: object) -> None:
        self._do("POST", f"namespaces/{self.name}/{setting}", value)

    def topic(self, name: str = "t") -> str:
        self._do("PUT", f"persistent/{self.name}/{name}", None)
        return f"persistent://{self.name}/{name}"

    def of_topic(self, method: str, path: str, value: object, topic: str = "t") -> None:
        self._do(method, f"persistent/{self.name}/{topic}/{path}", value)

    def schema(self, value: object, topic: str = "t") -> None:
        self._do("POST", f"schemas/{self.name}/{topic}/schema", value)

    def topics(self) -> list[str]:
        listed: list[str] = self._http.get(f"persistent/{self.name}").raise_for_status().json()
        return listed

    def delete(self) -> None:
        """Delete its topics first: by its defaults a broker deletes no namespace that has some."""
        with closing(self._http):
            for topic in self.topics():
                self._do("DELETE", f"{topic.replace('://', '/')}?force=true", None)
            # 409 while the broker has some of its own work there.
            until(lambda: self._http.delete(f"namespaces/{self.name}").is_success, f"{self.name} is deleted")

    def _do(self, method: str, path: str, value: object) -> None:
        self._http.request(method, path, json=value).raise_for_status()


@pytest.fixture
def namespace(pulsar: Running) -> Iterator[Namespace]:
    made = Namespace(pulsar.admin_url)
    yield made
    made.delete()


def test_a_missing_namespace_is_told_from_a_missing_topic_and_neither_is_created(
    ours: Client, namespace: Namespace
) -> None:
    with pytest.raises(TopicMissing, match=f"{namespace.name}/t does not exist. Check its name, or create it"):
        ours.partitions(f"persistent://{namespace.name}/t")
    assert namespace.topics() == []
    for missing in ("public/no-such", "no-such/default"):
        with pytest.raises(TopicMissing, match=rf"there is no namespace {missing}\. .* namespaces create {missing}"):
            ours.partitions(f"persistent://{missing}/t")


def test_a_subscription_that_the_broker_does_not_create(ours: Client, namespace: Namespace) -> None:
    topic = namespace.topic()
    namespace.set("autoSubscriptionCreation", {"allowAutoSubscriptionCreation": False})
    command = f"pulsar-admin topics create-subscription --subscription keep --messageId earliest {topic}"
    with pytest.raises(RefusedForGood, match=f"allowAutoSubscriptionCreation=false: {command}"):
        ours.hold(topic, "keep")
    assert ours.reader(topic).last_message_id() == MessageId(-1, -1)  # a reader needs none
    namespace.of_topic("PUT", "subscription/keep", {"ledgerId": -1, "entryId": -1, "partitionIndex": -1})  # earliest
    ours.hold(topic, "keep").close()


def test_a_topic_that_has_all_the_producers_and_subscriptions_it_may_have(ours: Client, namespace: Namespace) -> None:
    topic, words = namespace.topic(), list[str]()
    namespace.set("maxProducersPerTopic", 1)
    namespace.set("maxSubscriptionsPerTopic", 1)

    def refused(ask: Callable[[], Producer | RetainingSubscription]) -> bool:
        try:
            ask().close()
        except Refused as refusal:
            words.append(str(refusal))
            return True
        return False  # the policy is not taken up yet

    until(lambda: refused(lambda: ours.hold(topic, uuid.uuid4().hex)), "a subscription is refused")
    with ours.producer(topic):
        until(lambda: refused(lambda: ours.producer(topic)), "a producer is refused")
    assert "set-max-subscriptions-per-topic NAMESPACE" in words[0]
    assert "set-max-producers-per-topic NAMESPACE" in words[1]


def test_a_schema_that_is_demanded(ours: Client, namespace: Namespace) -> None:
    namespace.set("schemaValidationEnforced", True)
    topic = namespace.topic()
    namespace.schema({"type": "STRING", "schema": "", "properties": {}})
    with pytest.raises(InvalidInput, match=r"IncompatibleSchema.* set-schema-validation-enforce --disable"):
        ours.producer(topic)
    (bytes_alone,) = open_producers(ours, [topic], InFlight())
    of_schema = ours.producer(topic, schema=Declared("STRING"))
    (chunk,) = BatchEncoder().chunks(pa.RecordBatch.from_pydict({"value": [b"x"]}))
    for producer in (bytes_alone, of_schema):
        producer.send(chunk, None)
        producer.close()
    entries: list[Entry] = []
    with ours.entry_reader(topic, None) as reader:
        until(lambda: entries.extend(reader.read(1.0)) or len(entries) == 2)  # type: ignore[func-returns-value]
    assert [one.metadata.schema_version for one in entries] == [b"", bytes(8)]
    namespace.set("schemaValidationEnforced", False)

    def opens() -> bool:  # once the topic, which is loaded, has heard of it
        with suppress(InvalidInput):
            ours.producer(topic).close()
            return True
        return False

    until(opens, "the schema is demanded still")


@pytest.mark.parametrize("topic", ["persistent://public/de fault/t", "persistent://public/default/a/b"])
def test_a_name_that_is_none(ours: Client, topic: str) -> None:
    with pytest.raises(RefusedForGood, match=r"InvalidTopicName.*Correct the name of the topic"):
        ours.partitions(topic)


def test_a_terminated_topic(ours: Client, namespace: Namespace) -> None:
    topic = namespace.topic()
    namespace.of_topic("POST", "terminate", None)
    with pytest.raises(RefusedForGood, match=r"TopicTerminated.*Use another topic"):
        ours.producer(topic).send_record(b"x", None)

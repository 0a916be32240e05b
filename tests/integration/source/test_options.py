"""Options whose effect only brokers can show, and that no other test of the source sets."""

from __future__ import annotations

import re
from typing import Any

import httpx

from eos.pulsar.net.client import Client
from eos.source.options import parse_options
from tests.conftest import MakeTopic
from tests.integration.source.conftest import MakeStream, Run
from tests.integration.source.queries import Query
from tests.integration.source.streams import values, write


def subscriptions(admin_url: str, topic: str) -> list[str]:
    answer = httpx.get(f"{admin_url}/admin/v2/{topic.replace('://', '/')}/subscriptions", timeout=30)
    return [str(name) for name in answer.raise_for_status().json()]


def test_a_prefix_makes_one_subscription_for_the_same_topics(pulsar: Any, make_topic: MakeTopic) -> None:
    one, other = make_topic("one"), make_topic("other")

    def begin(**topics: str) -> None:
        given = {"service.url": pulsar.service_url, "subscriptionPrefix": "job", "startingOffsets": "earliest"}
        query = Query(parse_options(given | topics, "stream"))
        query.begins()
        query.brokers.close()

    begin(topic=one)
    begin(topic=one)
    (name,) = subscriptions(pulsar.admin_url, one)
    assert re.fullmatch(r"job-[0-9a-f]{8}", name)
    begin(topics=f"{one},{other}")
    begin(topics=f"{other},{one}")
    (second,) = subscriptions(pulsar.admin_url, other)
    assert sorted(subscriptions(pulsar.admin_url, one)) == sorted([name, second])
    assert name != second


def test_a_limit_of_bytes_cuts_batches_and_each_has_an_entry_at_least(
    run: Run, ours: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic("bytes")
    sent = [str(number) * 1_000 for number in range(9)]
    write(ours, topic, *sent)
    for limit, most in ((3_500, 3), (1, 1)):
        query = run(topic=topic, subscription=f"at-{limit}", startingOffsets="earliest", maxBytesPerTrigger=str(limit))
        position, batches = query.plan.first(), []
        while (done := query.latest(position)) != position:
            batches.append(query.read(position, done))
            position = done
        assert [value for batch in batches for value in batch] == sent
        assert {len(batch) for batch in batches} == {most}


def test_a_wanted_time_begins_with_a_hundred_entries(
    make_stream: MakeStream, ours: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic("paced")
    sent = [str(number) for number in range(250)]
    write(ours, topic, *sent)
    stream = make_stream(topic=topic, targetBatchSeconds="30")
    assert values(stream.run()) == sent
    assert len(stream.batches[0]) == 100

"""A real Pulsar Proxy: the same questions, asked of the broker and through the proxy, have the same answers."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import httpx
import pytest

from eos.config import Cluster
from eos.errors import EosError
from eos.pulsar.net.client import Client
from tests.contract.conftest import Running
from tests.proxy import PulsarProxy

SHORT_S = 5.0
"""A permission that is never granted must show at once, not by a time-out."""

Ask = Callable[[Client], object]


QUESTIONS: dict[str, Ask] = {
    "the partitions of a missing topic": lambda asked: asked.partitions("missing"),
    "the partitions of a topic in a missing namespace": lambda asked: asked.partitions("public/none/missing"),
    "the partitions of a topic of a missing tenant": lambda asked: asked.partitions("none/none/missing"),
    "the topics of a missing namespace": lambda asked: asked.topics("public/none"),
    "the schema of a missing topic": lambda asked: asked.schema("missing"),
    "a producer on a topic in a missing namespace": lambda asked: asked.producer("public/none/missing"),
    "a reader of a topic in a missing namespace": lambda asked: asked.reader("public/none/missing").last_message_id(),
    "a subscription of a topic in a missing namespace": lambda asked: asked.subscription(
        "public/none/missing", "s", initial="earliest"
    ),
    "the coordinators": lambda asked: asked.coordinators(),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_has_the_same_answer_through_a_proxy(pulsar: Running, proxy: PulsarProxy, question: str) -> None:
    answers = []
    for service_url in (pulsar.service_url, proxy.service_url):
        with Client(Cluster(service_url, request_timeout_s=SHORT_S)) as asked:
            answers.append(_answer(asked, QUESTIONS[question]))
            assert asked.coordinators() > 0
    assert answers[0] == answers[1]


def test_a_namespace_that_creates_no_topics_says_so_through_a_proxy(pulsar: Running, proxy: PulsarProxy) -> None:
    namespace = f"public/closed-{uuid.uuid4().hex[:10]}"
    where = f"{pulsar.admin_url}/admin/v2/namespaces/{namespace}"
    httpx.put(where, timeout=30).raise_for_status()
    httpx.post(f"{where}/autoTopicCreation", json={"allowAutoTopicCreation": False}, timeout=30).raise_for_status()
    answers = []
    for service_url in (pulsar.service_url, proxy.service_url):
        with Client(Cluster(service_url, request_timeout_s=SHORT_S)) as asked:
            answers.append(
                [
                    _answer(asked, of)
                    for of in (lambda c: c.ensure_topic(f"{namespace}/t"), lambda c: c.producer(f"{namespace}/t"))
                ]
            )
    assert answers[0] == answers[1]


def test_one_refusal_leaves_the_other_requests_of_a_connection_alone(pulsar: Running, proxy: PulsarProxy) -> None:
    with Client(Cluster(proxy.service_url)) as asked:
        connection = asked._pool.service()
        for _ in range(3):
            _answer(asked, QUESTIONS["the partitions of a missing topic"])
        assert connection.alive
        assert asked._pool.service() is connection


def _answer(asked: Client, question: Ask) -> object:
    """Return what is answered, or the kind of error and its words, without what names a request."""
    try:
        answer = question(asked)
    except EosError as error:
        return type(error), str(error)
    return answer

"""`eos.catalog` on a session that keeps views as Spark does: by lower-case names, unless it is told otherwise."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

import eos
from eos.errors import InvalidInput
from eos.inspect import views

FLIGHTS = "persistent://public/default/flights"


class Session:
    """Attributes: views: {the name by which Spark finds a view: the topic that it reads}."""

    def __init__(self, case_sensitive: str = "false") -> None:
        self.conf = {"spark.sql.caseSensitive": case_sensitive}
        self.views: dict[str, str] = {}

    @property
    def read(self) -> Read:
        return Read(self)


class Read:
    def __init__(self, spark: Session) -> None:
        self.spark, self.given = spark, dict[str, str]()

    def format(self, name: str) -> Read:
        return self

    def options(self, **given: str) -> Read:
        self.given |= given
        return self

    def option(self, name: str, value: str) -> Read:
        return self.options(**{name: value})

    def load(self) -> Read:
        return self

    def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802
        assert re.fullmatch(r"`([^`]|``)*`", name), "Spark's parser takes a backtick within only if it is doubled"
        name = name[1:-1].replace("``", "`")
        is_exact = self.spark.conf["spark.sql.caseSensitive"] == "true"
        self.spark.views[name if is_exact else name.lower()] = self.given["topic"]


class Cluster:
    def __init__(self, cluster: object) -> None: ...

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None: ...

    def schema(self, topic: str) -> None: ...


def catalog(monkeypatch: pytest.MonkeyPatch, spark: Session, *topics: str, **more: Any) -> list[str]:
    def listed(client: Cluster, namespace: str) -> Mapping[str, int]:
        return {topic: 0 for topic in topics if topic.startswith(f"persistent://{namespace}/")}

    monkeypatch.setattr(views, "Client", Cluster)
    monkeypatch.setattr(views, "register", lambda spark, name: None)
    monkeypatch.setattr(views, "listed", listed)
    session: Any = spark
    return eos.catalog(session, "pulsar://h:6650", **more)


@pytest.mark.parametrize("others", [(), ("persistent://public/default/zebra",)])
def test_topics_whose_views_would_have_one_name_are_refused_before_any_view_is_made(
    others: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = (*others, FLIGHTS, "persistent://public/default/Flights")
    spark = Session()
    with pytest.raises(InvalidInput, match="'public/default/flights' and 'public/default/Flights' differ in case"):
        catalog(monkeypatch, spark, *topics)
    assert spark.views == {}
    exact = Session("true")
    made = catalog(monkeypatch, exact, *topics)
    assert exact.views == {topic.removeprefix("persistent://"): topic for topic in topics}
    assert made == sorted(exact.views)


def test_topics_of_two_namespaces_that_differ_in_case_are_refused_too(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = ("persistent://public/a/t", "persistent://public/A/t")
    with pytest.raises(InvalidInput, match="differ in case"):
        catalog(monkeypatch, Session(), *topics, namespaces=["public/a", "public/A"])


def test_a_backtick_is_doubled_and_a_name_with_a_blank_is_left_out_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    spark = Session()
    odd = [FLIGHTS, f"{FLIGHTS} ", "persistent://public/default/a b", "persistent://public/default/a`b"]
    assert catalog(monkeypatch, spark, *odd) == ["public/default/a`b", "public/default/flights"]
    assert spark.views == {"public/default/a`b": odd[3], "public/default/flights": FLIGHTS}
    assert [message.split(" gets no view")[0] for message in caplog.messages] == [repr(odd[1]), repr(odd[2])]


@pytest.mark.parametrize("name", ["service.url", "serviceUrl", "service_url"])
def test_an_option_does_not_replace_the_cluster(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match=f"has '{name}', which would replace service_url="):
        catalog(monkeypatch, Session(), FLIGHTS, options={name: "pulsar://prod:6650"})
    assert catalog(monkeypatch, Session(), FLIGHTS, options={name: "pulsar://h:6650"}), "it says the same"


def test_a_single_namespace_may_be_a_text_and_options_have_other_types(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"failOnDataLoss": True, "maxMessageBytes": 4}
    assert catalog(monkeypatch, Session(), FLIGHTS, namespaces="public/default", options=given) == [
        "public/default/flights"
    ]
    for wrong in ({"namespaces": None}, {"options": {"token": None}}, {"options": "token"}):
        with pytest.raises(InvalidInput):
            catalog(monkeypatch, Session(), FLIGHTS, **wrong)

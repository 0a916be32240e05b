"""A Spark session for a verb: it is connected to the trees that the verb was told of, before anything else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkValueError

from statestore.cli import spark
from statestore.errors import Unavailable


class Played:
    """Hadoop's file systems, of which one address has no ZooKeeper."""

    connected: list[str]

    @classmethod
    def of(cls, session: str, options: Any) -> Played:
        assert (session, options) == ("spark", {"fs.bk.root": "/r"})
        return cls()

    def connect(self, uri: str) -> None:
        if "nowhere" in uri:
            raise Unavailable(f"No ZooKeeper answers at {uri}")
        self.connected.append(uri)


@pytest.fixture(autouse=True)
def played(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def session(options: Any, settings: Any) -> Iterator[str]:
        assert settings == {"spark.master": "local[2]"}
        yield "spark"

    Played.connected = []
    monkeypatch.setattr(spark, "session", session)
    monkeypatch.setattr(spark, "Hadoop", Played)


def test_it_is_connected_to_each_tree() -> None:
    given = ("bk://zk:2181/q", "a-savepoint", None, "file:///q", "bk://other/q")
    with spark.spark_for({"fs.bk.root": "/r"}, ["spark.master=local[2]"], *given) as session:
        assert str(session) == "spark"
        assert Played.connected == ["bk://zk:2181/q", "bk://other/q"]


def test_a_wrong_address_is_told_before_spark_does_anything() -> None:
    with (
        pytest.raises(Unavailable),
        spark.spark_for({"fs.bk.root": "/r"}, ["spark.master=local[2]"], "bk://nowhere:1/q"),
    ):
        pytest.fail("the verb was begun")


@pytest.mark.parametrize("error", [Py4JError("Index 2 out of bounds"), PySparkValueError("Index 2 out of bounds")])
def test_what_spark_fails_with_is_told_in_words(error: Exception) -> None:
    """As `diff` did, whose rows are read only when they are counted."""
    with (
        pytest.raises(Unavailable, match=r"Spark failed.*Index 2 out of bounds"),
        spark.spark_for({"fs.bk.root": "/r"}, ["spark.master=local[2]"]),
    ):
        raise error

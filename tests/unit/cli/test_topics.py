"""What `eos topics` and `eos topics create` print, with the Pulsar faked."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner, Result

from eos.cli import app as cli
from eos.errors import InvalidInput, Refused
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.schemas import Registered

BASE = "persistent://public/default"


def eos(*words: str) -> Result:
    return CliRunner().invoke(cli.typer_app, words)


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """A namespace with two topics; the list holds those that are made besides."""
    made: list[tuple[str, int]] = []

    def topics(client: Client, namespace: str) -> list[str]:
        return [f"{BASE}/b-partition-0", f"{BASE}/a"] if namespace == "public/default" else []

    def schema(client: Client, topic: str) -> Registered | None:
        return Registered(topic, bytes(8), "JSON", b"", {}) if topic.endswith("/b") else None

    def create(admin: Admin, topic: str, partitions: int) -> None:
        if topic.startswith("persistent://no/"):
            raise Refused("create", "404", "Namespace not found")
        if topic in dict(made):
            raise Refused("create", "409", "This topic already exists")
        made.append((topic, partitions))

    monkeypatch.setattr(Client, "topics", topics)
    monkeypatch.setattr(Client, "schema", schema)
    monkeypatch.setattr(Client, "partitions", lambda client, topic: {f"{BASE}/b": 1, **dict(made)}[topic])
    monkeypatch.setattr(Admin, "create", create)
    return made


def test_topics_are_a_table_or_objects() -> None:
    assert [line.split()[1:6:2] for line in eos("topics").stdout.splitlines()[3:-1]] == [
        [f"{BASE}/a", "none", "none"],
        [f"{BASE}/b", "1", "JSON"],
    ]
    assert json.loads(eos("topics", "--json").stdout)[1] == {
        "topic": f"{BASE}/b",
        "partitions": 1,
        "schema": "JSON",
    }
    empty = eos("topics", "--namespace", "public/other")
    assert (empty.exit_code, "public/other has no topics, or does not exist." in empty.output) == (0, True)
    for_a_program = eos("topics", "--namespace", "public/other", "--json")
    assert (for_a_program.stdout, "or does not exist" in for_a_program.stderr) == ("[]\n", True)


def test_a_topic_is_made_or_found(made: list[tuple[str, int]]) -> None:
    assert f"{BASE}/flights is made" in eos("topics", "create", "flights", "--partitions", "2").output
    assert f"{BASE}/flights is there already" in eos("topics", "create", "flights", "--partitions", "2").output
    other = eos("topics", "create", "flights").exception
    assert isinstance(other, InvalidInput)
    assert f"{BASE}/flights is there already, with 2 partitions, not 0" in str(other)
    assert made == [(f"{BASE}/flights", 2)]


def test_a_namespace_that_does_not_exist_is_named_as_the_cause(made: list[tuple[str, int]]) -> None:
    error = eos("topics", "create", "no/such/rows").exception
    assert isinstance(error, InvalidInput)
    assert "persistent://no/such/rows was not created. Its namespace does not exist." in str(error)
    assert made == []


def test_a_name_that_is_not_valid_is_refused_before_anything_is_asked(made: list[tuple[str, int]]) -> None:
    assert isinstance(eos("topics", "create", "a/b").exception, InvalidInput)
    assert made == []


@pytest.mark.parametrize("option", ["--json", "--namespace=public/other", "--admin-url=http://localhost:8080"])
def test_an_option_of_the_list_before_create_is_refused(option: str, made: list[tuple[str, int]]) -> None:
    error = eos("topics", option, "create", "flights").exception
    assert "come after the verb" in str(error)
    assert made == []

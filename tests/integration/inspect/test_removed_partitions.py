"""Commands that go partition by partition, where the broker has removed partitions that held nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eos.config import Cluster
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from tests.conftest import MakeTopic
from tests.integration.source.streams import write
from tests.integration.sparkless import eos
from tests.unit.inspect.test_checkpoints import checkpoint

LEFT = f"spark-batch-app-1-{'0123456789abcdef' * 2}-7"

COMMANDS: dict[str, tuple[tuple[str, ...], Callable[[Any], Any], Any]] = {
    "peek": (("peek", "TOPIC"), lambda told: told["value"], "a"),
    "plan": (("plan", "TOPIC"), lambda told: [one["topic"][-1] for one in told], ["1"]),
    "topics": (
        ("topics", "--namespace", "public/default"),
        lambda told: [one["partitions"] for one in told if "/removed" in one["topic"]][-1:],
        [3],
    ),
    "lag": (("lag", "TOPIC"), lambda told: [(one["topic"][-1], one["messages"]) for one in told], [("1", 1)] * 2),
    "doctor": (("doctor", "TOPIC"), lambda told: told["held_up"], []),
    "doctor --preflight": (
        ("doctor", "--preflight", "TOPIC"),
        lambda told: [one["said"][-24:] for one in told["checks"] if one["about"].startswith("topic")],
        ["is there, with 3 partitions."[-24:]],
    ),
    "doctor --remove-leftovers": (
        ("doctor", "TOPIC", "--remove-leftovers"),
        lambda told: [(one["topic"][-1], one["subscription"]) for one in told["removed"]],
        [("1", LEFT)],
    ),
    "adopt": (
        ("sink", "adopt", "CHECKPOINT", "--topic", "TOPIC", "--sink", "other"),
        lambda told: [one["verdict"] for one in told["findings"] if one["about"] == "producers"],
        ["good"],
    ),
}


@pytest.fixture
def topic(pulsar: Any, make_topic: MakeTopic) -> str:
    """A topic of three partitions: the second one holds "a" for two subscriptions, and the others are gone."""
    topic = make_topic("removed", 3)
    with Client(Cluster(pulsar.service_url)) as client:
        for name in ("job", LEFT):
            client.subscription(f"{topic}-partition-1", name, initial="earliest").close()
        write(client, f"{topic}-partition-1", "a")
    with Admin(pulsar.admin_url) as admin:
        for number in (0, 2):
            admin.delete(f"{topic}-partition-{number}")
    return topic


@pytest.mark.parametrize("command", COMMANDS)
def test_a_partition_that_was_removed_is_empty_and_ends_no_command(
    pulsar: Any, topic: str, tmp_path: Path, command: str
) -> None:
    words, shown, expected = COMMANDS[command]
    places = {"TOPIC": topic, "CHECKPOINT": str(checkpoint(tmp_path / "c", 4, 4))}
    answer = eos(pulsar, *(places.get(word, word) for word in words), "--json")
    print(answer.output)
    assert shown(json.loads(answer.stdout)) == expected


def test_a_removed_partition_may_be_named_by_itself(pulsar: Any, topic: str) -> None:
    for words in (("plan", f"{topic}-partition-2"), ("doctor", f"{topic}-partition-2")):
        answer = eos(pulsar, *words, "--json")
        assert answer.exit_code == 0, answer.output

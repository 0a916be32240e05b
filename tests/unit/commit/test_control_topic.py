from __future__ import annotations

import pytest

from eos.commit.control_topic import abort_command, control_topic
from eos.errors import InvalidInput


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("persistent://acme/eu/flights", "persistent://acme/eu/__eos-f"),
        ("acme/eu/flights", "persistent://acme/eu/__eos-f"),
        ("flights", "persistent://public/default/__eos-f"),
    ],
)
def test_the_control_topic_lies_beside_the_data(topic: str, expected: str) -> None:
    assert control_topic("f", topic) == expected


@pytest.mark.parametrize("name", ["", "a/b", "a b", "-a", "a-", "ä", "a" * 101, "a\n"])
def test_a_name_that_is_no_part_of_a_topic_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="cannot name a sink"):
        control_topic(name, "flights")


@pytest.mark.parametrize("topic", ["non-persistent://a/b/c", "http://a/b/c", "a/b", ""])
def test_a_topic_that_can_hold_no_log_is_refused(topic: str) -> None:
    with pytest.raises(InvalidInput, match="not a persistent topic"):
        control_topic("f", topic)


def test_the_command_names_the_namespace_where_it_is_not_the_default() -> None:
    assert abort_command("f", "public/default") == "eos abort f"
    assert abort_command("f", "acme/eu") == "eos abort f --namespace acme/eu"

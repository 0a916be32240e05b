"""Parts of eos.commit that need few tests each: the control topic, tries, and what no module may load."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import eos.commit
from eos.commit.control_topic import abort_command, control_topic
from eos.commit.retry import OwnerSettings
from eos.errors import CommitUnknown, InvalidInput, LimitReached, RefusedForGood
from tests.simulation.broker import Broker
from tests.simulation.world import Alone
from tests.unit.commit.driver import LOST, owning

# ---- the control topic


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
    assert abort_command("f", "public/default") == "eos sink abort f"
    assert abort_command("f", "acme/eu") == "eos sink abort f --namespace acme/eu"


# ---- tries


SETTINGS = OwnerSettings(ttl_s=60, patience_s=30, limit_s=10)
LIMIT = LimitReached("open", "ProducerBusy", "Topic reached max producers limit", "Raise the limit")


@pytest.fixture
def world() -> Alone:
    return Alone(Broker(coordinators=4))


@pytest.mark.parametrize("label", ["SUBSCRIBE", "SUBSCRIBE durable", "PRODUCER exclusive-with-fencing"])
def test_a_takeover_ends_with_the_limit_in_words(world: Alone, label: str) -> None:
    world.failing = {label: [(LIMIT, False)] * 10_000}
    with pytest.raises(RefusedForGood, match=r"refused for 10 s, .*a client that died\. Raise the limit") as caught:
        owning(world, settings=SETTINGS)
    assert "starting again is safe" not in str(caught.value)
    assert 10 <= world.clock() < 12


@pytest.mark.parametrize("label", ["SUBSCRIBE", "SUBSCRIBE durable", "PRODUCER exclusive-with-fencing"])
def test_a_takeover_goes_on_once_there_is_room(world: Alone, label: str) -> None:
    world.failing = {label: [(LOST, False)] * 20 + [(LIMIT, False)] * 15}  # of both some 8 s, more than 10 s in all
    assert owning(world, settings=SETTINGS).view.owner is not None
    assert world.clock() > 10


def test_a_limit_says_nothing_of_a_commit_that_was_sent(world: Alone) -> None:
    owner = owning(world, settings=SETTINGS)
    owner.open()
    world.failing = {"END_TXN commit": [(LOST, True)], "SEND": [(LOST, False)] * 10_000}
    owner.commit(lambda: None)
    world.failing["PRODUCER exclusive-with-fencing"] = [(LIMIT, False)] * 10_000
    with pytest.raises(CommitUnknown, match=r"Raise the limit\. Whether the batch is committed is not known"):
        owner.settle()


# ---- no network


MODULES = ["eos.commit", *(f"eos.commit.{path.stem}" for path in Path(eos.commit.__path__[0]).glob("[a-z]*.py"))]
NETWORK = ("eos.pulsar.net", "eos.pulsar.protocol", "socket", "ssl", "asyncio", "httpx", "pyspark")


@pytest.mark.parametrize("module", MODULES)
def test_a_fresh_process_that_imports_it_has_no_sockets(module: str) -> None:
    code = f"import sys, {module}; print(*(name for name in sys.modules if name.startswith({NETWORK})), sep=',')"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "\n"

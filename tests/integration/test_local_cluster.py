"""A cluster of six processes: started, killed in part, repaired, and gone without a trace."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pulsar as official
import pytest
from typer.testing import CliRunner, Result

from eos.cli.app import typer_app
from eos.config import Cluster
from eos.local import LocalCluster, LocalPulsar, jars
from eos.local.parts import PARTS
from eos.local.places import cache
from eos.pulsar.net.client import Client
from tests.clients import official_client
from tests.conftest import create_topic
from tests.waiting import until

Eos = Callable[..., Result]

PATIENCE_S = 200
"""Seconds that the brokers may take to notice that one of them is gone, and to load its topics."""

# `up` leaves its processes running on purpose; here it is called within a process that goes on.
pytestmark = pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")


@pytest.fixture(scope="module")
def eos(pulsar: LocalPulsar) -> Iterator[Eos]:
    """Run `eos local ...` with a cache folder of the module's own, in which only the jars are there already.

    The broker of all tests is started before: else it would run on jars in a folder that is removed.
    """
    jars.classpath()
    real = jars.folder()
    folder = Path(tempfile.mkdtemp(prefix="eos-test-"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EOS_CACHE", str(folder))
        cache().mkdir(parents=True)
        jars.folder().symlink_to(real)
        yield lambda *words: CliRunner().invoke(typer_app, ["local", *map(str, words)])
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def cluster(eos: Eos) -> Iterator[LocalCluster]:
    answer = eos("up", "--cluster")
    try:
        assert answer.exit_code == 0, answer.output
        yield LocalCluster.found(cache() / "local" / "default" / "data")
    finally:
        eos("down")


def shown(eos: Eos) -> dict[str, Any]:
    (only,) = json.loads(eos("status", "--json").stdout)
    return dict(only)


def pids(eos: Eos) -> dict[str, int | None]:
    return {part["name"]: part["pid"] for part in shown(eos)["parts"]}


def listening(pid: int | None) -> set[str]:
    connections = psutil.Process(pid).net_connections("tcp")
    return {one.laddr[0].removeprefix("::ffff:") for one in connections if one.status == psutil.CONN_LISTEN}


def send(service_url: str, topic: str, *payloads: str) -> None:
    with official_client(service_url, operation_timeout_seconds=PATIENCE_S) as client:
        producer = client.create_producer(topic, send_timeout_millis=PATIENCE_S * 1000)
        for payload in payloads:
            producer.send(payload.encode())


def read(service_url: str, topic: str, count: int) -> list[str]:
    with official_client(service_url, operation_timeout_seconds=PATIENCE_S) as client:
        reader = client.create_reader(topic, official.MessageId.earliest)
        found = [reader.read_next(PATIENCE_S * 1000).data().decode() for _ in range(count)]
        assert not reader.has_message_available()
    return found


def test_each_part_is_a_process_that_listens_on_the_loopback_alone(eos: Eos, cluster: LocalCluster) -> None:
    mine = shown(eos)
    assert mine["running"] is True
    assert [part["name"] for part in mine["parts"]] == list(PARTS)
    assert {part["state"] for part in mine["parts"]} == {"running"}
    assert len(set(pids(eos).values())) == len(PARTS)
    assert {name: listening(pid) for name, pid in pids(eos).items()} == {name: {"127.0.0.1"} for name in PARTS}
    assert mine["bk_url"] == f"bk://{cluster['zookeeper'].address}"
    until(cluster.ready)


def test_the_bookie_and_the_broker_of_one_process_listen_on_the_loopback(pulsar: LocalPulsar) -> None:
    if not isinstance(pulsar, LocalPulsar) or pulsar.ports is None:
        pytest.skip("the broker is not ours")
    connections = psutil.Process(pulsar.pid).net_connections("tcp")
    open_to_all = {
        one.laddr[1]
        for one in connections
        if one.status == psutil.CONN_LISTEN and one.laddr[0].removeprefix("::ffff:") != "127.0.0.1"
    }
    assert open_to_all == {pulsar.ports.zookeeper}, "ZooKeeper there can't be told where to listen"


def test_either_broker_takes_messages_and_ledgers_have_three_copies(cluster: LocalCluster) -> None:
    topic = create_topic(cluster.admin_url, "both")
    for number, url in enumerate(cluster.broker_urls):
        send(url, topic, f"through {number}")
    assert read(cluster.service_url, topic, 2) == ["through 0", "through 1"]
    with Client(Cluster(cluster.service_url)) as client:
        assert client.coordinators() == 4
    settings = httpx.get(f"{cluster.admin_url}/admin/v2/brokers/configuration/runtime", timeout=30).json()
    quorums = [settings[f"managedLedgerDefault{which}"] for which in ("EnsembleSize", "WriteQuorum", "AckQuorum")]
    assert quorums == ["3", "3", "2"]


def test_writing_goes_on_without_a_bookie_and_up_repairs_only_what_is_dead(eos: Eos, cluster: LocalCluster) -> None:
    topic = create_topic(cluster.admin_url, "bookie")
    send(cluster.service_url, topic, "before")
    assert eos("kill", "bookie-1").exit_code == 0
    before = pids(eos)
    assert before["bookie-1"] is None
    assert shown(eos)["running"] is False
    send(cluster.service_url, topic, "without")

    answer = eos("up", "--cluster")
    assert answer.exit_code == 0, answer.output
    after = pids(eos)
    assert after.pop("bookie-1") is not None
    del before["bookie-1"]
    assert after == before
    until(cluster["bookie-1"].ready)
    assert read(cluster.service_url, topic, 2) == ["before", "without"]
    assert "running already" in eos("up", "--cluster").output
    assert pids(eos).items() >= after.items()


def test_a_paused_part_is_there_and_not_ready_until_it_goes_on(eos: Eos, cluster: LocalCluster) -> None:
    assert "bookie-2 is paused" in eos("pause", "bookie-2").output
    assert cluster["bookie-2"].pid is not None
    assert not cluster["bookie-2"].ready()
    assert "bookie-2 is running" in eos("resume", "bookie-2").output
    until(cluster["bookie-2"].ready)


def test_the_topics_of_a_killed_broker_are_served_by_the_other_and_down_leaves_nothing(
    eos: Eos, cluster: LocalCluster
) -> None:
    topic = create_topic(cluster.admin_url, "broker")
    send(cluster.service_url, topic, "before")
    path = topic.replace("persistent://", "persistent/")
    owner = httpx.get(f"{cluster.admin_url}/lookup/v2/topic/{path}", timeout=30, follow_redirects=True).json()[
        "brokerUrl"
    ]
    number = cluster.broker_urls.index(owner)
    cluster[f"broker-{number}"].kill()
    send(cluster.service_url, topic, "after")
    assert read(cluster.broker_urls[1 - number], topic, 2) == ["before", "after"]

    known = [pid for pid in pids(eos).values() if pid is not None]
    data = cluster.data
    assert data is not None
    assert eos("down").exit_code == 0
    assert [
        pid for pid in known if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    ] == []
    assert not data.parent.exists()
    assert json.loads(eos("status", "--json").stdout) == []

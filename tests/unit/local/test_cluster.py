"""What the parts of a cluster are told, and a member's process, with a shell script in place of Java."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eos.cli import app as cli
from eos.local import LocalCluster, LocalError, Member, MemberState, checks, jars, records
from eos.local.clusters import ClusterInstance
from eos.local.parts import PARTS, ClusterPart, ClusterPorts, Plan
from eos.local.process import ProcessId
from tests.waiting import PATIENCE_S, until

PORTS = ClusterPorts(1, (2, 3, 4), (5, 6), (7, 8))
PLAN = Plan(PORTS, {"brokerDeduplicationEnabled": True}, "300m", False, 4)


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EOS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def member(tmp_path: Path) -> Iterator[Member]:
    part = ClusterPart("bookie-0", "Main", (), "", checks.pick_ports(1)[0], "1m", "1m")
    made = Member(part, tmp_path / "bookie-0", None, zookeeper_port=1, start_timeout_s=PATIENCE_S)
    yield made
    made.kill()


def program(folder: Path, text: str) -> Path:
    path = folder / "java"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def eos(*words: str) -> str:
    answer = CliRunner().invoke(cli.typer_app, ["local", *words])
    return f"{answer.output} {answer.exception or ''}"


def settings(part: str, plan: Plan = PLAN) -> dict[str, str]:
    (found,) = (one for one in plan.parts(Path("/home")) if one.name == part)
    return dict(line.split("=", 1) for line in found.configuration.splitlines())


def test_a_plan_is_read_back_as_it_was_written() -> None:
    assert Plan.from_json(PLAN.to_json()) == PLAN


def test_the_parts_are_those_that_are_promised() -> None:
    assert tuple(part.name for part in PLAN.parts(Path("/home"))) == PARTS
    assert len(set(ClusterPorts.free().bookies)) == 3


def test_every_part_is_told_to_listen_on_the_loopback() -> None:
    assert settings("zookeeper")["clientPortAddress"] == "127.0.0.1"
    assert settings("bookie-1")["listeningInterface"] == checks.loopback()
    assert settings("broker-1")["bindAddress"] == "127.0.0.1"
    assert settings("broker-1")["advertisedAddress"] == "127.0.0.1"


def test_ledgers_have_three_copies_of_which_two_are_awaited() -> None:
    told = settings("broker-0")
    assert [told[f"managedLedgerDefault{which}"] for which in ("EnsembleSize", "WriteQuorum", "AckQuorum")] == [
        "3",
        "3",
        "2",
    ]


def test_settings_are_the_brokers_and_win() -> None:
    plan = Plan(PORTS, {"clusterName": "mine"}, "300m", True, 4)
    assert settings("broker-0", plan)["clusterName"] == "mine"
    assert "clusterName" not in settings("bookie-0", plan)
    assert settings("bookie-0", plan)["autoRecoveryDaemonEnabled"] == "true"
    assert settings("bookie-0")["autoRecoveryDaemonEnabled"] == "false"


def test_a_listener_sends_clients_that_ask_for_it_to_its_ports() -> None:
    plan = replace(PLAN, listeners={"proxy": (71, 72)})
    told = settings("broker-1", plan)
    assert told["advertisedListeners"] == "own:pulsar://127.0.0.1:6,proxy:pulsar://127.0.0.1:72"
    assert told["internalListenerName"] == "own"
    assert "advertisedAddress" not in told  # it must not be set beside them
    assert "advertisedListeners" not in settings("broker-1")
    assert settings("broker-1", Plan.from_json(plan.to_json())) == told


def test_silence_is_as_long_as_asked_for_and_no_shorter_than_zookeeper_takes() -> None:
    plan = replace(PLAN, session_s=2.5)
    assert settings("bookie-0", plan)["zkTimeout"] == "2500"
    assert settings("broker-0", Plan.from_json(plan.to_json()))["metadataStoreSessionTimeoutMillis"] == "2500"
    assert settings("bookie-0")["zkTimeout"] == "8000"
    for wrong in (1.9, 20.5):
        with pytest.raises(LocalError, match=rf"session_s is {wrong}; ZooKeeper here takes 2 to 20 seconds"):
            LocalCluster(session_s=wrong)


def test_data_of_another_version_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "classpath", lambda *_: "jars")
    text = PLAN.to_json()
    (tmp_path / "cluster.json").write_text(text)
    with pytest.raises(
        LocalError, match=r"written by Pulsar 4\.2\.4, and may be unreadable for 4\.0\.0\. .*version='4\.2\.4'"
    ):
        LocalCluster(data=tmp_path, version="4.0.0").start()
    assert (tmp_path / "cluster.json").read_text() == text


def test_a_cluster_is_found_with_its_version(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(replace(PLAN, version="4.0.0").to_json())
    assert LocalCluster.found(tmp_path).version == "4.0.0"
    before = {key: value for key, value in json.loads(PLAN.to_json()).items() if key != "version"}
    (tmp_path / "cluster.json").write_text(json.dumps(before))
    assert LocalCluster.found(tmp_path).version == "4.2.4"


@pytest.mark.jvm
def test_java_knows_a_member_as_localhost_when_it_should(member: Member, tmp_path: Path) -> None:
    member.part = replace(member.part, is_localhost=True)
    member.launch(program(tmp_path, 'for word; do echo "$word"; done; exec sleep 300'), "jars")
    hosts = member.home / "hosts"
    until(lambda: f"{member.name}.conf" in member.log.read_text(), "its last word")
    assert f"-Djdk.net.hosts.file={hosts}" in member.log.read_text().splitlines()
    assert hosts.read_text().split() == ["127.0.0.1", "localhost", socket.gethostname()]


@pytest.mark.jvm
def test_a_member_is_killed_paused_and_started_again(member: Member, tmp_path: Path) -> None:
    java = program(tmp_path, "exec sleep 300")
    before = member.state
    assert before is MemberState.ENDED
    member.kill()
    member.launch(java, "jars")
    first = member.pid
    member.launch(java, "jars")
    assert (member.pid, member.state) == (first, MemberState.RUNNING)
    member.pause()
    assert (member.pid, member.state) == (first, MemberState.PAUSED)
    assert not member.ready()
    member.resume()
    resumed = member.state
    assert resumed is MemberState.RUNNING
    member.kill()
    assert (member.pid, member.state) == (None, MemberState.ENDED)
    member.launch(java, "jars")
    assert member.pid not in (None, first)


@pytest.mark.jvm
def test_a_bookie_is_not_ready_by_the_registration_of_the_one_that_was_killed(
    member: Member, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = ["0x1:"]
    monkeypatch.setattr(
        "eos.local.member.ask_zookeeper",
        lambda port, word: f"Sessions with Ephemerals (1):\n{session[0]}\n\t/ledgers/available/{member.address}\n",
    )
    member.launch(program(tmp_path, "exec sleep 300"), "jars")
    with socket.create_server(("127.0.0.1", member.part.port)):
        assert not member.ready()
        session[0] = "0x2:"
        assert member.ready()


@pytest.mark.jvm
def test_another_process_that_knows_the_folder_can_end_a_member(member: Member, tmp_path: Path) -> None:
    member.launch(program(tmp_path, "trap 'echo bye; exit' TERM; echo up; while :; do sleep 0.05; done"), "jars")
    until(lambda: "up" in member.log.read_text())
    other = Member(member.part, member.home, None, zookeeper_port=1, start_timeout_s=1)
    assert other.pid == member.pid
    other.pause()
    other.end(grace_s=PATIENCE_S)
    assert member.state is MemberState.ENDED
    assert "bye" in member.log.read_text()


@pytest.mark.jvm
def test_a_member_that_ends_or_stays_silent_is_an_error_with_its_log(member: Member, tmp_path: Path) -> None:
    member.launch(program(tmp_path, "echo no space; exit 3"), "jars")
    with pytest.raises(LocalError, match=r"bookie-0 ended while starting(.|\n)*no space"):
        member.wait_until_ready()
    member.start_timeout_s = 0.3
    member.launch(program(tmp_path, "echo thinking; exec sleep 300"), "jars")
    with pytest.raises(LocalError, match=r"bookie-0 did not answer within 0\.3 s"):
        member.wait_until_ready()


def test_a_port_that_another_process_has_taken_is_said(member: Member, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", member.part.port)), pytest.raises(LocalError, match="listens on its port"):
        member.launch(program(tmp_path, "exec sleep 300"), "jars")
    assert member.state is MemberState.ENDED


def test_addresses_are_asked_for_only_after_the_start() -> None:
    asks: list[Callable[[LocalCluster], object]] = [
        lambda c: c.service_url,
        lambda c: c.bk_url,
        lambda c: c.admin_url,
        lambda c: c["bookie-0"],
    ]
    for ask in asks:
        with pytest.raises(LocalError, match="has not been started"):
            ask(LocalCluster())
    with pytest.raises(LocalError, match="No cluster was started in"):
        LocalCluster.found(Path("/nowhere"))


def cluster_of(tmp_path: Path, name: str = "default") -> ClusterInstance:
    data = tmp_path / "cache" / "spark-pulsar-eos" / "local" / name / "data"
    instance = ClusterInstance(name, data, True)
    records.write(name, {"name": name, "data": str(data), "data_is_ours": True, "cluster": True})
    return instance


def test_status_shows_each_part(tmp_path: Path) -> None:
    instance = cluster_of(tmp_path)
    assert "ended" in eos("status")
    instance.data.mkdir()
    (instance.data / "cluster.json").write_text(PLAN.to_json())
    (instance.data / "bookie-1").mkdir()
    me = Member(PLAN.parts(instance.data)[2], instance.data / "bookie-1", None, 1, 1)
    found = ProcessId.of(os.getpid())
    assert found is not None
    (instance.data / "bookie-1" / "process.json").write_text(f'{{"pid": {found.pid}, "started": "{found.started}"}}')
    assert me.state is MemberState.RUNNING
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in eos("status").splitlines() if "│" in line]
    assert ["default", "in part", "pulsar://127.0.0.1:5,127.0.0.1:6", "http://127.0.0.1:7"] in lines
    assert ["default", "bookie-1", "running", str(os.getpid()), "127.0.0.1:3"] in lines
    assert ["default", "broker-0", "ended", "", "127.0.0.1:5"] in lines
    (instance.data / "bookie-1" / "process.json").unlink()


def test_one_name_is_a_cluster_or_a_single_process(tmp_path: Path) -> None:
    cluster_of(tmp_path)
    assert "default is a cluster" in eos("up")
    records.write("one", {"name": "one", "cluster": False, "data": "d", "data_is_ours": True})
    assert "one is a Pulsar in one process" in eos("up", "--cluster", "--name", "one")


def test_parts_are_asked_for_by_name(tmp_path: Path) -> None:
    assert "No cluster is called default" in eos("kill", "bookie-0")
    instance = cluster_of(tmp_path)
    instance.data.mkdir()
    (instance.data / "cluster.json").write_text(PLAN.to_json())
    assert "'bookie-7' is not a part of the cluster. Its parts are zookeeper, bookie-0" in eos("kill", "bookie-7")
    assert "bookie-0 is dead" in eos("kill", "bookie-0")


def test_options_that_do_not_go_together_are_refused() -> None:
    assert "leave out --port" in eos("up", "--cluster", "--port", "7")
    assert "--autorecovery is for clusters" in eos("up", "--autorecovery")


def test_down_forgets_a_cluster_of_which_nothing_was_started(tmp_path: Path) -> None:
    instance = cluster_of(tmp_path)
    assert "is down" in eos("down")
    assert not instance.data.parent.exists()

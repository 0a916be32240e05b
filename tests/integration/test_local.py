"""A real Pulsar on this machine: started, found again, killed, restarted, and gone without a trace."""

from __future__ import annotations

import json
import os
import shlex
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pulsar as official
import pytest
from typer.testing import CliRunner, Result

from eos.cli.app import typer_app
from eos.config import Cluster, Credentials, Tls
from eos.local import LocalError, LocalPulsar, instances, jars
from eos.local.places import cache
from eos.pulsar.net.client import Client
from tests.conftest import create_topic
from tests.waiting import until

Eos = Callable[..., Result]
StartPulsar = Callable[..., LocalPulsar]

# `up` leaves its process running on purpose; here it is called within a process that goes on.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]


@pytest.fixture
def eos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Eos]:
    """Run `eos local ...` with a cache folder of its own, in which only the jars are there already."""
    jars.classpath()
    real = jars.folder()
    monkeypatch.setenv("EOS_CACHE", str(tmp_path / "cache"))
    cache().mkdir(parents=True)
    jars.folder().symlink_to(real)
    yield lambda *words: CliRunner().invoke(typer_app, ["local", *map(str, words)])
    for instance in instances.known():
        instances.down(instance.name)


def shown(eos: Eos) -> dict[str, dict[str, object]]:
    answer = eos("status", "--json")
    assert answer.exit_code == 0
    return {one["name"]: one for one in json.loads(answer.stdout)}


def has_coordinators(admin_url: object) -> bool:
    return len(httpx.get(f"{admin_url}/admin/v3/transactions/coordinators", timeout=30).json()) > 0


def topics(admin_url: object) -> str:
    return httpx.get(f"{admin_url}/admin/v2/persistent/public/default", timeout=30).text


def processes_about(text: str) -> list[int]:
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        if process.info["status"] != psutil.STATUS_ZOMBIE and any(text in word for word in words):
            found.append(process.pid)
    return found


def connections(pid: int) -> list[Any]:
    """Sockets of a process and of those that it started."""
    process = psutil.Process(pid)
    return [socket for one in (process, *process.children(recursive=True)) for socket in one.net_connections("tcp")]


def test_a_second_up_finds_the_running_one_two_names_run_side_by_side_and_down_leaves_nothing(
    eos: Eos, tmp_path: Path
) -> None:
    first = eos("up", "--ports", "auto")
    assert first.exit_code == 0, first.output
    mine = shown(eos)["default"]
    assert mine["running"] is True
    assert str(mine["service_url"]) in first.output
    assert has_coordinators(mine["admin_url"])

    again = eos("up")
    assert again.exit_code == 0
    assert "running already" in again.output
    assert str(mine["service_url"]) in again.output
    assert shown(eos) == {"default": mine}

    answer = eos("up", "--name", "other", "--ports", "auto")
    assert answer.exit_code == 0, answer.output
    both = shown(eos)
    assert both["default"] == mine
    assert len({one["service_url"] for one in both.values()}) == 2
    topic = create_topic(str(mine["admin_url"]), "here").rpartition("/")[2]
    assert {name: topic in topics(one["admin_url"]) for name, one in both.items()} == {"default": True, "other": False}

    port = str(mine["service_url"]).rpartition(":")[2]
    late = eos("up", "--name", "late", "--ports", "auto", "--port", port)
    assert isinstance(late.exception, LocalError)
    assert f"port {port} is in use, choose another with --port" in str(late.exception)
    assert not (cache() / "local" / "late").exists()

    assert eos("down").exit_code == 0
    assert set(shown(eos)) == {"other"}
    assert has_coordinators(both["other"]["admin_url"])
    assert eos("down", "--name", "other").exit_code == 0
    assert shown(eos) == {}
    assert processes_about(str(tmp_path)) == []
    assert sorted(path.name for path in cache().rglob("*") if not path.is_relative_to(jars.folder())) == [
        "instances.lock",
        "local",
    ]
    assert "does not run" in eos("down").output


def test_an_instance_that_crashed_and_one_that_ended_come_up_again_on_their_data(eos: Eos, tmp_path: Path) -> None:
    data = tmp_path / "my data"
    assert eos("up", "--ports", "auto", "--data", data).exit_code == 0
    mine = shown(eos)["default"]
    topic = create_topic(str(mine["admin_url"]), "kept").rpartition("/")[2]
    os.kill(int(str(mine["pid"])), signal.SIGKILL)
    until(lambda: shown(eos)["default"]["running"] is False)

    assert eos("up").exit_code == 0
    again = shown(eos)["default"]
    assert again["running"] is True
    assert again["service_url"] == mine["service_url"]
    assert topic in topics(mine["admin_url"])
    assert eos("down", "--keep-data").exit_code == 0
    assert shown(eos) == {}

    refused = eos("up", "--data", data, "--bookkeeper-port", "1025")
    assert "--bookkeeper-port" in str(refused.exception)
    assert eos("up", "--data", data).exit_code == 0
    after = shown(eos)["default"]
    assert after["service_url"] == mine["service_url"]
    assert topic in topics(after["admin_url"])

    (data / "mine.txt").write_text("not Pulsar's")
    assert eos("down").exit_code == 0
    assert [path.name for path in data.iterdir()] == ["mine.txt"]


def test_a_start_that_fails_says_what_the_log_says(eos: Eos) -> None:
    answer = eos("up", "--ports", "auto", "--setting", "maxActiveTransactionsPerCoordinator=many")
    assert isinstance(answer.exception, LocalError)
    assert "maxActiveTransactionsPerCoordinator" in str(answer.exception)
    assert shown(eos) == {}


@pytest.mark.parametrize("name", ["", "../up", "a b"])
def test_names_that_are_no_names_are_refused(eos: Eos, name: str) -> None:
    assert "is not a name for an instance" in str(eos("up", "--name", name).exception)


def test_messages_survive_a_kill(start_pulsar: StartPulsar) -> None:
    broker = start_pulsar(settings={"maxActiveTransactionsPerCoordinator": 7})
    topic = create_topic(broker.admin_url, "kept")
    url, data = broker.service_url, broker.data
    assert data is not None
    client = official.Client(url, logger=official.ConsoleLogger(official.LoggerLevel.Error))
    producer = client.create_producer(topic)
    for number in range(10):
        producer.send(str(number).encode())
    configured = httpx.get(f"{broker.admin_url}/admin/v2/brokers/configuration/runtime", timeout=30).json()
    assert configured["maxActiveTransactionsPerCoordinator"] == "7"

    broker.kill()
    assert broker.pid is None
    assert processes_about(str(data)) == []
    broker.start()
    assert broker.service_url == url
    reader = client.create_reader(topic, official.MessageId.earliest)
    assert [reader.read_next(30_000).data() for _ in range(10)] == [str(number).encode() for number in range(10)]
    client.close()

    broker.stop()
    assert not data.exists()
    assert processes_about(str(data)) == []


def test_a_secured_one_has_no_port_without_tls_and_lets_in_only_those_with_a_token(
    eos: Eos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # which `doctor` asks after
    up = eos("up", "--ports", "auto", "--auth", "token", "--tls", "--data", tmp_path / "data")
    assert up.exit_code == 0, up.output
    mine = shown(eos)["default"]
    authority = f"{tmp_path}/data/authority.pem"
    assert (mine["token"], mine["tls_trust_certs"]) == (f"file:{tmp_path}/data/token", authority)
    assert {(tmp_path / "data" / name).stat().st_mode & 0o777 for name in ("broker.conf", "pulsar.log")} == {0o600}
    assert [str(mine[url]).partition(":")[0] for url in ("service_url", "admin_url")] == ["pulsar+ssl", "https"]
    listening = {one.laddr.port for one in connections(int(str(mine["pid"]))) if one.status == psutil.CONN_LISTEN}
    urls = ("service_url", "admin_url", "zookeeper", "bookkeeper")
    assert listening == {int(str(mine[url]).rpartition(":")[2]) for url in urls}

    coordinators = f"{mine['admin_url']}/admin/v3/transactions/coordinators"
    trusted = ssl.create_default_context(cafile=authority)
    assert httpx.get(coordinators, timeout=30, verify=trusted).status_code == 401
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        httpx.get(coordinators, timeout=30)
    printed = shlex.split(up.stdout.splitlines()[-1])
    for verb in (["doctor"], ["sink", "list"]):
        answer = CliRunner().invoke(typer_app, [*verb, *printed])
        assert answer.exit_code == 0, answer.output
    answer = CliRunner().invoke(typer_app, ["sink", "list", *printed[:-2]])
    assert "Check the trusted certificates (tls_trust_certs)" in str(answer.exception)

    def create(topic: str, partitions: str) -> Result:
        words = ["topics", "create", topic, "--partitions", partitions, *printed]
        return CliRunner().invoke(typer_app, words)

    assert "is made" in create("rows", "2").output
    assert "is there already" in create("rows", "2").output
    assert "with 2 partitions, not 3" in str(create("rows", "3").exception)
    assert "Its namespace does not exist" in str(create("no/such/rows", "0").exception)

    with Client(Cluster(str(mine["service_url"]), Credentials("token", str(mine["token"])), Tls(authority))) as client:
        producer = client.producer("rows-partition-1")
        producer.send_record(b"one", None)
        producer.close()

    def peeked() -> list[str]:
        shown = CliRunner().invoke(typer_app, ["peek", "rows", "--json", *printed]).stdout
        return [json.loads(line)["value"] for line in shown.splitlines()]

    assert peeked() == ["one"]
    assert eos("down", "--keep-data").exit_code == 0
    again = eos("up", "--data", tmp_path / "data")
    assert shlex.split(again.stdout.splitlines()[-1]) == printed
    assert peeked() == ["one"]
    assert eos("down").exit_code == 0
    assert list((tmp_path / "data").iterdir()) == []  # it was there before the second `up`


def test_sigterm_during_up_leaves_no_process_and_no_file(eos: Eos, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "eos", "local", "up", "--ports", "auto", "--data", str(tmp_path / "data")]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as up:
        until(lambda: processes_about(str(tmp_path / "data" / "zookeeper")), "the JVM was not started")
        up.terminate()
        assert up.wait(60) == 128 + signal.SIGTERM
    assert processes_about(str(tmp_path)) == []
    assert shown(eos) == {}
    assert not (tmp_path / "data").exists()

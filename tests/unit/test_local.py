"""A port that was free when it was picked, and that another process takes before Pulsar does."""

from __future__ import annotations

from pathlib import Path

import pytest

from eos.local import LocalCluster, LocalError, LocalPulsar, checks, jvm, pulsar
from eos.local.checks import PortTaken
from eos.local.settings import Ports

TAKEN = "java.net.BindException: Address already in use"


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(checks, "java", lambda: tmp_path)
    for module in ("pulsar", "cluster"):
        monkeypatch.setattr(f"eos.local.{module}.jars.classpath", lambda *asked: "")


class Starts(list[Ports]):
    """The ports of each start of a Pulsar. The first ends with this in its log, the others go well."""

    ends_with = TAKEN

    def listened_on(self, port: int) -> bool:
        """Whether another process has this port: since the first start it has that start's broker port."""
        return bool(self) and port == self[0].broker


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Starts:
    tried = Starts()

    def launch(started: LocalPulsar, *given: object) -> None:
        tried.append(started._ports())
        started.log.write_text(tried.ends_with if len(tried) == 1 else "")

    monkeypatch.setattr(LocalPulsar, "_launch", launch)
    monkeypatch.setattr(LocalPulsar, "_coordinators_answer", lambda started: not started.log.read_text())
    return tried


def test_a_port_that_is_taken_meanwhile_is_not_picked_again(
    tried: Starts, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("random.sample", lambda among, count: among)  # by chance a free one may be picked twice
    monkeypatch.setattr(checks, "can_bind", lambda port: not tried.listened_on(port))
    with LocalPulsar(data=tmp_path / "data") as started:
        assert [started.ports] == tried[1:]
    first, second = tried
    assert first.broker not in second.mapping().values()
    (told,) = caplog.messages
    assert "Starting again on other ports" in told
    assert TAKEN in told


def test_a_port_that_the_caller_names_is_not_changed(tried: Starts, tmp_path: Path) -> None:
    with pytest.raises(PortTaken, match="Address already in use"):
        LocalPulsar(ports=Ports.free(), data=tmp_path / "data").start()
    assert len(tried) == 1


def test_what_fails_for_another_reason_is_not_tried_again(tried: Starts) -> None:
    tried.ends_with = "No space left on device"
    with pytest.raises(LocalError, match="No space left"):
        LocalPulsar().start()
    assert len(tried) == 1


def test_the_ports_of_an_earlier_run_stay(tried: Starts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bookie's name holds a port, so that its data are of no use on another."""
    before = Ports.free()
    monkeypatch.setattr(pulsar, "recorded_ports", lambda home: before)
    with pytest.raises(PortTaken):
        LocalPulsar(data=tmp_path / "data").start()
    assert tried == [before]


def test_a_cluster_is_tried_on_other_ports_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tried = []

    def bring_up(cluster: LocalCluster, *given: object) -> None:
        tried.append(cluster._ports())
        if len(tried) < 3:
            raise PortTaken("another process listens on its port")

    monkeypatch.setattr(LocalCluster, "_bring_up", bring_up)
    with LocalCluster(data=tmp_path / "data") as started:
        assert tried[2] == started._ports()
    assert len(set(tried)) == 3
    tried.clear()
    monkeypatch.setattr("eos.local.folder._TRIES", 2)
    with pytest.raises(PortTaken):
        LocalCluster(data=tmp_path / "more").start()


def test_the_log_tells_whether_a_port_was_taken(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert type(jvm.start_failure("It ended", log)) is LocalError
    log.write_text(f"{TAKEN}\n")
    failure = jvm.start_failure("It ended", log)
    assert isinstance(failure, PortTaken)
    assert TAKEN in str(failure)

"""The container of a Pulsar image: its settings, addresses, and the words when it does not come up; without Docker."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testcontainers.core import container as theirs
from testcontainers.core.exceptions import ContainerStartException

from eos.config import Cluster
from eos.local import container as ours
from eos.local.container import CoordinatorWaitStrategy, PulsarContainer
from eos.local.settings import DEFAULTS

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def _no_docker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of Docker asks the daemon for its version as soon as it is made."""
    monkeypatch.setattr(theirs, "DockerClient", lambda **_: None)


class Target:
    """What a wait strategy sees of a container. Args: its states, the last of which stays."""

    def __init__(self, *states: str) -> None:
        self._states = list(states)

    def reload(self) -> None:
        if len(self._states) > 1:
            self._states.pop(0)

    @property
    def status(self) -> str:
        return self._states[0]

    def get_container_host_ip(self) -> str:
        return "there"

    def get_exposed_port(self, port: int) -> int:
        return port + 10_000

    def get_logs(self) -> tuple[bytes, bytes]:
        return b"".join(b"line %d\n" % number for number in range(40)), b"no metadata store\n"

    def get_wrapped_container(self) -> Any:
        raise AssertionError


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[tuple[str, str]]]:
    """Let a broker answer so, the last answer again and again; return the addresses that it is asked at."""

    def prepare(*wanted: bool) -> list[tuple[str, str]]:
        left, asked = list(wanted), []

        def ready(cluster: Cluster, admin_url: str, coordinators: int) -> bool:
            assert coordinators == 1
            asked.append((cluster.service_url, admin_url))
            return left.pop(0) if len(left) > 1 else left[0]

        monkeypatch.setattr(ours, "ready", ready)
        return asked

    return prepare


def strategy(seconds: int = 30) -> CoordinatorWaitStrategy:
    return CoordinatorWaitStrategy().with_poll_interval(0.001).with_startup_timeout(seconds)


def test_it_has_the_settings_of_eos_local_but_for_addresses() -> None:
    made = PulsarContainer("image:tag")
    given = {name.removeprefix("PULSAR_PREFIX_"): value for name, value in made.env.items()}
    assert given["transactionCoordinatorEnabled"] == "true"
    assert given["defaultRetentionTimeInMinutes"] == "-1"
    assert set(DEFAULTS) - set(given) == {
        "metadataStoreUrl",
        "configurationMetadataStoreUrl",
        "bindAddress",
        "advertisedAddress",
        "listeningInterface",
    }
    assert (made.image, made.ports) == ("image:tag", {"6650": None, "8080": None})


def test_a_setting_that_is_given_wins() -> None:
    name = "PULSAR_PREFIX_defaultRetentionTimeInMinutes"
    assert PulsarContainer(env={name: "5"}).env[name] == "5"
    assert PulsarContainer().with_env(name, "7").env[name] == "7"


def test_it_is_ready_when_its_coordinator_answers_at_the_ports_of_the_host(
    answers: Callable[..., list[tuple[str, str]]],
) -> None:
    asked = answers(False, False, True)
    strategy().wait_until_ready(Target("created", "created", "running"))
    assert asked == [("pulsar://there:16650", "http://there:18080")] * 3


def test_one_that_ends_is_told_at_once_with_the_end_of_its_log(answers: Callable[..., list[tuple[str, str]]]) -> None:
    answers(False)
    with pytest.raises(ContainerStartException, match="ended while starting") as caught:
        strategy().wait_until_ready(Target("running", "running", "exited"))
    assert str(caught.value).endswith("line 39\nno metadata store")
    assert "line 10\n" not in str(caught.value)


def test_one_that_does_not_answer_in_time_is_told(answers: Callable[..., list[tuple[str, str]]]) -> None:
    answers(False)
    with pytest.raises(TimeoutError, match=r"did not answer within 0 s\.\nThe last lines of its log:\n"):
        strategy(0).wait_until_ready(Target("running"))


def test_without_testcontainers_the_extra_is_named() -> None:
    lacks = "import sys; sys.modules['testcontainers'] = None; import eos.local.container"
    done = subprocess.run([sys.executable, "-c", lacks], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert 'pip install "spark-pulsar-eos[containers]"' in done.stderr.splitlines()[-1]

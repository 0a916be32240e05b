"""The fixtures for users' own tests, as pytest runs them in a project of theirs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

USERS_TEST = """
import pulsar


def test_rows_come_out(eos_pulsar, eos_topic, eos_rows):
    topic, other = eos_topic("out", partitions=2), eos_topic("out")
    assert topic != other
    client = pulsar.Client(eos_pulsar.service_url)
    producer = client.create_producer(topic)
    for number in range(3):
        producer.send(str(number).encode(), partition_key="one key")
    client.close()
    assert [(row.key, row.value) for row in eos_rows(topic)] == [(b"one key", str(n).encode()) for n in range(3)]
    assert eos_rows(other) == []
"""

STARTS_NONE = """
import eos.local


class Started:
    service_url, admin_url = "pulsar://started", "http://started"

    def __init__(self, tell):
        tell("starting")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        print("ended")


eos.local.LocalPulsar = Started
"""

CONTAINED = """
import docker.errors
import eos.local.container


class Container:
    def __init__(self, image):
        self.image = image

    def __enter__(self):
        if self.image == "none":
            raise docker.errors.ImageNotFound("there is no such image")
        print("starting", self.image)
        return self

    def __exit__(self, *_):
        print("ended")

    def get_service_url(self):
        return "pulsar://started"

    def get_admin_url(self):
        return "http://started"


eos.local.container.PulsarContainer = Container
"""


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a user's project, as one where this package is installed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "pytest_eos",
        "-p",
        "no:cacheprovider",
        "-s",
        *options,
        str(folder),
    ]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def users_tests(folder: Path, service_url: str, admin_url: str) -> subprocess.CompletedProcess[str]:
    """Run a user's tests on a Pulsar that runs already."""
    (folder / "test_of_a_user.py").write_text(USERS_TEST)
    return run(folder, "--eos-service-url", service_url, "--eos-admin-url", admin_url)


def test_a_pulsar_that_runs_already_is_taken(pulsar: Any, tmp_path: Path) -> None:
    done = users_tests(tmp_path, pulsar.service_url, pulsar.admin_url)
    assert done.returncode == 0, done.stdout


def test_addresses_of_no_pulsar_are_told_once_and_not_by_each_test(pulsar: Any, tmp_path: Path) -> None:
    for service_url, admin_url, said in (
        (pulsar.service_url, pulsar.service_url, "--eos-admin-url names no admin API: the admin URL"),
        (pulsar.service_url, "http://127.0.0.1:1", "--eos-admin-url names no admin API: GET http://127.0.0.1:1"),
        (pulsar.admin_url, pulsar.admin_url, "--eos-service-url names no Pulsar for these tests: "),
        ("pulsar://127.0.0.1:1", pulsar.admin_url, "--eos-service-url names no Pulsar for these tests: "),
    ):
        done = users_tests(tmp_path, service_url, admin_url)
        assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout
        assert said in done.stdout
        assert "Traceback" not in done.stdout


def test_without_one_a_pulsar_is_started_once_and_ended(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(STARTS_NONE)
    asserts = "(eos_pulsar):\n    assert eos_pulsar.service_url == 'pulsar://started'\n"
    (tmp_path / "test_of_a_user.py").write_text(f"def test_1{asserts}\n\ndef test_2{asserts}")
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout
    assert (done.stdout.count("starting"), done.stdout.count("ended")) == (1, 1)


def test_an_image_is_started_once_and_ended_and_one_that_can_not_be_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONTAINED)
    asserts = "(eos_pulsar):\n    assert eos_pulsar.service_url == 'pulsar://started'\n"
    (tmp_path / "test_of_a_user.py").write_text(f"def test_1{asserts}\n\ndef test_2{asserts}")
    done = run(tmp_path, "--eos-container", "image:tag")
    assert done.returncode == 0, done.stdout
    assert (done.stdout.count("starting image:tag"), done.stdout.count("ended")) == (1, 1)
    done = run(tmp_path, "--eos-container", "none")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout
    assert "--eos-container: no container of none could be started: there is no such image" in done.stdout
    done = run(tmp_path, "--eos-container", "a", "--eos-service-url", "pulsar://b", "--eos-admin-url", "http://b")
    assert "--eos-container starts a Pulsar, and --eos-service-url names one. Give one of the two." in done.stdout
    assert done.returncode != 0


def test_an_image_without_the_extra_is_told_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("import sys\n\nsys.modules['testcontainers'] = None\n")
    (tmp_path / "test_of_a_user.py").write_text("def test_1(eos_pulsar):\n    pass\n")
    done = run(tmp_path, "--eos-container", "image:tag")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout
    assert 'Install it with pip install "spark-pulsar-eos[containers]"' in done.stdout


def test_half_an_address_is_refused(tmp_path: Path) -> None:
    (tmp_path / "test_of_a_user.py").write_text("def test_1(eos_pulsar):\n    pass\n")
    done = run(tmp_path, "--eos-service-url", "pulsar://somewhere")
    assert done.returncode != 0
    assert "belong together. Give both, or neither" in done.stdout


def test_nothing_is_loaded_before_a_fixture_is_used(tmp_path: Path) -> None:
    (tmp_path / "test_of_a_user.py").write_text(
        "import sys\n\n\ndef test_1():\n    assert not {'eos', 'pyspark', 'pyarrow'} & sys.modules.keys()\n"
    )
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout

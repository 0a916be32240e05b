"""`PulsarContainer` and pytest's option --eos-container, on a real image: `make test-containers`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from testcontainers.core.exceptions import ContainerStartException

from eos.config import Cluster
from eos.local.container import CoordinatorWaitStrategy, PulsarContainer
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from tests.integration.test_pytest_eos import USERS_TEST, run

pytestmark = pytest.mark.container
ROOT = Path(__file__).resolve().parents[2]
CONTRACT = ("tests/contract/test_fencing.py", "tests/contract/test_transactions.py")


@pytest.fixture(scope="module")
def image() -> str:
    found = os.environ.get("EOS_TEST_IMAGE")
    if found is None:
        pytest.fail("EOS_TEST_IMAGE names no image. Run make test-containers")
    return found


@pytest.fixture(scope="module")
def container(image: str) -> Iterator[PulsarContainer]:
    with PulsarContainer(image) as started:
        yield started


def test_it_takes_transactions_and_keeps_topics_when_it_is_there(container: PulsarContainer) -> None:
    with Client(Cluster(container.get_service_url())) as client:
        assert client.coordinators() == 1
    with Admin(container.get_admin_url()) as admin:
        settings = admin.settings()
    kept = "transactionCoordinatorEnabled", "numTransactionReplayThreadPoolSize", "defaultRetentionTimeInMinutes"
    assert [settings[name] for name in kept] == ["true", "1", "-1"]


def test_the_contract_holds_in_a_container(container: PulsarContainer) -> None:
    addresses = {
        "EOS_TEST_SERVICE_URL": container.get_service_url(),
        "EOS_TEST_ADMIN_URL": container.get_admin_url(),
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *CONTRACT],
        cwd=ROOT,
        env={**os.environ, **addresses},
        capture_output=True,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0, done.stdout[-4_000:]
    print(done.stdout.splitlines()[-1])


def test_users_tests_get_a_container_of_their_own(image: str, tmp_path: Path) -> None:
    (tmp_path / "test_of_a_user.py").write_text(USERS_TEST)
    done = run(tmp_path, "--eos-container", image)
    assert done.returncode == 0, done.stdout


def test_an_image_that_is_not_there_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "test_of_a_user.py").write_text(USERS_TEST)
    done = run(tmp_path, "--eos-container", "localhost/eos-pulsar:none")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout
    assert "--eos-container: no container of localhost/eos-pulsar:none could be started: " in done.stdout
    assert "Traceback" not in done.stdout


def test_a_pulsar_that_does_not_come_up_is_told_with_the_end_of_its_log(image: str) -> None:
    ended = PulsarContainer(image).with_env("PULSAR_PREFIX_metadataStoreUrl", "nothing:that:is")
    with pytest.raises(ContainerStartException, match="ended while starting") as caught:
        ended.__enter__()
    assert "nothing:that:is" in str(caught.value)
    late = PulsarContainer(image).waiting_for(CoordinatorWaitStrategy().with_startup_timeout(0))
    with pytest.raises(TimeoutError, match="did not answer within 0 s"):
        late.__enter__()

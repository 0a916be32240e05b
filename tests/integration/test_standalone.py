"""Sink and `bk://` on a Spark standalone cluster, with the package shipped to executors that know nothing of it.

Master, workers and executors see none of this process's environment; `spark-submit` runs in a folder of its own, with
a Python that has the package by the shipped environment alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from statestore.drills.judge.oracle import messages_of
from statestore.drills.standalone import HOST, StandaloneCluster, spark_home
from tests.standalone import job
from tests.standalone.shipping import THIRD_PARTY, Shipped, made_as_documented, made_quickly

pytestmark = [pytest.mark.slow, pytest.mark.soak, pytest.mark.timeout(900)]  # `make cluster-drills` runs all of them

FILES = (("a", "b", "a"), ("c", "a", "b"), ("b", "d", "d"))
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    with StandaloneCluster(tmp_path_factory.mktemp("standalone"), cores=1, timeout_s=60) as started:
        yield started


@pytest.fixture(scope="module", params=["quickly", "as documented"])
def shipped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shipped:
    make: Callable[[Path], Shipped] = made_quickly if request.param == "quickly" else made_as_documented
    return make(tmp_path_factory.mktemp("shipped"))


@dataclass(frozen=True)
class Submitted:
    code: int
    said: str
    topic: str
    result: dict[str, Any]


Submit = Callable[..., Submitted]


@pytest.fixture
def submit(pulsar: Any, make_topic: Any, cluster: StandaloneCluster, shipped: Shipped, tmp_path: Path) -> Submit:
    """Submit the job with these words before its own, and wait for its end."""

    def run(*words: object) -> Submitted:
        name = f"s{uuid.uuid4().hex[:10]}"
        topic = make_topic("standalone", partitions=2)
        given, result = tmp_path / "input", tmp_path / "result.json"
        given.mkdir()
        for number, lines in enumerate(FILES):
            (given / f"{number}.csv").write_text("".join(f"{word}\n" for word in lines))
        confs = {
            "spark.driver.host": HOST,
            "spark.cores.max": 2,
            "spark.executor.memory": "512m",
            "spark.sql.shuffle.partitions": 2,
            "spark.task.maxFailures": 1,
            "spark.ui.enabled": "false",
            "spark.executor.extraJavaOptions": " ".join(QUICK),
            "spark.driver.extraJavaOptions": " ".join(QUICK),
            "spark.pyspark.driver.python": shipped.environment / "bin" / "python",
        }
        line = [
            *(spark_home() / "bin" / "spark-submit", "--master", cluster.master),
            *(word for key, value in confs.items() for word in ("--conf", f"{key}={value}")),
            *("--driver-class-path", shipped.jar),
            *words,
            *(job.__file__, pulsar.service_url, topic, name, given, f"bk://{pulsar.zookeeper}/{name}", result),
        ]
        done = subprocess.run(
            [str(word) for word in line],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SPARK_LOCAL_IP": HOST},
            capture_output=True,
            text=True,
            timeout=300,  # a job that is done must end
        )
        seen = json.loads(result.read_text()) if result.exists() else {}
        return Submitted(done.returncode, done.stdout + done.stderr, topic, seen)

    return run


def expected() -> Counter[str]:
    """Each micro-batch tells of the words in its file how often they have come so far."""
    total: Counter[str] = Counter()
    told: Counter[str] = Counter()
    for lines in FILES:
        total.update(lines)
        told.update(f"{word}:{total[word]}" for word in set(lines))
    return told


def expect_exact(pulsar: Any, done: Submitted) -> None:
    assert done.code == 0, done.said[:6_000]
    assert done.result["committed"] == len(FILES)

    rows = (json.loads(message.data()) for message in messages_of(pulsar.service_url, done.topic))
    assert Counter(f"{row['word']}:{row['n']}" for row in rows) == expected()


ARCHIVE = ("--conf", "spark.pyspark.python=./environment/bin/python", "--archives")
# As on nodes where an administrator has installed what the package depends on, and not the package.
THIRD_PARTY_ALONE = (
    *("--conf", f"spark.pyspark.python={Path(sys.base_prefix) / 'bin' / 'python3'}"),
    *("--conf", f"spark.executorEnv.PYTHONPATH={THIRD_PARTY}"),
)


def test_an_archived_environment_and_a_jar(
    pulsar: Any, submit: Submit, shipped: Shipped, cluster: StandaloneCluster
) -> None:
    done = submit(*ARCHIVE, f"{shipped.archive}#environment", "--jars", shipped.jar)
    expect_exact(pulsar, done)
    for task in done.result["tasks"]:  # on a worker, in a folder of the executor's own
        assert Path(task["cwd"]).is_relative_to(cluster.folder)
        assert Path(task["python"]).is_relative_to(cluster.folder)
        assert Path(task["cwd"], task["eos"]).is_relative_to(cluster.folder)


@pytest.mark.soak
def test_the_modules_alone_where_the_nodes_have_what_they_depend_on(
    pulsar: Any, submit: Submit, shipped: Shipped, cluster: StandaloneCluster
) -> None:
    done = submit(*THIRD_PARTY_ALONE, "--py-files", shipped.modules, "--jars", shipped.jar)
    expect_exact(pulsar, done)
    for task in done.result["tasks"]:
        assert Path(task["cwd"], task["eos"]).is_relative_to(cluster.folder)


def test_nothing_shipped_is_nothing_found(submit: Submit, shipped: Shipped) -> None:
    """So the executors of the tests above have the package from nowhere else."""
    done = submit(*THIRD_PARTY_ALONE, "--jars", shipped.jar)
    assert done.code != 0
    assert "No module named 'eos'" in done.said, done.said[:6_000]
    assert not done.result


def test_cluster_deploy_mode_is_refused_by_spark(submit: Submit, shipped: Shipped) -> None:
    """docs/deploy.md says so, and what to do instead."""
    done = submit("--deploy-mode", "cluster", "--jars", shipped.jar)
    assert done.code != 0
    assert "Cluster deploy mode is currently not supported for python applications on standalone clusters" in done.said

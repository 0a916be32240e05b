"""Fetching the jars, with a Maven that is a shell script: whole or not at all."""

from __future__ import annotations

import dataclasses
import threading
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from eos.local import LocalError, jars
from eos.local.places import cache

JAVA = "echo 'openjdk version \"17.0.1\"' >&2"
ANSWERING_MAVEN = """
echo "$@" >> {log}
for word in "$@"; do case "$word" in -Dmdep.outputFile=*) out=${{word#*=}};; esac; done
echo "Downloaded from central: https://x/a-1.jar (1.5 MB at 3 MB/s)"
printf '%s' "{entries}" > "$out"
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a PATH with a Java of version 17."""
    monkeypatch.setenv("EOS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    put(tmp_path / "bin/java", JAVA)
    return tmp_path


def put(path: Path, script: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def maven_with(machine: Path, *names: str) -> Path:
    """Install a Maven that finds these jars; returns the file that counts its runs."""
    repository = machine / "m2"
    for name in names:
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(name)
    entries = ":".join(str(repository / name) for name in names)
    put(machine / "bin/mvn", ANSWERING_MAVEN.format(log=machine / "runs", entries=entries))
    return machine / "runs"


def test_the_jars_are_fetched_once_and_kept(machine: Path) -> None:
    runs = maven_with(machine, "a/a-1.jar", "b/b-2.jar")
    told: list[str] = []
    path = jars.classpath(told.append)
    assert path == f"{jars.folder()}/*"
    assert {jar.name for jar in jars.folder().iterdir()} == {"a-1.jar", "b-2.jar"}
    assert (jars.folder() / "a-1.jar").read_text() == "a/a-1.jar"
    assert jars.classpath() == path
    assert len(runs.read_text().splitlines()) == 1
    assert "2 jars" in told[-1]


def test_jars_on_another_disk_are_copied(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven_with(machine, "a/a-1.jar")

    def refuse(source: Path, target: Path) -> None:
        raise OSError(18, "another disk")

    monkeypatch.setattr("os.link", refuse)
    jars.classpath()
    assert (jars.folder() / "a-1.jar").read_text() == "a/a-1.jar"


def test_a_maven_that_fails_leaves_nothing_and_its_reason_is_said(machine: Path) -> None:
    put(machine / "bin/mvn", "echo '[ERROR] no route to repo'; echo '[ERROR] more'; exit 1")
    with pytest.raises(LocalError, match=r"could not fetch Pulsar 4\.2\.4: no route to repo"):
        jars.classpath()
    assert [path.name for path in cache().iterdir()] == ["jars.lock"]


def test_a_silent_failure_names_the_exit_code(machine: Path) -> None:
    put(machine / "bin/mvn", "exit 3")
    with pytest.raises(LocalError, match="ended with 3"):
        jars.classpath()


def test_an_interrupted_fetch_leaves_no_half_cache_and_the_next_one_works(machine: Path) -> None:
    maven_with(machine, "a/a-1.jar", "b/b-2.jar")

    def interrupt(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jars.classpath(interrupt)
    assert not jars.folder().exists()
    half = jars.folder().with_name(jars.folder().name + ".killed")
    (half / "lib").mkdir(parents=True)
    jars.classpath()
    assert len(list(jars.folder().iterdir())) == 2
    assert not half.exists()


def test_two_jars_of_one_name_are_refused(machine: Path) -> None:
    maven_with(machine, "a/same.jar", "b/same.jar")
    with pytest.raises(LocalError, match="two different jars of one name"):
        jars.classpath()


def test_two_fetches_at_once_run_maven_once(machine: Path) -> None:
    runs = maven_with(machine, "a/a-1.jar")
    threads = [threading.Thread(target=jars.classpath) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(runs.read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("Downloaded from central: https://h/x-1.jar (2.5 MB at 1.0 MB/s)\n", (1, 2.5e6)),
        ("[INFO] Downloaded from central: https://h/x-1.jar (17 kB at 1,0 MB/s)\n", (1, 17e3)),
        ("Downloaded from central: https://h/x-1.jar (812 B at 1 kB/s)\n", (1, 812)),
        ("Downloaded from central: https://h/x-1.pom (17 kB at 1.0 MB/s)\n", (0, 0)),
        ("Downloading from central: https://h/x-1.jar\n", (0, 0)),
    ],
)
def test_progress_is_read_off_what_maven_prints(line: str, read: tuple[int, float]) -> None:
    assert jars.downloaded(line) == read


def test_the_pom_imports_what_the_broker_needs_to_start() -> None:
    names = {"m": "http://maven.apache.org/POM/4.0.0"}
    root = ET.fromstring(jars.POM)
    managed = root.find("m:dependencyManagement/m:dependencies/m:dependency", names)
    assert managed is not None
    assert [part.text for part in managed] == ["io.opentelemetry", "opentelemetry-bom", "1.62.0", "pom", "import"]
    broker = root.find("m:dependencies/m:dependency", names)
    assert broker is not None
    assert [part.text for part in broker] == ["org.apache.pulsar", "pulsar-broker", "4.2.4"]


def test_another_pom_gets_another_folder(machine: Path) -> None:
    other = dataclasses.replace(jars.PULSAR, pom=jars.POM.replace("4.2.4", "4.2.5"))
    assert other.folder() != jars.folder()
    assert other.folder().name.startswith("pulsar-4.2.4-")


def test_each_version_has_its_own_pom_and_folder(machine: Path) -> None:
    folders = {jars.pulsar(version).folder() for version in jars.VERSIONS}
    assert len(folders) == len(jars.VERSIONS)
    assert ["jackson-annotations" in jars.pom(version) for version in jars.VERSIONS] == [False, False, True]


def test_a_version_that_was_not_tried_is_refused() -> None:
    with pytest.raises(LocalError, match=r"Pulsar 3\.0\.0 was not tried here\. These were: 4\.0\.0, 4\.2\.4"):
        jars.pulsar("3.0.0")

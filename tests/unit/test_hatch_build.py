"""What the wheel's build hook refuses, on machines made of fake programs."""

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any, ClassVar

import pytest

import hatch_build
from hatch_build import IN_THE_WHEEL, JarHook, JarMissing, build_jar


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH, empty; no JAVA_HOME."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return folder


@pytest.fixture
def module(tmp_path: Path) -> Path:
    folder = tmp_path / "statestore" / "java"
    folder.mkdir(parents=True)
    return folder


def put(folder: Path, name: str, script: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_a_java_home_without_a_compiler_is_named(
    programs: Path, module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(programs, "javac", "echo javac 17.0.1")  # Maven would take JAVA_HOME's, not this one
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jre"))
    with pytest.raises(JarMissing, match=r"no `javac` in JAVA_HOME \(.*/jre\)"):
        build_jar(module)


JDK = "echo javac 17.0.1"
INSTALL = "Install a JDK 17 or newer and Maven"


@pytest.mark.parametrize(
    ("javac", "mvn", "words"),
    [
        pytest.param(None, "exit 0", f"no `javac` on the PATH.*{INSTALL}", id="no JDK"),
        *(
            pytest.param(f"echo {said}", None, f"a JDK 17 or newer; .*/javac says {said or 'no version'}", id=said)
            for said in ("javac 11.0.2", "javac 1.8.0_402", "")
        ),
        pytest.param(JDK, None, f"no `mvn` on the PATH.*{INSTALL}", id="no Maven"),
        pytest.param(JDK, "echo '[ERROR] no such artifact' >&2; exit 1", "no such artifact", id="Maven fails"),
    ],
)
def test_what_is_missing_to_build_the_jar_is_named(
    programs: Path, module: Path, javac: str | None, mvn: str | None, words: str
) -> None:
    for name, script in (("javac", javac), ("mvn", mvn)):
        if script is not None:
            put(programs, name, script)
    with pytest.raises(JarMissing, match=words):
        build_jar(module)


class Core:
    name = "spark-pulsar-eos"
    license_expression = "Apache-2.0"
    dependencies: ClassVar = ["typer>=0.15", "google_crc32c>=1.6"]
    optional_dependencies: ClassVar = {"drills": ["spark-pulsar-eos[spark]", "typer"], "spark": ["pyspark<4.4,>=4.3"]}


class Metadata:
    version = "9.8.7"
    core = Core


def hook(root: Path) -> JarHook:
    return JarHook(str(root), {}, None, Metadata, str(root), "wheel")  # type: ignore[arg-type]


@pytest.fixture
def built(programs: Path, module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the hook adds to a wheel of the real pom, with a Maven that writes five bytes for the jar."""
    put(tmp_path / "jdk" / "bin", "javac", "echo javac 17.0.1")
    put(programs, "mvn", "printf bytes > target/eos-bk.jar")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    real = Path(hatch_build.__file__).parent / "statestore" / "java"
    (module / "target").mkdir()
    for name in ("pom.xml", "src/main/resources/META-INF/THIRD-PARTY.txt"):
        (module / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(real / name, module / name)
    build_data: dict[str, Any] = {"force_include": {}, "sbom_files": []}
    hook(tmp_path).initialize("standard", build_data)
    return build_data


def test_the_jar_goes_into_the_wheel(built: dict[str, Any], module: Path) -> None:
    assert built["force_include"] == {str(module / "target" / "eos-bk.jar"): IN_THE_WHEEL}
    assert (module / "target" / "eos-bk.jar").read_text() == "bytes", "Maven ran in the module's folder"


def test_the_sbom_lists_the_jar_with_its_works_and_the_dependencies_once(built: dict[str, Any]) -> None:
    (path,) = built["sbom_files"]
    sbom = json.loads(Path(path).read_text())
    jar, *needed = sbom["components"]
    assert jar["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(b"bytes").hexdigest()}]
    assert {"bookkeeper-server", "protobuf-java", "commons-configuration2"} <= {
        one["name"] for one in jar["components"]
    }
    assert not {"hadoop-common", "netty-buffer", "rocksdbjni"} & {one["name"] for one in jar["components"]}
    assert [(one["name"], one["scope"]) for one in needed] == [
        ("google-crc32c", "required"),
        ("typer", "required"),
        ("pyspark", "optional"),
    ]
    assert sbom["dependencies"][0]["dependsOn"] == [jar["bom-ref"], "pkg:pypi/google-crc32c", "pkg:pypi/typer"]


def test_two_sboms_of_one_source_are_the_same_bytes(built: dict[str, Any], tmp_path: Path) -> None:
    (path,) = built["sbom_files"]
    first = Path(path).read_bytes()
    hook(tmp_path).initialize("standard", {"force_include": {}, "sbom_files": []})
    assert Path(path).read_bytes() == first


def test_an_editable_installation_needs_neither(programs: Path, tmp_path: Path) -> None:
    build_data: dict[str, Any] = {"force_include": {}, "sbom_files": []}
    hook(tmp_path).initialize("editable", build_data)
    assert build_data == {"force_include": {}, "sbom_files": []}


def test_the_jar_is_where_statestore_looks_for_it() -> None:
    from eos.spark import jar

    assert f"statestore/jars/{jar.NAME}" == IN_THE_WHEEL
    assert Path(hatch_build.__file__).parent == Path(__file__).parents[2]


def test_each_work_that_the_jar_holds_is_named_with_its_licence_and_version() -> None:
    java = Path(hatch_build.__file__).parent / "statestore" / "java"
    pom = (java / "pom.xml").read_text()
    shaded = re.findall(r"<include>([^<:]+:[^<]+)</include>", pom)
    text = (java / "src/main/resources/META-INF/THIRD-PARTY.txt").read_text()
    named = re.findall(r"^(\S+:\S+) (\S+) +(?:Apache License 2.0|BSD 3-Clause License)$", text, re.MULTILINE)
    assert sorted(work for work, _ in named) == sorted(shaded)
    versions = set(re.findall(r"<(?:version|bookkeeper\.version)>([^<]+)<", pom))
    assert {version for _, version in named} <= versions


@pytest.mark.parametrize("package", ["com.google.common", "com.google.protobuf", "com.google.thirdparty"])
def test_what_older_sparks_have_in_another_version_is_renamed_in_the_jar(package: str) -> None:
    """Spark 3.5 has Guava 14, with which BookKeeper's client can't run."""
    pom = (Path(hatch_build.__file__).parent / "statestore" / "java" / "pom.xml").read_text()
    renamed = dict(re.findall(r"<pattern>([^<]+)</pattern>\s*<shadedPattern>([^<]+)<", pom))
    assert renamed.get(package, "").startswith("eos.bk.shaded.")

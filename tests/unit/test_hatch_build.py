"""What the wheel's build hook refuses, on machines made of fake programs."""

import re
from pathlib import Path

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


def test_without_a_jdk_it_says_so(programs: Path, module: Path) -> None:
    put(programs, "mvn", "exit 0")
    with pytest.raises(JarMissing, match=r"no `javac` on the PATH.*Install a JDK 17 or newer and Maven"):
        build_jar(module)


def test_a_java_home_without_a_compiler_is_named(
    programs: Path, module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(programs, "javac", "echo javac 17.0.1")  # Maven would take JAVA_HOME's, not this one
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jre"))
    with pytest.raises(JarMissing, match=r"no `javac` in JAVA_HOME \(.*/jre\)"):
        build_jar(module)


@pytest.mark.parametrize("version", ["javac 11.0.2", "javac 1.8.0_402", ""])
def test_an_old_jdk_is_refused(programs: Path, module: Path, version: str) -> None:
    put(programs, "javac", f"echo {version}")
    with pytest.raises(JarMissing, match=f"needs a JDK 17 or newer; .*/javac says {version or 'no version'}"):
        build_jar(module)


def test_without_maven_it_says_so(programs: Path, module: Path) -> None:
    put(programs, "javac", "echo javac 17.0.1")
    with pytest.raises(JarMissing, match=r"no `mvn` on the PATH.*Install a JDK 17 or newer and Maven"):
        build_jar(module)


def test_what_maven_says_is_passed_on(programs: Path, module: Path) -> None:
    put(programs, "javac", "echo javac 21")
    put(programs, "mvn", "echo '[ERROR] no such artifact' >&2; exit 1")
    with pytest.raises(JarMissing, match=r"no such artifact"):
        build_jar(module)


def hook(root: Path) -> JarHook:
    return JarHook(str(root), {}, None, None, str(root), "wheel")  # type: ignore[arg-type]


def test_the_jar_goes_into_the_wheel(programs: Path, module: Path, tmp_path: Path) -> None:
    put(tmp_path / "jdk" / "bin", "javac", "echo javac 17.0.1")
    put(programs, "mvn", 'case "$*" in *package*) echo > built;; esac')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
        build_data: dict[str, dict[str, str]] = {"force_include": {}}
        hook(tmp_path).initialize("standard", build_data)
    assert build_data["force_include"] == {str(module / "target" / "eos-bk.jar"): IN_THE_WHEEL}
    assert (module / "built").exists(), "Maven ran in the module's folder"


def test_an_editable_installation_needs_neither(programs: Path, tmp_path: Path) -> None:
    build_data: dict[str, dict[str, str]] = {"force_include": {}}
    hook(tmp_path).initialize("editable", build_data)
    assert build_data == {"force_include": {}}


def test_the_jar_is_where_statestore_looks_for_it() -> None:
    from statestore.hadoop import jar

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

"""Jars fetched by Maven once and kept in the cache folder: Pulsar's, above all.

A set's folder appears under its final name only when it is complete, so an interrupted
fetch leaves no half cache. Jars that Maven keeps on the same disk are linked, not copied.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from eos.local import checks
from eos.local.places import Tell, cache, locked, quiet

PULSAR_VERSION = "4.2.4"
VERSIONS = ("4.0.0", PULSAR_VERSION, "5.0.0-M1")
"""The versions of Pulsar whose jars were fetched and started; `eos local up --version` takes no others."""

OPENTELEMETRY_VERSION = "1.62.0"  # without it the broker stops with NoSuchMethodError
DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
_TELL_EVERY_S = 2.0

_OPENTELEMETRY = f"""      <dependency>
        <groupId>io.opentelemetry</groupId>
        <artifactId>opentelemetry-bom</artifactId>
        <version>{OPENTELEMETRY_VERSION}</version>
        <type>pom</type>
        <scope>import</scope>
      </dependency>
"""
# Jackson's own bill of materials names a version of its annotations that was never released.
_JACKSON = """      <dependency>
        <groupId>com.fasterxml.jackson.core</groupId>
        <artifactId>jackson-annotations</artifactId>
        <version>2.21</version>
      </dependency>
"""
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>eos.local</groupId>
  <artifactId>pulsar</artifactId>
  <version>1</version>
  <dependencyManagement>
    <dependencies>
{managed}    </dependencies>
  </dependencyManagement>
  <dependencies>
    <dependency>
      <groupId>org.apache.pulsar</groupId>
      <artifactId>pulsar-broker</artifactId>
      <version>{version}</version>
    </dependency>
  </dependencies>
</project>
"""


def pom(version: str) -> str:
    """Return the pom that depends on a broker of this version."""
    return _POM.format(version=version, managed=_OPENTELEMETRY + (_JACKSON if major(version) >= 5 else ""))


def major(version: str) -> int:
    """Return 5 of "5.0.0-M1"."""
    return int(version.partition(".")[0])


POM = pom(PULSAR_VERSION)


@dataclass(frozen=True, slots=True)
class Jars:
    """Something that runs in a JVM, with all jars that it needs.

    Attributes:
        what: its name and version, for people and for the folder.
        pom: depends on it; Maven resolves the rest.
        about_jars, about_bytes: how many and how large they are together, for the progress and the disk.
    """

    what: str
    pom: str
    about_jars: int
    about_bytes: int

    def folder(self) -> Path:
        """The folder of the jars, there or not. Its name changes with the pom."""
        stem = self.what.lower().replace(" ", "-")
        return cache() / f"{stem}-{hashlib.sha256(self.pom.encode()).hexdigest()[:8]}"

    def classpath(self, tell: Tell = quiet) -> str:
        """A Java class path with all of them; fetches them when they are not there.

        Raises:
            LocalError: Java, Maven, disk space or the network is missing.
        """
        target = self.folder()
        if not target.exists():
            with locked("jars", tell):
                if not target.exists():
                    with checks.disk_errors(f"Fetching the jars of {self.what}"):
                        self._fetch(target, tell)
        return f"{target}{os.sep}*"

    def _fetch(self, target: Path, tell: Tell) -> None:
        checks.java()
        mvn = checks.maven()
        checks.free_space(target, 3 * self.about_bytes, f"Fetching {self.what}")
        for leftover in target.parent.glob(f"{target.name}.*"):
            shutil.rmtree(leftover)
        scratch = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
        try:
            jars = self._resolve(mvn, scratch, tell)
            lib = scratch / "lib"
            lib.mkdir()
            for jar in jars:
                _link(jar, lib / jar.name)
            held = sum(jar.stat().st_size for jar in lib.iterdir())
            lib.rename(target)
            tell(f"{self.what}: {len(jars)} jars, {held // checks.MEGABYTE} MB in {target}")
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _resolve(self, mvn: Path, scratch: Path, tell: Tell) -> list[Path]:
        """Let Maven find the jars and bring them into its own repository; follow what it prints."""
        (scratch / "pom.xml").write_text(self.pom)
        answer = scratch / "classpath"
        goal = [f"{DEPENDENCY_PLUGIN}:build-classpath", f"-Dmdep.outputFile={answer}", "-DincludeScope=runtime"]
        about = self.about_bytes // checks.MEGABYTE
        tell(f"Asking Maven for {self.what}: about {self.about_jars} jars, {about} MB")
        count, size, told = 0, 0.0, time.monotonic()
        complaints: list[str] = []
        with subprocess.Popen(
            [mvn, "-B", "-f", scratch / "pom.xml", *goal],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            try:
                for line in process.stdout or ():
                    if line.startswith("[ERROR]"):
                        complaints.append(line.removeprefix("[ERROR]").strip())
                    count_of_line, size_of_line = downloaded(line)
                    count, size = count + count_of_line, size + size_of_line
                    if count_of_line and time.monotonic() - told > _TELL_EVERY_S:
                        told = time.monotonic()
                        here = int(size // checks.MEGABYTE)
                        tell(f"  {count} of about {self.about_jars} jars, {here} of {about} MB here")
            except BaseException:
                process.terminate()
                raise
        if process.returncode != 0 or not answer.exists():
            reason = next((line for line in complaints if line), f"{mvn} ended with {process.returncode}")
            raise checks.LocalError(f"Maven could not fetch {self.what}: {reason}")
        jars = [Path(entry) for entry in answer.read_text().strip().split(os.pathsep)]
        if len({jar.name for jar in jars}) != len(jars):
            raise checks.LocalError(f"Maven found two different jars of one name for {self.what}")
        return jars


def pulsar(version: str = PULSAR_VERSION) -> Jars:
    """The jars of a version of Pulsar. Raises LocalError for one that was not tried."""
    if version not in VERSIONS:
        raise checks.LocalError(f"Pulsar {version} was not tried here. These were: {', '.join(VERSIONS)}")
    return Jars(f"Pulsar {version}", pom(version), about_jars=330, about_bytes=243 * checks.MEGABYTE)


PULSAR = pulsar()


def folder() -> Path:
    """The folder of Pulsar's jars, there or not."""
    return PULSAR.folder()


def classpath(tell: Tell = quiet, version: str = PULSAR_VERSION) -> str:
    """A Java class path with the broker, the Java client and BookKeeper; raises `LocalError` as `Jars.classpath`."""
    return pulsar(version).classpath(tell)


def downloaded(line: str) -> tuple[int, float]:
    """Read how many jars (0 or 1) and bytes a line of Maven's output says have arrived."""
    match = re.search(r"Downloaded from \S+: \S+\.jar \(([\d.,]+) ([kMG]?)B", line)
    if match is None:
        return 0, 0.0
    return 1, float(match[1].replace(",", ".")) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[match[2]]


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another disk, or a file system without links
        shutil.copyfile(source, target)

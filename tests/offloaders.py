"""Pulsar's own offloaders, as Maven has them: each jar is a NAR, with all that it needs inside."""

from __future__ import annotations

import shutil
from pathlib import Path

from eos.local import checks
from eos.local.jars import Jars
from eos.local.places import Tell, quiet

VERSION = "4.0.8"  # the newest one that was published; a broker 4.2.4 loads it

_DEPENDENCY = """    <dependency>
      <groupId>org.apache.pulsar</groupId>
      <artifactId>tiered-storage-{kind}</artifactId>
      <version>{version}</version>
    </dependency>
"""
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>eos.local</groupId>
  <artifactId>offloaders</artifactId>
  <version>1</version>
  <dependencies>
{"".join(_DEPENDENCY.format(kind=kind, version=VERSION) for kind in ("jcloud", "file-system"))}  </dependencies>
</project>
"""
JARS = Jars(f"Pulsar offloaders {VERSION}", POM, about_jars=100, about_bytes=130 * checks.MEGABYTE)


def offloaders(folder: Path, tell: Tell = quiet) -> Path:
    """Put the NARs of both offloaders into a folder, for the broker's setting offloadersDirectory, and return it.

    Raises LocalError: Java, Maven, disk space or the network is missing.
    """
    JARS.classpath(tell)
    folder.mkdir(parents=True, exist_ok=True)
    for jar in JARS.folder().glob("tiered-storage-*.jar"):
        shutil.copyfile(jar, folder / f"{jar.stem}.nar")
    return folder

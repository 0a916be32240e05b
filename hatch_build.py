"""Builds the jar of the file system `bk://` with Maven when a wheel is made, and puts it into the wheel.

An editable installation has no jar from here, so that work on `eos` alone needs no JDK: `make jar` builds it then.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OLDEST_JDK = 17
IN_THE_WHEEL = "statestore/jars/eos-bk.jar"
REMEDY = (
    f"Install a JDK {OLDEST_JDK} or newer and Maven (on Debian and Ubuntu the packages openjdk-17-jdk-headless and "
    "maven), then build again; or install a published wheel, which holds the jar; or install the source tree with "
    "`pip install --editable .`, which leaves bk:// out."
)


class JarMissing(Exception):
    """The wheel can't be built: no JDK, no Maven, or Maven failed."""


class JarHook(BuildHookInterface[Any]):
    """Hatchling calls it for each wheel; `version` is "editable" or "standard"."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the jar, freshly built, to what the wheel holds."""
        if version != "editable":
            build_data["force_include"][str(build_jar(Path(self.root) / "statestore" / "java"))] = IN_THE_WHEEL


def build_jar(module: Path) -> Path:
    """Build the Maven module without its tests and return its jar.

    Raises:
        JarMissing: what is missing or went wrong, and what to do.
    """
    check_jdk()
    maven = shutil.which("mvn")
    if maven is None:
        raise JarMissing(f"The jar of bk:// is built by Maven, and there is no `mvn` on the PATH. {REMEDY}")
    command = [maven, "--batch-mode", "--quiet", "package", "-Dmaven.test.skip=true"]
    done = subprocess.run(command, cwd=module, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise JarMissing(f"Maven could not build the jar of bk:// in {module}; it said:\n{done.stdout[-4000:]}")
    return module / "target" / "eos-bk.jar"


def check_jdk() -> None:
    """Refuse a machine whose Java compiler is missing or too old; Maven's own message for it is hard to read.

    Raises:
        JarMissing: what was looked for and found.
    """
    home = os.environ.get("JAVA_HOME")
    javac = shutil.which("javac", path=str(Path(home, "bin"))) if home else shutil.which("javac")
    if javac is None:
        place = f"in JAVA_HOME ({home})" if home else "on the PATH, and JAVA_HOME is not set"
        raise JarMissing(f"The jar of bk:// needs a JDK to be built, and there is no `javac` {place}. {REMEDY}")
    said = subprocess.run([javac, "-version"], capture_output=True, text=True)
    version = re.search(r"javac (\d+)", said.stdout + said.stderr)
    if version is None or int(version[1]) < OLDEST_JDK:
        found = (said.stdout + said.stderr).strip() or "no version"
        raise JarMissing(f"The jar of bk:// needs a JDK {OLDEST_JDK} or newer; {javac} says {found}. {REMEDY}")

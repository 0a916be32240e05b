"""Builds the jar of the file system `bk://` with Maven when a wheel is made, and puts it into the wheel.

The wheel also gets a CycloneDX list of what the jar holds and what the package depends on (PEP 770).
An editable installation has no jar from here, so that work on `eos` alone needs no JDK: `make jar` builds it then.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OLDEST_JDK = 17
IN_THE_WHEEL = "statestore/jars/eos-bk.jar"
SBOM_NAME = "spark-pulsar-eos.cdx.json"
SPDX = {"Apache License 2.0": "Apache-2.0", "BSD 3-Clause License": "BSD-3-Clause"}
"""The licences that THIRD-PARTY.txt names, as SPDX writes them."""
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
        if version == "editable":
            return
        module = Path(self.root) / "statestore" / "java"
        jar = build_jar(module)
        build_data["force_include"][str(jar)] = IN_THE_WHEEL
        core = self.metadata.core
        sbom = jar.with_name(SBOM_NAME)
        document = bill_of_materials(
            core.name,
            self.metadata.version,
            core.license_expression,
            module,
            jar,
            core.dependencies,
            core.optional_dependencies,
        )
        sbom.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        build_data["sbom_files"].append(str(sbom))


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


def shaded_works(module: Path) -> list[tuple[str, str, str, str]]:
    """Return group, artifact, version and SPDX licence of each work in the jar, in order.

    The pom keeps transitive dependencies out of the jar, so the jar holds the pom's own dependencies that the shade
    plugin includes and that Spark does not bring.
    """
    space = "{http://maven.apache.org/POM/4.0.0}"
    pom = ElementTree.parse(module / "pom.xml").getroot()
    properties = {one.tag.removeprefix(space): one.text or "" for one in pom.iterfind(f"{space}properties/*")}
    included = {one.text or "" for one in pom.iterfind(f".//{space}artifactSet/{space}includes/{space}include")}
    third_party = (module / "src/main/resources/META-INF/THIRD-PARTY.txt").read_text(encoding="utf-8")
    licences = dict(re.findall(r"^(\S+:\S+) \S+ +(\S.*)$", third_party, re.MULTILINE))
    works = []
    for dependency in pom.iterfind(f"{space}dependencies/{space}dependency"):
        group, artifact, version, scope = (
            dependency.findtext(f"{space}{field}", "") for field in ("groupId", "artifactId", "version", "scope")
        )
        pattern = next((one for one in (f"{group}:{artifact}", f"{group}:*") if one in included), None)
        if pattern is not None and scope in ("", "compile", "runtime"):
            exact = re.sub(r"\$\{([^}]+)\}", lambda name: properties[name[1]], version)
            works.append((group, artifact, exact, SPDX[licences[pattern]]))
    return sorted(works)


def bill_of_materials(
    name: str,
    version: str,
    licence: str,
    module: Path,
    jar: Path,
    dependencies: Iterable[str],
    extras: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """Return the wheel's contents and dependencies as a CycloneDX 1.6 document.

    It has no time and no serial number, so that two builds of one source give the same bytes. A Python dependency has
    its range and no version: the version is decided where the wheel is installed.
    """
    itself, java = f"pkg:pypi/{name}@{version}", f"pkg:maven/eos/eos-bk@{version}"
    inside = [
        {
            "type": "library",
            "bom-ref": f"pkg:maven/{group}/{artifact}@{exact}",
            "purl": f"pkg:maven/{group}/{artifact}@{exact}",
            "group": group,
            "name": artifact,
            "version": exact,
            "licenses": [{"license": {"id": spdx}}],
        }
        for group, artifact, exact, spdx in shaded_works(module)
    ]
    needed = [_python(text, "required", None) for text in sorted(dependencies)]
    have = {one["name"] for one in needed} | {name}
    for extra, texts in sorted(extras.items()):
        for one in (_python(text, "optional", extra) for text in sorted(texts)):
            if one["name"] not in have:
                have.add(one["name"])
                needed.append(one)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": itself,
                "purl": itself,
                "name": name,
                "version": version,
                "licenses": [{"expression": licence}],
            }
        },
        "components": [
            {
                "type": "library",
                "bom-ref": java,
                "purl": java,
                "group": "eos",
                "name": "eos-bk",
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(jar.read_bytes()).hexdigest()}],
                "properties": [{"name": "spark-pulsar-eos:path", "value": IN_THE_WHEEL}],
                "components": inside,
            },
            *needed,
        ],
        "dependencies": [
            {"ref": itself, "dependsOn": [java, *(one["bom-ref"] for one in needed if one["scope"] == "required")]},
            {"ref": java, "dependsOn": [one["bom-ref"] for one in inside]},
        ],
    }


def _python(requirement: str, scope: str, extra: str | None) -> dict[str, Any]:
    """Describe a Python dependency that is not in the wheel."""
    project = re.sub(r"[-_.]+", "-", re.split(r"[\s\[<>=!~;]", requirement, maxsplit=1)[0]).lower()
    properties = [{"name": "spark-pulsar-eos:requirement", "value": requirement}]
    if extra is not None:
        properties.append({"name": "spark-pulsar-eos:extra", "value": extra})
    return {
        "type": "library",
        "bom-ref": f"pkg:pypi/{project}",
        "purl": f"pkg:pypi/{project}",
        "name": project,
        "scope": scope,
        "properties": properties,
    }

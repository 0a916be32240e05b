"""Check offline that every dependency has a pinned version: `python tools/check_pins.py`. Exit code 1 on any finding.

requirements/constraints.txt must pin each package that pyproject.toml names, within its bounds. Each dependency and
plugin of the pom must have one exact version, of its own or from dependencyManagement. A BOM manages its whole group.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
_MAVEN = "{http://maven.apache.org/POM/4.0.0}"
_NOT_EXACT = re.compile(r"[\[\](),$]|SNAPSHOT|LATEST|RELEASE")


def named(project: dict[str, Any]) -> Iterator[Requirement]:
    """Give each requirement of a pyproject.toml, its own name left out."""
    texts = [*project["build-system"]["requires"], *project["project"].get("dependencies", [])]
    for extra in project["project"].get("optional-dependencies", {}).values():
        texts += extra
    for group in project.get("dependency-groups", {}).values():
        texts += [one for one in group if isinstance(one, str)]
    own = canonicalize_name(project["project"]["name"])
    yield from (one for one in map(Requirement, texts) if canonicalize_name(one.name) != own)


def unpinned(project: dict[str, Any], constraints: str) -> Iterator[str]:
    """Say which requirements have no pin, or a pin outside their bounds."""
    pins: dict[str, str] = {}
    for line in constraints.splitlines():
        if not line or line.startswith("#"):
            continue
        name, equals, version = line.partition("==")
        if not equals or "*" in version:
            yield f"requirements/constraints.txt does not pin one version in the line {line!r}"
        elif canonicalize_name(name) in pins:
            yield f"requirements/constraints.txt pins {name} twice"
        pins[canonicalize_name(name)] = version
    for one in named(project):
        pin = pins.get(canonicalize_name(one.name))
        if pin is None:
            yield f"pyproject.toml names {one.name}, and requirements/constraints.txt does not pin it: make constraints"
        elif pin and not one.specifier.contains(pin, prereleases=True):
            yield f"requirements/constraints.txt pins {one.name}=={pin}, and pyproject.toml allows {one.specifier}"


def open_versions(pom: ElementTree.Element) -> Iterator[str]:
    """Say which dependencies and plugins of a pom have no exact version."""
    properties = {one.tag.removeprefix(_MAVEN): one.text or "" for one in pom.iterfind(f"{_MAVEN}properties/*")}

    def text(element: ElementTree.Element, field: str) -> str:
        raw = element.findtext(f"{_MAVEN}{field}", "")
        return re.sub(r"\$\{([^}]+)\}", lambda name: properties.get(name[1], name[0]), raw).strip()

    managed, groups = set(), set()
    in_management = pom.findall(f"{_MAVEN}dependencyManagement/{_MAVEN}dependencies/{_MAVEN}dependency")
    for one in in_management:
        if text(one, "scope") == "import":
            groups.add(text(one, "groupId"))
        else:
            managed.add((text(one, "groupId"), text(one, "artifactId")))
    elements = [*in_management, *pom.findall(f"{_MAVEN}dependencies/{_MAVEN}dependency")]
    elements += pom.findall(f".//{_MAVEN}plugin")
    for one in elements:
        group, artifact, version = text(one, "groupId"), text(one, "artifactId"), text(one, "version")
        by_bom = any(group == bom or group.startswith(f"{bom}.") for bom in groups)
        is_dependency = one.tag == f"{_MAVEN}dependency"
        if not version and is_dependency and ((group, artifact) in managed or by_bom):
            continue
        if not version or _NOT_EXACT.search(version):
            yield f"pom.xml has no exact version for {group}:{artifact}: {version or 'none'}"


def main() -> int:
    """Print the findings."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    constraints = (ROOT / "requirements" / "constraints.txt").read_text(encoding="utf-8")
    pom = ElementTree.parse(ROOT / "statestore" / "java" / "pom.xml").getroot()
    found = [*unpinned(project, constraints), *open_versions(pom)]
    print("\n".join(found), file=sys.stderr, end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())

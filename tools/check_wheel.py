"""Check a wheel and its sdist before a release: `python tools/check_wheel.py WHEEL SDIST`. Exit code 1 on any finding.

It checks the files inside, the metadata, the hashes in RECORD, and the SBOM against CycloneDX's schema.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import tarfile
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from hatch_build import IN_THE_WHEEL, SBOM_NAME, shaded_works  # noqa: E402

PACKAGES = ("eos", "statestore", "pyspark_pulsar", "pytest_eos")
RUN_BY_DRILLS = "statestore/drills/chaos/Transactions.java"
"""The only Java source in the wheel: a drill gives it to `java` as it is."""
WHEEL_MUST_HAVE = (
    IN_THE_WHEEL,
    RUN_BY_DRILLS,
    *(f"{package}/__init__.py" for package in PACKAGES),
    "eos/py.typed",
    "statestore/py.typed",
)
SDIST_MUST_HAVE = (
    *(
        "pyproject.toml",
        "hatch_build.py",
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "Makefile",
        "PKG-INFO",
    ),
    *(
        "statestore/java/pom.xml",
        "tests/unit/test_hatch_build.py",
        "requirements/constraints.txt",
        "tools/bootstrap.sh",
    ),
)
NEVER = ("__pycache__", ".pyc", ".venv", "/target/", ".git/", ".DS_Store")
JAR_PREFIXES = (
    *("eos/bk/", "eos/sql/", "org/apache/bookkeeper/", "io/netty/channel/uring/", "io/netty/incubator/", "META-INF/"),
    "com/scurrilous/circe/",  # circe-checksum of BookKeeper
)


def amiss_in_wheel(names: Collection[str]) -> Iterator[str]:
    """Say which files the wheel lacks and which it must not have."""
    yield from (f"the wheel has no {name}" for name in WHEEL_MUST_HAVE if name not in names)
    for name in names:
        folder = name.split("/")[0]
        if folder not in PACKAGES and not folder.endswith(".dist-info"):
            yield f"the wheel has {name}, which belongs to none of its packages"
        elif (
            (name.endswith(".java") and name != RUN_BY_DRILLS)
            or name.startswith("statestore/java/")
            or "/tests/" in name
        ):
            yield f"the wheel has {name}, which is a source of the jar or a test"
        elif any(part in name for part in NEVER):
            yield f"the wheel has {name}, which a build left behind"


def amiss_in_sdist(names: Collection[str]) -> Iterator[str]:
    """Say which files the sdist lacks and which it must not have; names without the first folder."""
    yield from (f"the sdist has no {name}" for name in SDIST_MUST_HAVE if name not in names)
    yield from (
        f"the sdist has {name}, which a build left behind" for name in names if any(part in name for part in NEVER)
    )


def amiss_in_jar(names: Collection[str]) -> Iterator[str]:
    """Say which classes of the jar belong to no work that is known to be in it."""
    for name in names:
        if name.endswith(".class") and not name.startswith(JAR_PREFIXES):
            yield f"the jar has {name}, which belongs to no known work"


def amiss_in_record(wheel: zipfile.ZipFile, folder: str) -> Iterator[str]:
    """Say which files differ from RECORD, or are missing from it."""
    lines = wheel.read(f"{folder}/RECORD").decode().splitlines()
    recorded = dict(line.rsplit(",", 2)[:2] for line in lines)
    for name in wheel.namelist():
        digest = base64.urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).rstrip(b"=").decode()
        if name != f"{folder}/RECORD" and recorded.get(name) != f"sha256={digest}":
            yield f"RECORD has another hash for {name}, or none"


def amiss_in_metadata(text: bytes) -> Iterator[str]:
    """Say what PyPI would refuse in the metadata."""
    from packaging.metadata import Metadata

    try:
        metadata = Metadata.from_email(text, validate=True)
    except ExceptionGroup as group:
        yield from (f"METADATA is not valid: {error}" for error in group.exceptions)
        return
    if not metadata.description or metadata.description_content_type != "text/markdown":
        yield "METADATA has no description in Markdown"


def amiss_in_sbom(text: str, jar: bytes) -> Iterator[str]:
    """Hold the SBOM against CycloneDX's schema, the jar's hash and the pom."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if error is not None:
        yield f"the SBOM is not valid CycloneDX 1.6: {error}"
        return
    document: dict[str, Any] = json.loads(text)
    java = next(one for one in document["components"] if one["name"] == "eos-bk")
    if java["hashes"][0]["content"] != hashlib.sha256(jar).hexdigest():
        yield "the SBOM has another hash for the jar"
    listed = [
        (one["group"], one["name"], one["version"], one["licenses"][0]["license"]["id"]) for one in java["components"]
    ]
    if listed != shaded_works(ROOT / "statestore" / "java"):
        yield "the SBOM lists other works in the jar than the pom"


def findings(wheel_path: Path, sdist_path: Path) -> Iterator[str]:
    """Give all findings about a wheel and its sdist."""
    with zipfile.ZipFile(wheel_path) as wheel:
        names = wheel.namelist()
        yield from amiss_in_wheel(names)
        folder = next(name for name in names if name.endswith(".dist-info/METADATA")).split("/")[0]
        yield from amiss_in_record(wheel, folder)
        yield from amiss_in_metadata(wheel.read(f"{folder}/METADATA"))
        jar, sbom = wheel.read(IN_THE_WHEEL), f"{folder}/sboms/{SBOM_NAME}"
        if sbom in names:
            yield from amiss_in_sbom(wheel.read(sbom).decode(), jar)
        else:
            yield f"the wheel has no {sbom}"
        with wheel.open(IN_THE_WHEEL) as file, zipfile.ZipFile(file) as inner:
            yield from amiss_in_jar(inner.namelist())
    with tarfile.open(sdist_path) as sdist:
        yield from amiss_in_sdist([member.name.partition("/")[2] for member in sdist if member.isfile()])


def main(arguments: list[str]) -> int:
    """Print the findings."""
    found = list(findings(Path(arguments[0]), Path(arguments[1])))
    print("\n".join(found), file=sys.stderr, end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

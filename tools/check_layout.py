"""Check how the tree lies: no file is too long, and unit tests lie as the source does. Exits with 1 otherwise.

`tests/unit/commit/test_owner.py` tests `eos/commit/owner.py`; under `tests/unit/statestore` it is `statestore/…`, and
`tests/unit/benchmarks`, `tests/unit/soak` and `tests/unit/tools` test the folders of these names. Packages without unit
tests are named, with the reason where there is one.

Before the first release the only news is of additions (changes/README.md).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 400
GENERATED = ("pulsar_pb2.py", "bookkeeper_pb2.py")
NO_MODULE = {
    "commit/test_freed": "partitions after a try that was aborted, seen by all modules of the package",
    "commit/test_terminated": "a topic that is terminated in the middle of a batch, seen by all modules of the package",
    "commit/test_stopped": "a query that was stopped, seen by all modules of the package",
    "metrics/test_alerts": "the rule file for Prometheus, which is not a module",
    "metrics/test_dashboard": "the dashboard and the alerts, which are no modules",
    "pulsar/net/test_limping": "one broker that limps, seen by all modules of the package",
    "pulsar/net/test_tls": "one broker with TLS, seen by all modules of the package",
    "pulsar/protocol/test_tables": "what holds for the tables of all machines",
    "statestore/drills/chaos/test_chaos_parts": "the parts of a drill's chaos together, without a cluster",
    "test_troubleshooting": "the messages that pages of docs/ quote, of all modules",
    "test_child_process": "the processes that the tests start, by tests/child_process.py",
    "test_planner": "how the tests themselves are run, by tests/planner.py",
}
"""Tests that are of a package, and not of one module."""
UNTESTED: dict[str, str] = {}
"""Packages without unit tests, and why."""


def too_long(root: Path) -> Iterator[str]:
    """Say which files are too long."""
    for folder in ("eos", "statestore", "tests", "tools", "examples"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".py", ".java") or path.name in GENERATED:
                continue
            lines = len(path.read_text(encoding="utf-8").splitlines())
            if lines > LONGEST:
                yield f"{path.relative_to(root)} has {lines} lines, and {LONGEST} are the most: part it"


def source_of(test: Path) -> list[Path]:
    """Return where the module that a unit test is named after may lie; paths from the project's root."""
    module = test.with_name(test.stem.removeprefix("test_"))
    if test.parts[0] in ("statestore", "tools"):
        return [module]
    if test.parts[0] in ("benchmarks", "soak"):
        return ["tests" / module]
    return ["eos" / module] if len(test.parts) > 1 else ["eos" / module, module]


def misplaced(root: Path) -> Iterator[str]:
    """Say which unit tests name no module, and which exceptions are no longer exceptions."""
    unit = root / "tests" / "unit"
    exceptions = set(NO_MODULE)
    for path in sorted(unit.rglob("test_*.py")):
        test = path.relative_to(unit)
        name = test.with_suffix("").as_posix()
        if any((root / source).is_dir() or (root / source).with_suffix(".py").exists() for source in source_of(test)):
            continue
        if name not in exceptions:
            yield f"tests/unit/{test} tests no module: expected {' or '.join(f'{s}.py' for s in source_of(test))}"
        exceptions.discard(name)
    yield from (f"NO_MODULE names {name}, which has a module or is gone" for name in sorted(exceptions))


def untested(root: Path) -> Iterator[str]:
    """Say which packages have modules and no unit test."""
    for top in ("eos", "statestore"):
        for package in sorted({path.parent for path in (root / top).rglob("*.py")}):
            name = package.relative_to(root).as_posix()
            if name == top or name.startswith("statestore/java") or not any(_modules(package)):
                continue
            tests = root / "tests" / "unit" / name.removeprefix("eos/")
            if not any(tests.glob("test_*.py")) and name not in UNTESTED:
                yield f"{name} has no unit tests in {tests.relative_to(root)}"


def early_news(root: Path) -> Iterator[str]:
    """Say which news fragments tell of a change to a release, while CHANGELOG.md has none."""
    if re.search(r"^## \d\S* \((?!unreleased)", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE):
        return
    for path in sorted((root / "changes").glob("*.*.md")):
        if not path.name.endswith(".added.md"):
            yield (
                f"changes/{path.name} tells of a change to a release, and CHANGELOG.md has no release yet. "
                "Delete it, or name it .added.md if 0.1.0 has a new part (changes/README.md)"
            )


def _modules(package: Path) -> Iterator[Path]:
    return (path for path in package.glob("*.py") if path.name != "__init__.py")


def main() -> int:
    """Say what is amiss, and which packages have no unit tests for a reason."""
    print("".join(f"{package} has no unit tests: {why}\n" for package, why in UNTESTED.items()), end="")
    amiss = [*too_long(ROOT), *misplaced(ROOT), *untested(ROOT), *early_news(ROOT)]
    print("\n".join(amiss), file=sys.stderr, end="\n" if amiss else "")
    return 1 if amiss else 0


if __name__ == "__main__":
    raise SystemExit(main())

from __future__ import annotations

from pathlib import Path

import pytest

from tools import check_layout


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in good order, with one package."""
    monkeypatch.setattr(check_layout, "NO_MODULE", {})
    write(tmp_path, "eos/commit/owner.py")
    write(tmp_path, "tests/unit/commit/test_owner.py")
    return tmp_path


def write(root: Path, name: str, lines: int = 1) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("pass\n" * lines)


def amiss(root: Path) -> list[str]:
    return [*check_layout.too_long(root), *check_layout.misplaced(root), *check_layout.untested(root)]


def test_the_unit_tests_of_this_project_lie_as_its_source() -> None:
    assert [*check_layout.misplaced(check_layout.ROOT), *check_layout.untested(check_layout.ROOT)] == []


def test_a_file_may_have_400_lines_and_no_more(tree: Path) -> None:
    write(tree, "eos/commit/owner.py", 400)
    assert amiss(tree) == []
    write(tree, "eos/commit/owner.py", 401)
    write(tree, "statestore/java/src/Names.java", 402)
    write(tree, "eos/commit/thing_pb2.py", 403)
    write(tree, "eos/commit/pulsar_pb2.py", 404)
    assert [line.split(",")[0] for line in amiss(tree)] == [
        "eos/commit/owner.py has 401 lines",
        "eos/commit/thing_pb2.py has 403 lines",
        "statestore/java/src/Names.java has 402 lines",
    ]


@pytest.mark.parametrize(
    ("test", "source"),
    [
        ("commit/test_attempt.py", "eos/commit/attempt.py"),
        ("pulsar/net/test_pool.py", "eos/pulsar/net/pool.py"),
        ("statestore/bk/test_names.py", "statestore/bk/names.py"),
        ("benchmarks/test_plan.py", "tests/benchmarks/plan.py"),
        ("soak/growth/test_run.py", "tests/soak/growth/run.py"),
        ("tools/test_draw.py", "tools/draw.py"),
    ],
)
def test_a_unit_test_names_a_module(tree: Path, test: str, source: str) -> None:
    write(tree, f"tests/unit/{test}")
    assert amiss(tree) == [f"tests/unit/{test} tests no module: expected {source}"]
    write(tree, source)
    assert amiss(tree) == []


def test_what_tests_the_root_is_of_eos_or_of_the_project(tree: Path) -> None:
    write(tree, "tests/unit/test_build.py")
    assert amiss(tree) == ["tests/unit/test_build.py tests no module: expected eos/build.py or build.py"]
    write(tree, "build.py")
    assert amiss(tree) == []


def test_an_exception_is_one_only_as_long_as_it_is_needed(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_layout, "NO_MODULE", {"commit/test_all": "the package"})
    assert amiss(tree) == ["NO_MODULE names commit/test_all, which has a module or is gone"]
    write(tree, "tests/unit/commit/test_all.py")
    assert amiss(tree) == []
    write(tree, "eos/commit/all.py")
    assert amiss(tree) == ["NO_MODULE names commit/test_all, which has a module or is gone"]


def test_a_room_without_unit_tests_is_named(tree: Path) -> None:
    write(tree, "eos/spark/__init__.py")
    assert amiss(tree) == []
    write(tree, "eos/spark/jobs.py")
    assert amiss(tree) == ["eos/spark has no unit tests in tests/unit/spark"]


def test_before_the_first_release_there_is_only_news_of_what_was_added(tmp_path: Path) -> None:
    for name in ("README.md", "27-verbs.added.md", "28-spark-3.5.added.md"):
        write(tmp_path, f"changes/{name}")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 0.1.0 (unreleased)\n")
    assert list(check_layout.early_news(tmp_path)) == []
    for kind in ("fixed", "breaking", "changed"):
        write(tmp_path, f"changes/29-reset.{kind}.md")
    refused = [line.split()[0] for line in check_layout.early_news(tmp_path)]
    assert refused == [f"changes/29-reset.{kind}.md" for kind in ("breaking", "changed", "fixed")]
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 0.2.0 (unreleased)\n\n## 0.1.0 (2027-01-15)\n")
    assert list(check_layout.early_news(tmp_path)) == []


def test_the_news_of_this_project_is_not_early() -> None:
    assert list(check_layout.early_news(check_layout.ROOT)) == []

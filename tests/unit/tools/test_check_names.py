from __future__ import annotations

from pathlib import Path

import pytest

from tools import check_names


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in good order, with a protocol's table."""
    monkeypatch.setattr(check_names, "STILL_NAMED", frozenset())
    write(tmp_path, "eos/commit/owner.py", "class Owner: ...")
    write(tmp_path, "eos/pulsar/protocol/producer.py", "class State: ...")
    return tmp_path


def write(root: Path, name: str, text: str = "pass") -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def amiss(root: Path) -> list[str]:
    found = list(check_names.names(root))
    return [*check_names.doubled(found), *check_names.without_noun(found), *check_names.retired(found)]


def test_the_names_of_this_project_are_those_of_the_glossary() -> None:
    assert amiss(check_names.ROOT) == []


def test_a_public_class_name_exists_once_over_both_packages(tree: Path) -> None:
    write(tree, "eos/pulsar/protocol/consumer.py", "class State: ...")
    write(tree, "eos/errors.py", "class InvalidInput(Exception): ...")
    write(tree, "statestore/errors.py", "class InvalidInput(Exception): ...")
    write(tree, "eos/commit/fencing.py", "class _Owner: ...\ndef f():\n    class Owner: ...")
    assert amiss(tree) == []
    write(tree, "statestore/drills/job.py", "class Owner: ...")
    write(tree, "statestore/drills/run.py", "class State: ...\nclass Other:\n    class State: ...")
    assert [line.split(":")[0] for line in amiss(tree)] == [
        "the class Owner is in eos/commit/owner.py and statestore/drills/job.py",
        "the class State is in statestore/drills/run.py and statestore/drills/run.py",
    ]


@pytest.mark.parametrize("word", ["numbered", "begun", "plain", "raw", "alone", "portable", "seen"])
def test_a_module_is_named_by_a_noun(tree: Path, word: str) -> None:
    write(tree, f"eos/commit/not_{word if word not in check_names.RETIRED else 'last'}_batch.py")
    write(tree, "eos/commit/feed.py")
    write(tree, "eos/local/__init__.py")
    assert amiss(tree) == []
    write(tree, f"eos/commit/{word}.py")
    write(tree, f"statestore/{word}/__init__.py")
    assert len([line for line in amiss(tree) if "adjective alone" in line]) == 2


@pytest.mark.parametrize("word", check_names.RETIRED)
def test_a_retired_word_names_nothing(tree: Path, word: str) -> None:
    write(tree, "eos/commit/notes.py", f"def with_{word}_in_it(): ...\ndef _{word}(): ...\n{word}s = 1")
    assert amiss(tree) == []
    capital = "".join(part.title() for part in word.split("_"))
    write(tree, "eos/commit/notes.py", f"class {capital}Rows:\n    def {word}(self): ...")
    write(tree, f"eos/commit/{word}_rows.py")
    assert sorted(line.split(": ")[1] for line in amiss(tree) if "retired word" in line) == [
        f"the class {capital}Rows is named by a retired word",
        f"the function {word} is named by a retired word",
        f"the module {word}_rows is named by a retired word",
    ]


def test_an_exception_that_is_over_is_taken_out(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_names, "STILL_NAMED", frozenset({("eos/commit/owner.py", "hold")}))
    assert amiss(tree) == ["STILL_NAMED has hold of eos/commit/owner.py, which is gone: take it out"]
    write(tree, "eos/commit/owner.py", "def hold(): ...")
    assert amiss(tree) == []

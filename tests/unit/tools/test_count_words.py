"""The reader's path is short enough, and its pages are counted as a reader meets them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import count_words


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("one two")
    (tmp_path / "docs" / "index.md").write_text(
        "## Path to production\n\n1. [A](a.md): first\n2. [B](b.md)\n\n## Pages\n\n1. [C](c.md)\n"
    )
    for name, text in {"a": "a b c", "b": "```\nx y\n```", "c": "z"}.items():
        (tmp_path / "docs" / f"{name}.md").write_text(text)
    (tmp_path / "mkdocs.yml").write_text(
        "nav:\n  - Use:\n      - a.md\n      - Write:\n          - b.md\n  - Develop:\n      - c.md\n"
    )
    return tmp_path


def test_the_path_is_the_readme_and_the_listed_pages(pages: Path) -> None:
    assert [one.name for one in count_words.path(pages)] == ["README.md", "a.md", "b.md"]


def test_a_menu_counts_the_pages_of_its_parts(pages: Path) -> None:
    assert count_words.words_by_menu(pages) == {"Use": 7, "Use / Write": 4, "Develop": 1, "all pages": 8}


def test_an_index_without_a_path_is_an_error(pages: Path) -> None:
    (pages / "docs" / "index.md").write_text("# Pages\n")
    with pytest.raises(LookupError, match="Path to production"):
        count_words.path(pages)


def test_the_path_has_no_more_words_than_it_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    assert count_words.main(["--check"]) == 0
    monkeypatch.setattr(count_words, "MOST_ON_THE_PATH", 100)
    assert count_words.main(["--check"]) == 1

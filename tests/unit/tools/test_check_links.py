"""Dead links and missing names are found, each with its page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import check_links


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(check_links, "ROOT", tmp_path)
    (tmp_path / "other.md").write_text("# A heading: with `signs`\n\n```sh\n# no heading\n```\n")
    return tmp_path / "page.md"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[a](other.md) [b](other.md#a-heading-with-signs) [c](https://example.org/x) [d](#here)\n# Here", []),
        ("[a](missing.md)", ["page.md: missing.md: there is no such file"]),
        ("[a](other.md#no-heading)", ["page.md: other.md#no-heading: there is no such heading"]),
        ("[a](#nowhere)", ["page.md: #nowhere: there is no such heading"]),
        ("`[a](missing.md)`\n\n```text\n[a](missing.md)\n```\n", []),
    ],
)
def test_links(page: Path, text: str, wrong: list[str]) -> None:
    page.write_text(text)
    assert list(check_links.dead_links(page)) == wrong


def test_names_of_the_reference(page: Path) -> None:
    page.write_text("::: eos.sink\n\n::: eos.errors\n\n::: eos.errors.Fenced\n\n::: eos.sunk\n\n::: eos.nowhere.Sink\n")
    assert [line.split(": ")[2] for line in check_links.missing_names(page)] == ["eos.sunk", "eos.nowhere.Sink"]


def test_public_names_that_the_reference_lacks(page: Path) -> None:
    page.write_text(
        "::: statestore.errors\n\n::: statestore.savepoints\n\n::: statestore.verify\n\n::: statestore.nowhere\n"
    )
    untold = {line.split(" ")[1] for line in check_links.untold_names("statestore", page)}
    assert {"statestore.rescale", "statestore.jar_path"} <= untold
    assert not {"statestore.verify", "statestore.NotFound", "statestore.stop_with_savepoint"} & untold


def test_pages_that_the_site_lacks(page: Path) -> None:
    docs = page.parent / "docs"
    docs.mkdir()
    (docs / "held.md").write_text("")
    (docs / "named.md").write_text("")
    (page.parent / "mkdocs.yml").write_text("nav:\n  - named.md\n  - gone.md\n")
    assert list(check_links.pages_out_of_sight()) == [
        "gone.md: there is no such page",
        "held.md: mkdocs.yml does not name it",
    ]


@pytest.mark.parametrize(
    "loading",
    [
        '<script src="https://example.org/a.js">',
        "<script src=//example.org/a.js>",
        '<link rel="stylesheet" href="https://example.org/a.css">',
        "<style>@font-face { src: url(https://example.org/a.woff) }</style>",
        '<style>@import "https://example.org/a.css"</style>',
        '<img\nsrc="https://example.org/a.png">',
        '<img srcset="own.png 1x, https://example.org/a.png 2x">',
        '<svg><image href="https://example.org/a.png"/></svg>',
    ],
)
def test_a_page_of_the_site_that_loads_from_elsewhere(tmp_path: Path, loading: str) -> None:
    page = tmp_path / "page.html"
    page.write_text(f'<a href="https://example.org">a link is no load</a><script src="own.js"></script>{loading}')
    (found,) = check_links.loads_from_elsewhere(tmp_path)
    assert "example.org/a." in found


def test_a_diagram_that_the_theme_would_fetch_a_script_for(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text('<pre class="mermaid"><code>flowchart</code></pre>')
    (found,) = check_links.loads_from_elsewhere(tmp_path)
    assert "unpkg.com/mermaid" in found


def test_a_diagram_that_is_not_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "page.html").write_text('<div class="language-mermaid highlight"><pre>flowchart</pre></div>')
    assert check_links.main(["--site", str(tmp_path)]) == 1
    assert "page.html: shows a diagram as code" in capsys.readouterr().err


def test_a_style_and_a_picture_that_load_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("@font-face { src: url(https://example.org/a.woff) } a { color: red }")
    (tmp_path / "b.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"><image href="//example.org/b.png"/></svg>')
    found = [line.partition(" loads ")[2] for line in check_links.loads_from_elsewhere(tmp_path)]
    assert found == ["https://example.org/a.woff", "//example.org/b.png"]

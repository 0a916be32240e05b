from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tools import draw_pictures


def test_pictures_are_those_of_their_descriptions() -> None:
    assert draw_pictures.main(["--check"]) == 0


@pytest.mark.parametrize("source", sorted(draw_pictures.PICTURES.glob("*.txt")), ids=lambda path: path.stem)
def test_a_picture_is_xml_with_a_title_and_an_alt_text(source: Path) -> None:
    svg = ElementTree.fromstring(draw_pictures.drawn(source.read_text(encoding="utf-8")))
    name = "{http://www.w3.org/2000/svg}"
    assert all((svg.findtext(f"{name}{tag}") or "").strip() for tag in ("title", "desc"))
    assert "prefers-color-scheme:dark" in (svg.findtext(f"{name}style") or "")
    ground = svg.find(f"{name}rect")
    assert ground is not None
    assert (svg.attrib["width"], ground.attrib["width"]) == (ground.attrib["width"], svg.attrib["viewBox"].split()[2])


def test_a_picture_without_its_description_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs" / "pictures").mkdir(parents=True)
    (tmp_path / "README.md").write_text("![](docs/pictures/left.svg)")
    (tmp_path / "docs" / "pictures" / "left.svg").write_text("<svg/>")
    monkeypatch.setattr(draw_pictures, "ROOT", tmp_path)
    monkeypatch.setattr(draw_pictures, "PICTURES", tmp_path / "docs" / "pictures")
    assert draw_pictures.main(["--check"]) == 1
    assert list(draw_pictures.without_alt()) == ["README.md shows docs/pictures/left.svg without an alt text"]


def test_bars_have_the_figures_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draw_pictures, "PICTURES", tmp_path / "pictures")
    page = tmp_path / "page.md"
    page.write_text(
        "| other | n |\n|---|---|\n| x | 1 |\n\n| kind | rows/s |\n|---|---|\n| `a` | 2,000 |\n| b | 5 |\n\n| c | 9 |\n"
    )
    description = "bars: Title\nalt: Words\ntable page.md 1: | rows/s |\n"
    svg = draw_pictures.drawn(description)
    told = [words for words in ("a", "2,000", "b", "5", "x", "9") if f">{words}</text>" in svg]
    assert told == ["a", "2,000", "b", "5"]
    assert [width in svg for width in ('width="380"', 'width="2"')] == [True, True]
    page.write_text("| other | n |\n")
    with pytest.raises(LookupError, match="rows/s"):
        draw_pictures.drawn(description)


def test_rows_of_entries_lie_below_each_other() -> None:
    svg = draw_pictures.drawn("entries: Title\nalt: Words\nrow: one\nentry seen: a\nrow: two\nentry seen: b\n")
    first, second = (svg.index(f">{words}</text>") for words in ("one", "two"))
    assert first < svg.index(">a</text>") < second < svg.index(">b</text>")
    assert [y in svg for y in ('y="60"', 'y="156"')] == [True, True]


def test_the_lines_of_a_terminal_come_in_their_order_and_all_are_there_without_motion() -> None:
    svg = draw_pictures.drawn(
        "terminal: Title\nalt: Words\ntyped: eos sink list\nsaid: │ a: 1    │\nsaid: b\nlater: 5 s later\ntyped: ls\n"
    )
    name = "{http://www.w3.org/2000/svg}"
    groups = ElementTree.fromstring(svg).findall(f"{name}g")
    assert [one.findtext(f"{name}text") for one in groups] == [
        "$ eos sink list",
        "│ a: 1    │",
        "b",
        "(5 s later)",
        "$ ls",
    ]
    delays = [float(one.attrib["style"].removeprefix("animation-delay:").removesuffix("s")) for one in groups]
    assert delays == [1.2, 2.4, 2.5, 3.7, 4.9]
    assert "(prefers-reduced-motion:reduce){g{animation:none}}" in svg
    assert svg.count('xml:space="preserve"') == len(groups)

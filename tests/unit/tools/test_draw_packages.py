from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import grimp
import pytest

from tools import draw_packages

PAGE = """
<!-- packages of eos -->
<!-- end of the packages -->

| `eos/commit/` | decides |
| `eos/pulsar/wire/` | bytes |
"""


@pytest.fixture
def graph() -> grimp.ImportGraph:
    """Two packages; one imports the other, and what all share."""
    graph = grimp.ImportGraph()
    for module in ("eos", "eos.errors", "eos.commit", "eos.commit.owner", "eos.pulsar", "eos.pulsar.wire"):
        graph.add_module(module)
    graph.add_module("eos.pulsar.wire.txn")
    graph.add_import(importer="eos.commit.owner", imported="eos.pulsar.wire.txn")
    graph.add_import(importer="eos.commit.owner", imported="eos.errors")
    return graph


def test_the_page_is_as_the_imports_are() -> None:
    ran = subprocess.run([sys.executable, draw_packages.__file__, "--check"], capture_output=True, text=True)
    assert (ran.stderr, ran.returncode) == ("", 0)


def test_an_arrow_is_drawn_for_each_pair_of_rooms_that_import(graph: grimp.ImportGraph) -> None:
    packages, found = draw_packages.arrows(graph)
    assert (packages, found) == ({"eos.commit", "eos.pulsar.wire"}, {("eos.commit", "eos.pulsar.wire")})
    drawn = draw_packages.drawn_anew(PAGE, packages, found)
    assert [line.strip() for line in drawn.splitlines() if "-->" in line and "<!" not in line] == [
        "commit --> pulsar_wire"
    ]
    assert draw_packages.rows_amiss(drawn, packages) == []


def test_an_arrow_that_is_missing_or_drawn_in_vain_changes_the_page(graph: grimp.ImportGraph) -> None:
    drawn = draw_packages.drawn_anew(PAGE, *draw_packages.arrows(graph))
    for wrong in (drawn.replace("    commit --> pulsar_wire\n", ""), drawn.replace("TD\n", "TD\n    a --> b\n")):
        assert wrong != drawn
        assert draw_packages.drawn_anew(wrong, *draw_packages.arrows(graph)) == drawn
    graph.add_import(importer="eos.pulsar.wire.txn", imported="eos.commit.owner")
    assert "pulsar_wire --> commit" in draw_packages.drawn_anew(drawn, *draw_packages.arrows(graph))


def test_a_package_needs_a_row_and_a_row_a_package(graph: grimp.ImportGraph) -> None:
    packages, _ = draw_packages.arrows(graph)
    assert draw_packages.rows_amiss(PAGE.replace("eos/commit/", "eos/gone/"), packages) == [
        "eos.commit has no row",
        "there is no eos.gone",
    ]


def test_a_package_may_lie_in_another_and_what_lies_deeper_is_of_that_room() -> None:
    parents = {"eos", "eos.pulsar", "eos.pulsar.net", "eos.local", "eos.local.deep"}
    found = {
        name: draw_packages.package_of(name, parents)
        for name in ("eos", "eos.errors", "eos.pulsar.net.pool", "eos.local.jvm", "eos.local.deep.thing")
    }
    assert found == {
        "eos": "eos",
        "eos.errors": None,
        "eos.pulsar.net.pool": "eos.pulsar.net",
        "eos.local.jvm": "eos.local",
        "eos.local.deep.thing": "eos.local",
    }


def test_the_walks_name_files_that_exist(tmp_path: Path) -> None:
    (tmp_path / "eos").mkdir()
    (tmp_path / "eos" / "there.py").touch()
    page = "`eos/there.py` calls `eos/gone.py`, and `eos.gone` is no file."
    assert draw_packages.files_gone(page, tmp_path) == ["there is no eos/gone.py"]


def test_the_page_lies_where_it_is_looked_for() -> None:
    assert Path(__file__).parents[3] / "docs" / "ARCHITECTURE.md" == draw_packages.PAGE

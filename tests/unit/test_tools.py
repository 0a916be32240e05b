"""Tools that need few tests each: tables that they draw, words that they count."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import pytest
from packaging.requirements import Requirement

from eos.by_name.options import OPTIONS as WRITER_OPTIONS
from eos.cli.connection import connection
from eos.sinks.options import SinkOptions
from eos.source.table import OPTIONS as SOURCE_OPTIONS
from tools import configuration_table, count_words
from tools.matrix_page import BEGIN, END, drawn, merged, table
from tools.site_links import meanings

# ---- table of options


def test_each_option_of_each_place_is_there_once() -> None:
    rows = [row for group in configuration_table.tables().values() for row in group]
    names = [row[0].strip("`") for row in rows]
    assert len(names) == len(set(names))
    places = configuration_table.PLACES
    in_python = {
        place: {configuration_table.key_of(row[0].strip("`")) for row in rows if row[3 + number]}
        for number, place in enumerate(places)
    }
    assert in_python["sink"] == {"service_url", *SinkOptions.__dataclass_fields__}
    assert in_python["writes"] == {"service_url", *(configuration_table.key_of(one.name) for one in WRITER_OPTIONS)}
    assert in_python["reads"] == {configuration_table.key_of(one.name) for one in SOURCE_OPTIONS}
    assert in_python["command line"] == set(inspect.signature(connection, eval_str=True).parameters)
    assert in_python["environment"] == in_python["command line"]
    by_name = {row[0]: "|".join(row[3:-1]) for row in rows}
    assert by_name["`token`"] == "yes|yes|yes|`--token`|`EOS_TOKEN`"
    assert by_name["`client_conf`"] == "|||`--client-conf`|`PULSAR_CLIENT_CONF`"


def test_a_row_says_what_the_option_means_at_each_place() -> None:
    told = {row[0].strip("`"): row[-1] for group in configuration_table.tables().values() for row in group}
    assert all(told.values())
    assert told["topic"].startswith("where all rows go")
    assert "Reads: one topic" in told["topic"]
    assert "Reads:" not in told["service_url"] + told["token"]
    assert told["endingTime"].startswith("batch reads: ")
    assert told["client_conf"].startswith("A client.conf of Pulsar")


def test_a_row_has_the_type_and_the_default_of_the_code() -> None:
    rows = {row[0]: row[1:3] for group in configuration_table.tables().values() for row in group}
    assert rows["`transaction_timeout_s`"] == ("number", "`600`")
    assert rows["`chunking`"] == ("bool", "`false`")
    assert rows["`batching`"] == ("text", "`default`")
    assert rows["`token`"] == ("text or function", "none")
    assert rows["`observer`"] == ("function", "none")
    assert rows["`startingOffsets`"] == ("text", "stream: `latest`, batch: `earliest`")


def test_an_option_without_a_group_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = {**configuration_table.GROUPS, "Rows": ("chunking", "invented")}
    monkeypatch.setattr(configuration_table, "GROUPS", groups)
    with pytest.raises(LookupError, match=r"'batching'.*'invented'.*in no group"):
        configuration_table.tables()


@pytest.mark.parametrize(
    ("hint", "words"),
    [(str | None, "text"), (Literal["a", "b"], "text"), (Mapping[str, str], "dict"), (int, "integer")],
)
def test_a_type_in_a_users_words(hint: object, words: str) -> None:
    assert configuration_table.type_of(hint) == words


# ---- words


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


# ---- generated code


ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("module", ["eos/pulsar/wire/pulsar_pb2.py", "eos/bookkeeper/wire/bookkeeper_pb2.py"])
def test_generated_code_runs_with_the_oldest_protobuf_that_is_allowed(module: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (protobuf,) = (one for one in map(Requirement, project["dependencies"]) if one.name == "protobuf")
    named = (ROOT / module).read_text().partition("# Protobuf Python Version: ")[2].partition("\n")[0]
    assert protobuf.specifier.contains(named)
    (oldest,) = (one.version for one in protobuf.specifier if one.operator == ">=")
    assert named == f"{oldest}.0"


def test_the_copy_of_the_tree_for_mutants_has_each_package() -> None:
    """The tests there import them all, pytest_eos as a plugin of pytest."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    tool = project["tool"]["mutmut"]
    copied = {*tool["source_paths"], *tool["also_copy"]}
    assert set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) <= copied


# ---- page of versions


def row(spark: str, part: str, answer: str, why: str = "") -> dict[str, str]:
    return {"spark": spark, "pulsar": "4.2.4", "python": "3.11.7", "part": part, "answer": answer, "why": why}


def test_what_was_not_run_is_told_as_such_and_versions_are_in_order() -> None:
    found = table([row("10.0.0", "sink", "worked"), row("3.5.9", "sink", "failed"), row("3.5.9", "diff", "can't")])
    assert found.splitlines() == [
        "| part | Spark 3.5.9, Pulsar 4.2.4 | Spark 10.0.0, Pulsar 4.2.4 |",
        "|---|---|---|",
        "| sink | failed | worked |",
        "| diff | can't | not run |",
    ]


def test_the_newest_answer_of_a_part_counts() -> None:
    before = [row("3.5.9", "sink", "failed", "it hung"), row("3.5.9", "diff", "can't")]
    assert merged(before, [row("3.5.9", "sink", "worked")]) == [row("3.5.9", "sink", "worked"), before[1]]


def test_a_page_is_drawn_again_with_the_reasons() -> None:
    page = f"# Top\n{BEGIN}\nold\n{END}\nrest\n"
    rows = [row("3.5.9", "diff", "can't", "Spark lacks it.")]
    once = drawn(page, rows)
    assert "old" not in once
    assert "- On Spark 3.5.9 and Pulsar 4.2.4 the part *diff* can't run. Spark lacks it.\n" in once
    assert once.startswith("# Top\n")
    assert once.endswith(f"{END}\nrest\n")
    assert drawn(once, rows) == once


# ---- words on the site


def test_own_words_have_their_meaning_and_those_of_spark_have_not() -> None:
    lines = meanings(ROOT / "docs" / "glossary.md").strip().splitlines()
    terms = [line.partition("]: ")[0].removeprefix("*[") for line in lines]
    assert {"control topic", "marker", "in doubt", "savepoint"} <= set(terms)
    assert not {"query", "broker", "fault", "package"} & set(terms)
    assert "*[intent]: the record that names the transaction of a batch before rows are sent." in lines
    assert all("*" not in line.partition("]: ")[2] for line in lines)

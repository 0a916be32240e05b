"""`statestore cp`: what it refuses. `statestore rescale`: what it hands over, and what it tells."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from statestore import rewriting
from statestore.cli import transfer
from statestore.cli.app import typer_app
from statestore.errors import InvalidInput
from statestore.hadoop.file_systems import Hadoop
from statestore.rewriting import Rescaled
from tests.unit.statestore.folders import Folders


@pytest.mark.parametrize("between", ["", "team", "team/a/b"])
def test_a_checkpoint_below_a_folder_is_copied_by_itself(
    between: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = tmp_path / "queries" / between / "flights"
    (checkpoint / "offsets").mkdir(parents=True)
    (tmp_path / "queries" / "another").mkdir()
    folders = Folders()
    monkeypatch.setattr(Hadoop, "of", lambda **_: folders)
    result = CliRunner().invoke(typer_app, ["cp", str(tmp_path / "queries"), str(tmp_path / "copy")])
    assert isinstance(result.exception, InvalidInput)
    assert f"{checkpoint} is a query's checkpoint. Copy it by itself" in str(result.exception)
    assert folders.written == []


def test_a_copy_is_refused_where_a_link_leads_to_a_checkpoint_or_to_a_folder_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy follows links."""
    (tmp_path / "live" / "offsets").mkdir(parents=True)
    monkeypatch.setattr(Hadoop, "of", lambda **_: Folders())
    for link, to, says in (
        ("a", tmp_path / "live", "a is a query's checkpoint. Copy it by itself"),
        ("b", tmp_path / "b", "x/b is a symbolic link to a folder that it lies in. Delete the link"),
    ):
        folder = tmp_path / link / "x"
        folder.mkdir(parents=True)
        (folder / link).symlink_to(to)
        result = CliRunner().invoke(typer_app, ["cp", str(tmp_path / link), str(tmp_path / "copy")])
        assert isinstance(result.exception, InvalidInput)
        assert says in str(result.exception)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the library was asked for."""
    found: dict[str, Any] = {}

    @contextmanager
    def spark_for(options: Any, conf: Any, *addresses: Any) -> Iterator[str]:
        found.update(conf=conf, addresses=addresses)
        yield "spark"

    def rescale(source: str, target: str, partitions: int, **more: Any) -> Rescaled:
        found.update(source=source, partitions=partitions, spark=more["spark"], options=more["options"])
        more["progress"](1, 2, 300)
        return Rescaled(target, "id", 4, 5, 2, partitions, 70, ("dedupe",))

    monkeypatch.setattr(transfer, "spark_for", spark_for)
    monkeypatch.setattr(rewriting, "rescale", rescale)
    return found


def test_it_tells_what_was_made(asked: dict[str, Any]) -> None:
    given = ["rescale", "before", "bk://zk:2181/q-16", "--partitions", "16", "--conf", "spark.master=local[2]"]
    told = CliRunner().invoke(typer_app, [*given, "-o", "fs.bk.ensemble=3"])
    assert told.exit_code == 0, told.output
    assert "bk://zk:2181/q-16: 70 rows of state in 16 partitions in place of 2, of batch 4" in told.stderr
    assert asked == {
        "conf": ["spark.master=local[2]"],
        "addresses": ("before", "bk://zk:2181/q-16"),
        "source": "before",
        "partitions": 16,
        "spark": "spark",
        "options": {"fs.bk.ensemble": "3"},
    }
    assert json.loads(CliRunner().invoke(typer_app, [*given, "--json"]).stdout)["batch"] == 5


def test_the_number_of_partitions_must_be_given(asked: dict[str, Any]) -> None:
    told = CliRunner().invoke(typer_app, ["rescale", "before", "bk://zk:2181/q-16"])
    assert (told.exit_code, asked) == (2, {})

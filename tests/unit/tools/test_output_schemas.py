"""What the commands print with --json fits the schemas in docs/reference/json, and has no key that these don't name."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from jsonschema import Draft202012Validator, ValidationError
from pyspark.sql import Row
from typer.testing import CliRunner

import statestore.checkpoint.difference
import statestore.savepoints.bookkeeper
import statestore.savepoints.topic
from eos.local import Ports, access
from eos.local.clusters import ClusterInstance
from eos.local.instances import Instance
from eos.local.parts import ClusterPorts, Plan
from eos.local.process import ProcessId
from statestore.bk import tree
from statestore.bk.tree import BkLedger, FileRecord, Stored
from statestore.cli import difference, files, ledgers
from statestore.cli.app import typer_app
from statestore.hadoop.file_systems import Status
from statestore.savepoints.stream import Manifest
from statestore.savepoints.topic import Listed
from tools import check_names, command_pages
from tools.output_schemas import OUTPUTS, file_of, meanings_of, schema

RECORDED = Path(__file__).resolve().parents[2] / "integration" / "situations" / "with_json.md"
ANSWER = re.compile(r"^\$ (eos (?:sink )?\w+).*\n((?:[\[{].*\n|[ \]}].*\n)+)exit code \d$", re.MULTILINE)


def strict(part: Any) -> Any:
    """The schema, which also refuses keys that it doesn't name."""
    if isinstance(part, list):
        return [strict(one) for one in part]
    if not isinstance(part, dict):
        return part
    found = {name: strict(one) for name, one in part.items()}
    return found | {"additionalProperties": False} if "required" in part else found


def check(command: str, output: Any) -> None:
    Draft202012Validator(strict(schema(command))).validate(output)


def recorded() -> Iterator[tuple[str, Any]]:
    """What real commands printed; `eos peek` prints an object on a line."""
    for command, text in ANSWER.findall(RECORDED.read_text(encoding="utf-8")):
        for one in text.splitlines() if command == "eos peek" else [text]:
            yield command, json.loads(one)


def keys(part: Any) -> Iterator[str]:
    """The keys of the objects that a schema describes."""
    if isinstance(part, list):
        for one in part:
            yield from keys(one)
    elif isinstance(part, dict):
        yield from part.get("properties", {})
        for one in part.values():
            yield from keys(one)


def test_no_key_and_no_option_is_a_word_that_the_project_no_longer_uses() -> None:
    named = {(command, key) for command in OUTPUTS for key in keys(schema(command))}
    for name in command_pages.APPS:
        for verb, command in command_pages.verbs(name):
            named |= {(verb, str(one.name)) for one in command.params}
    assert ("eos sink list", "status") in named
    assert ("statestore drill shadow", "timeout") in named
    assert [one for one in named if one[1] in check_names.RETIRED] == []


def test_each_command_with_json_has_a_schema() -> None:
    with_json = {
        verb
        for name in command_pages.APPS
        for verb, command in command_pages.verbs(name)
        if any("--json" in one.opts and one.is_flag for one in command.params if one.param_type_name == "option")
    }
    assert with_json == {*OUTPUTS, "statestore savepoint restore"}  # the same as statestore restore
    for command in OUTPUTS:
        Draft202012Validator.check_schema(schema(command))
        assert file_of(command).is_file()


def test_what_real_commands_printed_fits() -> None:
    found = list(recorded())
    for command, output in found:
        check(command, output)
    assert {command for command, _ in found} == {
        "eos doctor",
        "eos peek",
        "eos topics",
        *(f"eos sink {verb}" for verb in ("abort", "adopt", "list", "reset", "show", "verify")),
    }


@pytest.mark.parametrize(
    ("command", "spoil"),
    [
        ("eos sink list", lambda sinks: sinks[0].pop("batch_id")),
        ("eos sink list", lambda sinks: sinks[0].update(status="gone")),
        ("eos sink list", lambda sinks: sinks[0].update(rows="1")),
        ("eos sink show", lambda records: records[0].update(kind="owner")),
        ("eos sink verify", lambda audit: audit.update(more=1)),
        ("eos topics", lambda topics: topics[0].update(topic=None)),
    ],
)
def test_another_output_does_not_fit(command: str, spoil: Callable[[Any], object]) -> None:
    output = next(one for name, one in recorded() if name == command)
    spoil(output)
    with pytest.raises(ValidationError):
        check(command, output)


def test_names_in_one_line_share_a_meaning() -> None:
    docstring = (
        "A thing.\n\nAttributes:\n    one: with a: colon,\n        in two lines.\n    two, three: both.\n\nMore."
    )
    assert meanings_of(docstring) == {"one": "with a: colon, in two lines.", "two": "both.", "three": "both."}


# ---- outputs that no dataclass states, by the commands' own code on stand-ins


def statestore_says(command: str, *words: str) -> Any:
    done = CliRunner().invoke(typer_app, [*command.split()[1:], *words, "--json"])
    assert done.exit_code in (0, 1), done.output
    output = json.loads(done.stdout)
    check(command, output)
    return output


@pytest.mark.parametrize("token", [False, True])
def test_the_status_of_local_instances(token: bool, tmp_path: Path) -> None:
    me = ProcessId.of(os.getpid())
    assert me is not None
    one, several = tmp_path / "one", tmp_path / "several"
    if token:
        access.token_file(one).parent.mkdir(parents=True)
        access.token_file(one).write_text("t")
    several.mkdir()
    ports = ClusterPorts(1, (2, 3, 4), (5, 6), (7, 8))
    (several / "cluster.json").write_text(Plan(ports, {}, "300m", False, 4).to_json())
    found = [
        Instance("one", Ports(1, 2, 3, 4), one, True, me).summary(),
        ClusterInstance("several", several, True).summary(),
        ClusterInstance("new", tmp_path / "new", True).summary(),
    ]
    check("eos local status", found)
    assert ("token" in found[0], len(found[1]["parts"])) == (token, 6)


@pytest.fixture
def hadoop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree with two files, one of them empty, and a ledger that a savepoint retains."""
    folder = Status("bk://zk:2181/q", "/q", "q", 0, 1, True)
    inside = Status("bk://zk:2181/q/one", "/q/one", "one", 9, 1, False)
    there = {one.uri: one for one in (folder, inside, Status("bk://zk:2181/none", "/none", "none", 0, 1, False))}
    there |= {"file:///q/one": Status("file:///q/one", "/q/one", "one", 9, 1, False)}
    records = {
        "/q/one": FileRecord("/q/one", "1-1", 0, 5, 0, 2, 4, 9, 1, 1),
        "/none": FileRecord("/none", "1-2", 0, tree.NO_LEDGER, 0, -1, 4, 0, 0, 1),
    }
    stored = Stored(3, 2, 2, True, 90, ("bookie:3181",))
    hadoop = SimpleNamespace(options={}, status=there.get, list=lambda uri: [inside], walk=lambda uri: [inside])
    monkeypatch.setattr(files, "_hadoop", lambda uri, option: hadoop)
    monkeypatch.setattr(tree, "files", lambda hadoop, at: {path: records[path] for path in records if at.path in path})
    monkeypatch.setattr(tree, "ledgers", lambda *of: {5: BkLedger(5, "p", True, ("1-1", "s-first"), stored)})


@pytest.mark.usefixtures("hadoop")
def test_files_and_their_ledgers() -> None:
    assert len(statestore_says("statestore ls", "bk://zk:2181/q")) == 1
    whole = statestore_says("statestore stat", "bk://zk:2181/q/one")
    assert (whole["ledger_savepoints"], whole["ledger_quorum"]) == (["first"], "3/2/2")
    assert {*whole, "names"} == {*schema("statestore stat")["properties"]}
    assert statestore_says("statestore stat", "bk://zk:2181/none")["ledger"] is None
    assert statestore_says("statestore stat", "bk://zk:2181/q")["names"] == 1
    assert "crc32c" not in statestore_says("statestore stat", "file:///q/one")
    assert statestore_says("statestore du", "bk://zk:2181/q")["with_copies_bytes"] == 180
    assert {*statestore_says("statestore du", "file:///q/one")} == {"files", "bytes", "names"}


def test_what_nobody_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers, "_store", lambda uri, option: None)
    monkeypatch.setattr(ledgers, "_asked", lambda store, what: ([5, 6], {"ledger 7": "not permitted"}))
    monkeypatch.setattr(statestore.savepoints.bookkeeper, "remove_left", lambda store: ["reading-1"])
    monkeypatch.setattr(
        statestore.savepoints.bookkeeper, "left_behind", lambda store: [SimpleNamespace(name="reading-1")]
    )
    assert statestore_says("statestore gc", "bk://zk:2181/")["freed"] == [5, 6]
    assert statestore_says("statestore gc", "bk://zk:2181/")["left_alone"] == {"ledger 7": "not permitted"}
    assert statestore_says("statestore orphans", "bk://zk:2181/")["readings"] == ["reading-1"]


def test_the_difference_of_states(monkeypatch: pytest.MonkeyPatch) -> None:
    where = {"operator": 0, "operator_name": "dedupe", "store": "default", "change": "only in A"}
    found = MagicMock()
    found.persist.return_value = found
    found.groupBy.return_value.count.return_value.collect.return_value = [Row(**where, count=1)]
    shown = [Row(**where, key='{"a":1}', a="{}", b=None)]
    found.orderBy.return_value.limit.return_value.collect.return_value = shown
    monkeypatch.setattr(difference, "spark_for", lambda *asked: nullcontext())
    monkeypatch.setattr(statestore.checkpoint.difference, "state_difference", lambda *asked, **more: found)
    output = statestore_says("statestore diff", "bk://zk:2181/a", "bk://zk:2181/b")
    assert (output["differences"], output["stores"][0]["changes"]) == (1, {"only in A": 1})


def test_savepoints_on_a_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = Manifest("id", "one", "file:///q", 7, "5f", 5, 1, 2, 3, 4, 1)
    listed = [Listed(manifest, "one", "ready", ""), Listed(None, "8:13", "damaged", "the entry")]
    monkeypatch.setattr(statestore.savepoints.topic, "list_topic", lambda *asked: listed)
    output = statestore_says("statestore savepoint list", "pulsar://host:6650/public/default/savepoints")
    assert [one["manifest"] and one["manifest"]["batch"] for one in output] == [7, None]

"""Checkpoints that Spark wrote, damaged in each way: what is wrong is found, named, and nothing else is."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from eos.commit.registration import Registration
from statestore.checkpoint import FileEntry, LocalFiles, committed, needs_of
from statestore.checkpoint.findings import CheckpointFinding
from statestore.checkpoint.inspection import inspect
from statestore.checkpoint.needs import restart_of
from statestore.errors import InvalidInput, NotFound
from tests.unit.statestore.checkpoint.conftest import NAMES, Copy, flip, inspect_one, needed

CHANGES = {"hdfs": "delta", "rocksdb": "zip", "changelog1": "changelog", "changelog2": "changelog"}


def errors(folder: Path, batches: int = 2) -> list[CheckpointFinding]:
    """The errors, for a Spark that repairs nothing."""
    found = inspect_one(LocalFiles(folder), batches, repairs=False).findings
    return [finding for finding in found if finding.severity == "error"]


def only(folder: Path) -> CheckpointFinding:
    """The one file that the errors name."""
    found = errors(folder)
    assert len({finding.file for finding in found}) == 1, [finding.message for finding in found]
    return found[0]


@pytest.mark.parametrize("name", NAMES)
def test_what_spark_wrote_is_clean(name: str, copy: Copy) -> None:
    folder = copy(name)
    found = inspect_one(LocalFiles(folder))
    assert [finding.message for finding in found.findings] == []
    last = max(int(path.name) for path in (folder / "commits").iterdir())
    assert found.batches == (last - 1, last)
    assert found.query_id == json.loads((folder / "metadata").read_text())["id"]
    assert all((folder / path).stat().st_size == size for path, size in found.files.items())


@pytest.mark.parametrize("name", NAMES)
def test_every_needed_file_is_missed(name: str, copy: Copy) -> None:
    """Each file in turn is taken away: an error names it. All others are there, so none names another."""
    folder = copy(name)
    files = LocalFiles(folder)
    whole = needs_of(files, *restart_of(files))
    planned = f"offsets/{whole.batch + 1}"
    for path, need in whole.files.items():
        if need.kind in ("crc", "commits", "source", "operator"):
            continue  # a .crc may be missing; a last commit's absence is a crash; the others have tests of their own
        if path == planned or path.endswith("_metadata/schema"):
            continue  # Spark plans the batch again, and writes the schema again
        data = (folder / path).read_bytes()
        (folder / path).unlink()
        if need.kind == "snapshot" or (need.kind == "zip" and "rocksdb-" not in name):
            # Its changes from before may be there: then the state can be had without it, and nothing is wrong.
            assert all(finding.kind == "missing" for finding in errors(folder))
        else:
            found = errors(folder)
            # A store without changelogs falls back on an earlier snapshot and misses changes.
            assert path in {finding.file for finding in found}, (path, [finding.message for finding in found])
            assert all(finding.remedy for finding in found)
        (folder / path).write_bytes(data)
    assert errors(folder) == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("damage", ["cut", "flip", "empty"])
def test_damaged_changes_are_named(name: str, damage: str, copy: Copy) -> None:
    folder = copy(name)
    file = needed(folder, CHANGES[name.partition("-")[0]])
    file.with_name(file.name + ".crc").unlink(missing_ok=True)  # found without Spark's checksum too
    if damage == "flip":
        flip(file)
    else:
        file.write_bytes(file.read_bytes()[: -10 if damage == "cut" else 0])
    finding = only(folder)
    assert finding.kind == "damaged"
    assert finding.file == str(file.relative_to(folder))
    assert finding.batches


@pytest.mark.parametrize("kind", ["changelog", "zip"])
def test_sparks_own_checksums_are_compared(kind: str, copy: Copy) -> None:
    folder = copy("changelog2-join")
    file = needed(folder, kind)
    checksum = file.with_name(file.name + ".crc")
    said = json.loads(checksum.read_text())
    checksum.write_text(json.dumps(said | {"value": said["value"] ^ 1}))
    assert "CRC32C" in only(folder).message
    checksum.write_text(json.dumps(said | {"mainFileSize": said["mainFileSize"] + 1}))
    assert "bytes" in only(folder).message
    checksum.write_text("{}")
    assert ".crc can't be read" in only(folder).message
    checksum.unlink()
    assert errors(folder) == []


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("hdfs")])
def test_tables_are_compared_with_their_snapshot(name: str, copy: Copy) -> None:
    folder = copy(name)
    table = needed(folder, "table")
    data = table.read_bytes()
    table.write_bytes(data[:-1])
    assert "The snapshot that refers to it says" in only(folder).message
    table.write_bytes(b"x" * len(data))
    assert "doesn't end as an SST file" in only(folder).message
    table.unlink()
    finding = only(folder)
    assert finding.kind == "missing"
    assert "refers to it" in finding.message


def lose_commit(folder: Path) -> str:
    (folder / "commits" / "6").unlink()
    return "commits/6"


def lose_offsets(folder: Path) -> str:
    (folder / "offsets" / "5").unlink()
    return "offsets/5"


def lose_the_commit_before_a_planned_batch(folder: Path) -> str:
    last = max(int(path.name) for path in (folder / "commits").iterdir())
    (folder / "offsets" / str(last + 1)).write_text((folder / "offsets" / str(last)).read_text())
    (folder / "commits" / str(last)).unlink()
    return f"commits/{last}"


def garble_commit(folder: Path) -> str:
    last = max(int(path.name) for path in (folder / "commits").iterdir())
    (folder / "commits" / str(last)).write_text("v1\n{")
    return f"commits/{last}"


def garble_planned(folder: Path) -> str:
    last = max(int(path.name) for path in (folder / "commits").iterdir())
    (folder / "offsets" / str(last + 1)).write_text("x9\n{}")
    return f"offsets/{last + 1}"


def lose_metadata(folder: Path) -> str:
    (folder / "metadata").unlink()
    return "metadata"


@pytest.mark.parametrize(
    "damage",
    [
        garble_commit,
        garble_planned,
        lose_metadata,
    ],
)
def test_the_logs_are_compared(damage: Callable[[Path], str], copy: Copy) -> None:
    folder = copy("hdfs-aggregation")
    expected = damage(folder)
    finding = only(folder)
    assert finding.file == expected
    assert finding.remedy


@pytest.mark.parametrize("damage", [lose_commit, lose_offsets, lose_the_commit_before_a_planned_batch])
def test_what_spark_does_not_ask_for_is_a_warning(damage: Callable[[Path], str], copy: Copy) -> None:
    folder = copy("hdfs-aggregation")
    expected = damage(folder)
    (finding,) = inspect_one(LocalFiles(folder)).findings
    assert (finding.severity, finding.file) == ("warning", expected)
    assert finding.remedy


def test_without_the_commit_nothing_names_the_state_in_format_2(copy: Copy) -> None:
    folder = copy("changelog2-transform")
    expected = lose_the_commit_before_a_planned_batch(folder)
    assert expected in {finding.file for finding in errors(folder)}


@pytest.mark.parametrize("name", NAMES)
def test_a_state_that_is_gone_is_no_state_to_go_on_from(name: str, copy: Copy) -> None:
    folder = copy(name)
    shutil.rmtree(folder / "state")
    known = name.startswith("changelog2")  # by the commit
    severities = {finding.severity for finding in inspect(LocalFiles(folder)).findings}
    assert severities - {"warning"} == {"error" if known else "unknown"}
    assert any(finding.severity == "error" for finding in inspect(LocalFiles(folder), stateful=True).findings)
    assert known or inspect(LocalFiles(folder), stateful=False).findings == ()
    (folder / "state").mkdir()
    assert errors(folder) != []


@pytest.mark.parametrize(("noted", "expected"), [(True, {"error"}), (False, set()), (None, {"unknown"})])
def test_the_sink_has_noted_whether_there_should_be_state(noted: bool | None, expected: set[str], copy: Copy) -> None:
    folder = copy("hdfs-aggregation")
    shutil.rmtree(folder / "state")
    (folder / "eos-sink.json").write_text(Registration("name", "topic", 1, stateful=noted).text)
    assert {finding.severity for finding in inspect(LocalFiles(folder)).findings} == expected
    for unreadable in ("cut", '{"name": "n", "control_topic": "t", "last_number": 1, "later": 1}'):
        (folder / "eos-sink.json").write_text(unreadable)
        assert {finding.severity for finding in inspect(LocalFiles(folder)).findings} == {"unknown"}


def test_in_format_2_the_commit_says_that_a_query_keeps_no_state(copy: Copy) -> None:
    folder = copy("hdfs-aggregation")
    shutil.rmtree(folder / "state")
    last = max(int(path.name) for path in (folder / "commits").iterdir())
    (folder / "commits" / str(last)).write_text('v2\n{"nextBatchWatermarkMs":0,"stateUniqueIds":{}}')
    assert inspect(LocalFiles(folder)).findings == ()


@pytest.mark.parametrize("lost", ["_metadata", "_metadata/v2", "_metadata/v2/0"])
def test_an_operator_with_schemas_needs_the_metadata_that_name_them(lost: str, copy: Copy) -> None:
    """Without these an operator may be one of before Spark 3.4, but that one has no such schemas."""
    folder = copy("changelog1-transform")
    gone = folder / "state" / "0" / lost
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    assert only(folder).file == "state/0/_metadata/v2/*"


def test_a_lost_schema_is_a_note_since_spark_writes_it_again(copy: Copy) -> None:
    folder = copy("hdfs-aggregation")
    (folder / "state/0/0/_metadata/schema").unlink()
    (finding,) = inspect_one(LocalFiles(folder)).findings
    assert (finding.severity, finding.kind) == ("warning", "note")
    assert "state/0/0/_metadata/schema is not there" in finding.message


@pytest.mark.parametrize("text", ["", 'v1\n{"operator', "v1\n[]"])
def test_damaged_metadata_of_an_operator_is_a_note_since_spark_does_not_read_it(text: str, copy: Copy) -> None:
    folder = copy("hdfs-aggregation")
    (folder / "state/0/_metadata/metadata").write_text(text)
    (finding,) = inspect_one(LocalFiles(folder)).findings
    assert (finding.severity, finding.kind) == ("warning", "note")
    assert "state/0 has metadata that can't be read" in finding.message


@pytest.mark.parametrize("log", ["offsets", "commits"])
def test_a_batch_of_another_spelling_is_asked_for_by_its_number(log: str, copy: Copy) -> None:
    """Spark takes the number from any name that is one, and then opens the file of that number."""
    folder = copy("hdfs-aggregation")
    shutil.copy(folder / log / "7", folder / log / "0012")
    assert f"{log}/12" in {finding.file for finding in errors(folder)}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", ["[" * 100_000, "1e999", "NaN", "9" * 5_000])
def test_a_value_that_python_makes_nothing_of_is_named(name: str, value: str, copy: Copy) -> None:
    """In each file that has JSON in it, in the place of its first number, or of its first text."""
    folder = copy(name)
    for kind in ("metadata", "offsets", "commits", "operator", "crc"):
        files = LocalFiles(folder)
        if kind not in {need.kind for need in needs_of(files, committed(files)[-1]).files.values()}:
            continue
        file = needed(folder, kind)
        data = file.read_text()
        file.write_text(re.sub(r'(?<=":)(\d+|"[^"]*")', value, data, count=1))
        path = str(file.relative_to(folder)).removesuffix(".crc")
        assert any(path in finding.message for finding in inspect_one(files).findings)
        file.write_text(data)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("length", [0, 1, 5, 60, -1])
def test_a_schema_that_is_cut_is_damaged(name: str, length: int, copy: Copy) -> None:
    folder = copy(name)
    schema = needed(folder, "schema")
    schema.write_bytes(schema.read_bytes()[:length])
    assert only(folder).file == str(schema.relative_to(folder))


def test_operators_are_numbered_without_a_gap(copy: Copy) -> None:
    folder = copy("hdfs-aggregation")
    (folder / "state" / "0").rename(folder / "state" / "1")
    assert "state/0" in {finding.file for finding in errors(folder)}


def test_a_lineage_that_the_commits_contradict(copy: Copy) -> None:
    folder = copy("changelog2-transform")
    last = max(int(path.name) for path in (folder / "commits").iterdir())
    commit = folder / "commits" / str(last - 1)
    said = json.loads(commit.read_text().partition("\n")[2])
    said["stateUniqueIds"]["0"][0][0] = "another"
    commit.write_text("v2\n" + json.dumps(said))
    (finding,) = inspect_one(LocalFiles(folder), 1).findings
    assert "names another state" in finding.message
    assert (finding.severity, finding.batches) == ("warning", (last,)), "Spark doesn't compare them, and goes on"


def test_a_batch_that_is_only_planned_is_fine(copy: Copy) -> None:
    folder = copy("hdfs-aggregation")
    last = max(int(path.name) for path in (folder / "commits").iterdir())
    text = (folder / "offsets" / str(last)).read_text()
    (folder / "offsets" / str(last + 1)).write_text(text)
    assert errors(folder) == []


def test_a_query_that_has_only_begun_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text('{"id":"x"}')
    found = inspect(LocalFiles(tmp_path))
    assert [finding.severity for finding in found.findings] == ["warning"]
    assert found.batches == ()


def test_no_checkpoint_and_no_batches_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="There is no checkpoint"):
        inspect(LocalFiles(tmp_path))
    with pytest.raises(InvalidInput, match="1 or more"):
        inspect(LocalFiles(tmp_path), 0)


class Running(LocalFiles):
    """A checkpoint whose query commits a batch, and cleans the oldest away, while it is read."""

    def __init__(self, folder: Path, path: str, times: int) -> None:
        super().__init__(folder)
        self.path, self.times = path, times

    def read(self, path: str) -> bytes:
        if path.endswith(self.path) and self.times:
            self.times -= 1
            last = committed(self)[-1]
            for log in ("offsets", "commits"):
                shutil.copy(self.folder / log / str(last), self.folder / log / str(last + 1))
            for file in (self.folder / "state" / "0").glob(f"*/{last + 1}.delta"):
                file.rename(file.with_name(f"{last + 2}.delta"))
            for file in (self.folder / "state" / "0").glob("*/*.snapshot"):
                file.rename(file.with_name(f"{last + 1}.snapshot"))
            raise NotFound(f"{path} was cleaned away")
        return super().read(path)


def test_what_a_running_query_cleans_away_is_not_missing(copy: Copy) -> None:
    folder = copy("hdfs-aggregation")
    files = Running(folder, ".delta", times=1)
    found = inspect_one(files, 1)
    assert [finding.message for finding in found.findings] == []
    assert found.batches == (committed(files)[-1],)


def test_a_batch_that_is_committed_between_two_listings(copy: Copy) -> None:
    folder = copy("hdfs-aggregation")

    class Quick(LocalFiles):
        def list(self, path: str) -> Mapping[str, FileEntry]:
            listed = super().list(path)
            if path == "commits" and len(listed) == count:
                last = committed(LocalFiles(folder))[-1]
                for log, batch in (("offsets", last + 1), ("commits", last + 1), ("offsets", last + 2)):
                    shutil.copy(folder / "offsets" / str(last), folder / log / str(batch))
                (folder / "commits" / str(last + 1)).write_text((folder / "commits" / str(last)).read_text())
            return listed

    count = len(LocalFiles(folder).list("commits"))
    found = inspect_one(Quick(folder))
    # Its state was not written in this test; the logs agree with each other.
    assert {finding.kind for finding in found.findings} == {"missing"}
    assert all("state" in str(finding.file) for finding in found.findings)


@pytest.mark.parametrize("batches", [0, -1, 2.0, "2", None, True])
def test_a_number_of_batches_that_is_none_is_refused(batches: Any, copy: Copy) -> None:
    with pytest.raises(InvalidInput, match=r"batches is .*. Give a whole number, 1 or more"):
        inspect(LocalFiles(copy("hdfs-aggregation")), batches)


def test_progress_is_told(copy: Copy) -> None:
    told: list[tuple[int, int, str]] = []
    inspect_one(LocalFiles(copy("hdfs-aggregation")), progress=lambda *now: told.append(now))
    assert told[0][0] == 0
    assert told[-1][0] == told[-1][1] == len(told) - 1

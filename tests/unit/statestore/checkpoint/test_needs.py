"""What a batch needs where something is lost: the last operator's folder, the note of their number, a file."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import pytest

from eos.commit.registration import REGISTRATION, Registration
from statestore.checkpoint import LocalFiles, read_operator
from statestore.checkpoint.cut import cut_of
from statestore.checkpoint.findings import CheckpointFinding
from statestore.checkpoint.inspection import inspect
from statestore.errors import (
    CutFailed,
    Damaged,
    InvalidInput,
    NotFound,
    StateStoreError,
    Unavailable,
    UnknownVersion,
)
from tests.unit.statestore.checkpoint.conftest import Copy, inspect_one
from tests.unit.statestore.checkpoint.test_changes import text


@pytest.fixture
def two(copy: Copy) -> Path:
    """A checkpoint in format 1 with two operators."""
    folder = copy("hdfs-aggregation")
    shutil.copytree(folder / "state" / "0", folder / "state" / "1")
    metadata = folder / "state" / "1" / "_metadata" / "metadata"
    version, text = metadata.read_text().split("\n")
    said = json.loads(text)
    said["operatorInfo"]["operatorId"] = 1
    metadata.write_text(f"{version}\n{json.dumps(said)}")
    return folder


def note(folder: Path, operators: int | None) -> None:
    (folder / REGISTRATION).write_text(Registration("n", "t", 1, stateful=True, operators=operators).text)


def found(folder: Path, operators: int | None = None) -> list[CheckpointFinding]:
    return list(inspect(LocalFiles(folder), operators=operators).findings)


def test_as_many_as_the_sink_has_noted(two: Path) -> None:
    note(two, 2)
    assert found(two) == []
    cut_of(LocalFiles(two), "here")
    shutil.rmtree(two / "state" / "1")
    (finding,) = found(two)
    assert (finding.severity, finding.kind, finding.file) == ("error", "missing", "state/1")
    assert "the query has 2 stateful operators" in finding.message
    with pytest.raises(CutFailed, match="state/1"):
        cut_of(LocalFiles(two), "here")
    shutil.rmtree(two / "state")
    assert {finding.file for finding in found(two)} == {"state/0", "state/1"}


@pytest.mark.parametrize("noted", [None, "nothing"])
def test_where_nothing_says_it_that_is_the_answer(noted: str | None, two: Path) -> None:
    if noted is None:
        note(two, None)
    for there in (2, 1):
        (finding,) = found(two)
        assert (finding.severity, finding.kind) == ("unknown", "note")
        assert f"state of {there} stateful operator" in finding.message
        assert "--operators" in finding.remedy
        shutil.rmtree(two / "state" / str(there - 1))


def test_the_caller_may_know_it(two: Path) -> None:
    assert found(two, 2) == []
    (finding,) = found(two, 1)
    assert (finding.severity, "the query is said to have 1" in finding.message) == ("unknown", True)
    shutil.rmtree(two / "state" / "1")
    assert [(one.severity, one.file) for one in found(two, 2)] == [("error", "state/1")]
    assert found(two, 1) == []
    shutil.rmtree(two / "state")
    assert [(one.severity, one.file) for one in found(two, 1)] == [("error", "state/0")]
    assert found(two, 0) == []
    with pytest.raises(InvalidInput, match="operators is -1"):
        found(two, -1)


@pytest.mark.parametrize("name", ["changelog2-join", "changelog2-transform"])
def test_in_checkpoint_format_2_the_commit_says_it(name: str, copy: Copy) -> None:
    folder = copy(name)
    assert found(folder) == []
    shutil.rmtree(folder / "state" / "0")
    assert any(finding.severity == "error" for finding in found(folder))


# ---- operators


def checkpoint(folder: Path, partitions: int, conf: dict[str, str]) -> LocalFiles:
    (folder / "state/0/_metadata").mkdir(parents=True)
    store = {"storeName": "default", "numColsPrefixKey": 0, "numPartitions": partitions}
    said = {"operatorInfo": {"operatorId": 0, "operatorName": "dedupe"}, "stateStoreInfo": [store]}
    (folder / "state/0/_metadata/metadata").write_text(f"v1\n{json.dumps(said)}")
    (folder / "offsets").mkdir()
    (folder / "offsets/4").write_text(f"v1\n{json.dumps({'conf': conf})}\n-")
    return LocalFiles(folder)


def test_state_that_was_repartitioned_has_the_partitions_of_its_batch(tmp_path: Path) -> None:
    """Spark leaves metadata of v1 as it was, so a copy by it would lack the new partitions."""
    files = checkpoint(tmp_path, 2, {"spark.sql.shuffle.partitions": "3"})
    assert read_operator(files, 0, 4).partitions == 3
    assert read_operator(files, 0, 3).partitions == 2, "of a batch whose offsets are gone the metadata says all"


@pytest.mark.parametrize(("fields", "partitions"), [("[]", 1), ('[{"name":"k"}]', 4)])
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_without_keys_there_is_one_group_and_one_partition(
    version: str, fields: str, partitions: int, tmp_path: Path
) -> None:
    files = checkpoint(tmp_path, 4, {"spark.sql.shuffle.partitions": "4"})
    (tmp_path / "state/0/0/_metadata").mkdir(parents=True)
    keys = f'{{"type":"struct","fields":{fields}}}'
    pieces = struct.pack(">i", 1) if version == "v2" else b""
    (tmp_path / "state/0/0/_metadata/schema").write_bytes(text(version) + 2 * (pieces + text(keys)))
    assert read_operator(files, 0, 4).partitions == partitions
    (tmp_path / "state/0/0/_metadata/schema").write_bytes(text(version))
    assert read_operator(files, 0, 4).partitions == 4


def test_offsets_without_that_setting_say_nothing(tmp_path: Path) -> None:
    assert read_operator(checkpoint(tmp_path, 2, {}), 0, 4).partitions == 2


def test_a_cut_of_a_checkpoint_that_may_have_lost_state_says_so(two: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A copy and a savepoint were made without a word, of what `verify` says that it can't be known."""
    shutil.rmtree(two / "state" / "1")
    cut_of(LocalFiles(two), "here")
    (warning,) = caplog.messages
    assert warning.startswith(
        "State may be lost in here, where there is state of 1 stateful operator, and nothing here says how many"
    )
    assert "--operators N" in warning
    with pytest.raises(CutFailed, match=r"state/1: the query has 2 stateful operators. Its state is lost"):
        cut_of(LocalFiles(two), "here", operators=2)
    caplog.clear()
    cut_of(LocalFiles(two), "here", operators=1)
    assert caplog.messages == []
    shutil.rmtree(two / "state")
    cut_of(LocalFiles(two), "here")
    (warning,) = caplog.messages
    assert warning.startswith(
        "State may be lost in here, where there is no state, and nothing here says whether the query keeps any"
    )
    caplog.clear()
    cut_of(LocalFiles(two), "here", operators=0)
    assert caplog.messages == []


class Unread(LocalFiles):
    """A checkpoint of which one file can't be read."""

    def __init__(self, folder: Path, path: str, error: StateStoreError) -> None:
        super().__init__(folder)
        self._path, self._error = path, error

    def read(self, path: str) -> bytes:
        if path == self._path:
            raise self._error
        return super().read(path)


UNREAD = {"other bytes": Damaged("other bytes"), "a later version": UnknownVersion("v9"), "away": Unavailable("away")}


@pytest.mark.parametrize("error", UNREAD.values(), ids=UNREAD)
@pytest.mark.parametrize("has_state", [True, False])
def test_a_note_that_cannot_be_read_is_a_finding(has_state: bool, error: StateStoreError, copy: Copy) -> None:
    folder = copy("hdfs-aggregation")
    if not has_state:
        shutil.rmtree(folder / "state")
    files = Unread(folder, REGISTRATION, error)
    unknown = [one for one in inspect(files).findings if one.severity == "unknown"]
    assert unknown
    assert all(f"{REGISTRATION} can't be read ({error})" in one.message for one in unknown)
    if has_state:
        assert cut_of(files, "x").batch_id == 7


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Damaged("other bytes"), "damaged"),
        (UnknownVersion("v9"), "version"),
        (Unavailable("away"), "unreadable"),
        (NotFound("cleaned away since it was listed"), "missing"),
    ],
)
@pytest.mark.parametrize("path", ["state/0/_metadata/v2/0", "commits/7", "offsets/7"])
def test_each_error_of_a_file_is_a_finding_of_its_kind(
    path: str, error: StateStoreError, kind: str, copy: Copy
) -> None:
    files = Unread(copy("changelog2-transform"), path, error)
    kinds = {one.kind for one in inspect_one(files).findings if one.file and path.startswith(one.file)}
    assert kinds == {kind}
    if path.startswith("state"):
        with pytest.raises(CutFailed, match=str(error)):
            cut_of(files, "x")

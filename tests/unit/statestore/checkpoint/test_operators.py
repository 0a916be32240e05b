"""Into how many partitions an operator's state is divided."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from statestore.checkpoint import LocalFiles, read_operator
from tests.unit.statestore.checkpoint.test_changes import text


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

"""Into how many partitions an operator's state is divided."""

from __future__ import annotations

import json
from pathlib import Path

from statestore.checkpoint import LocalFiles, read_operator


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


def test_offsets_without_that_setting_say_nothing(tmp_path: Path) -> None:
    assert read_operator(checkpoint(tmp_path, 2, {}), 0, 4).partitions == 2

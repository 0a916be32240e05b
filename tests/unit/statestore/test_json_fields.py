"""What the command line prints and what lies on disk: its bytes stay, whatever the fields are called in Python."""

from __future__ import annotations

import json
from typing import Any

import pytest

from statestore.checkpoint.transfer import Copied
from statestore.errors import Damaged
from statestore.json_fields import from_json, to_json
from statestore.rewriting.rescaling import Rescaled
from statestore.roll_forward.steps import RollForward
from statestore.savepoints.periodic import Round
from statestore.savepoints.savepoint import Savepoint
from statestore.savepoints.stream import Manifest

SAVEPOINT = Savepoint("p-1", "ready", "bk://zk:2181/q", 0, 7, "5f")
SAVEPOINT_TEXT = (
    '{"name": "p-1", "state": "ready", "source": "bk://zk:2181/q", "created_ms": 0, "batch": 7, "query": "5f", '
    '"files": 0, "size": 0, "ledgers": 0, "chunks": 0, "crc32c": 0}'
)
MANIFEST = Manifest("id", "one", "file:///q", 7, "5f", 5, 1, 2, 3, 4, 1)
MANIFEST_BYTES = (
    b'{"v":1,"id":"id","name":"one","source":"file:///q","batch":7,"query":"5f","created_ms":5,"files":1,"size":2,'
    b'"crc32c":3,"data":4,"lists":1}'
)


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (SAVEPOINT, SAVEPOINT_TEXT),
        (Round(SAVEPOINT, ("p-0",)), f'{{"made": {SAVEPOINT_TEXT}, "deleted": ["p-0"], "failures": []}}'),
        (Copied(7, 1, 2), '{"batch": 7, "files": 1, "bytes": 2}'),
        (RollForward("bk://q", 3, 7), '{"checkpoint": "bk://q", "began_at": 3, "batch": 7}'),
        (
            Rescaled("bk://q", "5f", 6, 7, 2, 4, 9, ("a",)),
            '{"checkpoint": "bk://q", "query": "5f", "state_of": 6, "batch": 7, "partitions_before": 2, '
            '"partitions": 4, "rows": 9, "operators": ["a"]}',
        ),
    ],
)
def test_a_result_as_it_is_printed(result: Any, text: str) -> None:
    assert json.dumps(to_json(result)) == text


def test_a_savepoint_of_the_jar_is_read() -> None:
    assert Savepoint.said(SAVEPOINT_TEXT) == SAVEPOINT
    assert SAVEPOINT.batch_id == 7


def test_the_manifest_on_a_topic() -> None:
    assert MANIFEST.encode() == MANIFEST_BYTES
    assert Manifest.decode(MANIFEST_BYTES) == MANIFEST


@pytest.mark.parametrize("wrong", [b'"batch_id":7', b'"batch":7,"batch_id":8'])
def test_the_name_of_python_is_not_a_key_on_disk(wrong: bytes) -> None:
    with pytest.raises(Damaged, match="its manifest cannot be read"):
        Manifest.decode(MANIFEST_BYTES.replace(b'"batch":7', wrong))


def test_keys_come_back() -> None:
    assert from_json(to_json(Copied(7, 1, 2))) == {"batch_id": 7, "files": 1, "bytes": 2}

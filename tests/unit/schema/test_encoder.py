from __future__ import annotations

import pyarrow as pa
import pytest

from eos.errors import InvalidInput
from eos.schema.description import described
from eos.schema.encoder import encoder_of
from tests.unit.schema.registered import field, golden, record, registered


def test_a_schema_has_the_encoder_of_its_kind() -> None:
    assert encoder_of(described(registered("INT16"))).encode(pa.array([258])).to_pylist() == [b"\1\2"]
    schema = described(registered("AVRO", record(field("a", "int"))))
    assert encoder_of(schema).encode(pa.array([{"a": 1}, None])).to_pylist() == [b"\2", None]


@pytest.mark.parametrize("asked", ["JSON", "KEY_VALUE INLINE"])
def test_what_is_written_elsewhere_or_nowhere_has_none(asked: str) -> None:
    with pytest.raises(InvalidInput, match="are not written here"):
        encoder_of(described(golden(asked)[0]))

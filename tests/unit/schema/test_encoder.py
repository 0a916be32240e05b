from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from eos.errors import InvalidInput
from eos.schema.description import Pair, Primitive, Record, described
from eos.schema.encoder import PairEncoder, encoder_of
from eos.schema.errors import Unencodable
from tests.unit.schema.registered import field, golden, record, registered


def test_a_schema_has_the_encoder_of_its_kind() -> None:
    assert encoder_of(described(registered("INT16"))).encode(pa.array([258])).to_pylist() == [b"\1\2"]
    schema = described(registered("AVRO", record(field("a", "int"))))
    assert encoder_of(schema).encode(pa.array([{"a": 1}, None])).to_pylist() == [b"\2", None]


PAIRS = pa.struct({"key": pa.string(), "value": pa.int32()})


@pytest.mark.parametrize(
    ("asked", "pair"), [("KEY_VALUE INLINE", {"key": "k", "value": 7}), ("NULL_KEY", {"key": None, "value": 7})]
)
def test_an_inline_pair_is_written_as_the_java_client_does(asked: str, pair: dict[str, Any]) -> None:
    schema, value = golden(asked)
    assert encoder_of(described(schema)).encode(pa.array([None, pair, None], PAIRS)).to_pylist() == [None, value, None]


def test_a_separated_pair_has_its_key_in_the_message_as_with_the_java_client() -> None:
    schema, value = golden("KEY_VALUE SEPARATED")
    pairs = pa.array([None, {"key": "k", "value": 7}, {"key": "k", "value": None}, {"key": None, "value": 7}], PAIRS)
    encoder = encoder_of(described(schema))
    assert isinstance(encoder, PairEncoder)
    assert encoder.encode(pairs).to_pylist() == [None, value, None, value]
    assert encoder.keys(pairs).to_pylist() == [None, b"k", b"k", None]


def test_what_is_below_a_null_pair_is_not_written() -> None:
    schema, _ = golden("KEY_VALUE SEPARATED")
    columns = [pa.array(["hidden"]), pa.array([7], pa.int32())]
    hidden = pa.StructArray.from_arrays(columns, ["key", "value"], mask=pa.array([True]))
    encoder = encoder_of(described(schema))
    assert isinstance(encoder, PairEncoder)
    assert (encoder.encode(hidden).to_pylist(), encoder.keys(hidden).to_pylist()) == ([None], [None])


def test_a_wrong_part_of_a_pair_is_named() -> None:
    key, value = described(registered("STRING")), described(registered("AVRO", record(field("a", "int"))))
    assert isinstance(key, Primitive)
    assert isinstance(value, Record)
    of_ints = pa.struct({"key": pa.string(), "value": pa.struct({"a": pa.int32()})})
    pairs = pa.array([{"key": "k", "value": {"a": 1}}, {"key": "k", "value": {"a": None}}], of_ints)
    for separated in (True, False):
        with pytest.raises(Unencodable, match=r"row 1, field 'value\.a': it is null") as raised:
            encoder_of(Pair(separated, key, value)).encode(pairs)
        assert raised.value.field == "value.a"


@pytest.mark.parametrize("form", ["JSON", "a pair with JSON in it"])
def test_what_is_written_elsewhere_or_nowhere_has_none(form: str) -> None:
    json = described(golden("JSON")[0])
    assert isinstance(json, Record)
    with pytest.raises(InvalidInput, match="are not written here"):
        encoder_of(json if form == "JSON" else Pair(False, Primitive("STRING"), json))

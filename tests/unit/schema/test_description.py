from __future__ import annotations

import pytest

from eos.errors import InvalidInput
from eos.schema.description import Pair, Primitive, Record, described, same
from tests.unit.schema.registered import TOPIC, field, golden, record, registered

KEY_VALUE = {"key.schema.type": "STRING", "value.schema.type": "INT32"}


def test_a_primitive_is_its_kind_and_a_record_its_text() -> None:
    assert described(registered("INT32")) == Primitive("INT32")
    flights = described(golden("JSON")[0])
    assert isinstance(flights, Record)
    assert (flights.format, flights.node.fields[0].name) == ("JSON", "carrier")


@pytest.mark.parametrize("encoding", ["INLINE", "SEPARATED"])
def test_a_key_value_schema_of_the_java_client(encoding: str) -> None:
    given = described(golden(f"KEY_VALUE {encoding}")[0])
    assert given == Pair(encoding == "SEPARATED", Primitive("STRING"), Primitive("INT32"))


def test_a_key_value_schema_holds_the_texts_of_both() -> None:
    text = b'{"type": "record", "name": "R", "fields": []}'
    none, sized = b"\xff\xff\xff\xff", len(text).to_bytes(4, "big") + text
    given = described(registered("KEY_VALUE", sized + none, {"key.schema.type": "AVRO"}))
    other = described(registered("KEY_VALUE", none + sized, {"value.schema.type": "AVRO"}))
    assert isinstance(given, Pair)
    assert isinstance(given.key, Record)
    assert (given.key.text, given.value) == (text, Primitive("BYTES"))
    assert other == Pair(False, given.value, given.key)


@pytest.mark.parametrize("kind", ["PROTOBUF", "AUTO_CONSUME", "99"])
def test_a_kind_without_a_counterpart_is_refused_by_name(kind: str) -> None:
    with pytest.raises(InvalidInput, match=f"version 0 of the schema of {TOPIC} is of the type {kind}.*Read the bytes"):
        described(registered(kind))
    with pytest.raises(InvalidInput, match=f"the value of version 0 of the schema of {TOPIC} is of the type {kind}"):
        described(registered("KEY_VALUE", bytes(8), {"value.schema.type": kind}))


@pytest.mark.parametrize("data", [b"", b"\0\0\0\5abc", b"\0\0\0\0\0\0"])
def test_half_a_key_value_schema_is_none(data: bytes) -> None:
    with pytest.raises(InvalidInput, match="is not a key-value schema"):
        described(registered("KEY_VALUE", data, KEY_VALUE))


def test_an_unknown_encoding_of_pairs_is_refused() -> None:
    with pytest.raises(InvalidInput, match="the key-value encoding 'ELSE'; known are INLINE and SEPARATED"):
        described(registered("KEY_VALUE", bytes(8), {"kv.encoding.type": "ELSE"}))


def test_schemas_are_the_same_whatever_the_order_of_their_texts_keys_and_their_documentation() -> None:
    one = described(registered("JSON", record(field("a", "int"))))
    told = described(registered("JSON", {"fields": [field("a", "int", doc="!")], "name": "R", "type": "record"}))
    assert same(one, told)
    assert not same(one, described(registered("AVRO", record(field("a", "int")))))
    assert not same(one, described(registered("JSON", record(field("b", "int")))))
    assert not same(one, Primitive("INT32"))
    inline, apart = (described(golden(f"KEY_VALUE {encoding}")[0]) for encoding in ("INLINE", "SEPARATED"))
    assert same(inline, inline)
    assert not same(inline, apart)

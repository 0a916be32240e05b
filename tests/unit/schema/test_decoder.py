from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_type

from eos.errors import InvalidInput
from eos.pulsar.protocol.schemas import Registered
from eos.schema.decoder import Decoder
from eos.schema.description import Pair, Primitive, described
from eos.schema.encoder import encoder_of
from eos.schema.errors import Undecodable
from eos.schema.spark_types import spark_type
from tests.unit.schema.registered import field, golden, record, registered

INLINE = Pair(False, Primitive("STRING"), Primitive("INT32"))
SEPARATED = Pair(True, Primitive("STRING"), Primitive("INT32"))


def decoder(reader: Any, writer: Any = None) -> Decoder:
    return Decoder(reader if writer is None else writer, reader, to_arrow_type(spark_type(reader), timezone="UTC"))


def binary(*values: bytes | None) -> pa.Array:
    return pa.array(values, pa.binary())


def sized(*parts: bytes | None) -> bytes:
    return b"".join(
        (-1 if part is None else len(part)).to_bytes(4, "big", signed=True) + (part or b"") for part in parts
    )


def number(value: int) -> bytes:
    return value.to_bytes(4, "big", signed=True)


def test_a_primitive_does_not_look_at_the_key() -> None:
    assert decoder(Primitive("INT32")).decode(binary(number(-1), None), binary(b"k", b"k")).to_pylist() == [-1, None]


@pytest.mark.parametrize(
    ("asked", "pair"), [("KEY_VALUE INLINE", {"key": "k", "value": 7}), ("NULL_KEY", {"key": None, "value": 7})]
)
def test_pairs_that_the_java_client_wrote(asked: str, pair: dict[str, Any]) -> None:
    schema, value = golden(asked)
    assert decoder(described(schema)).decode(binary(value), binary(None)).to_pylist() == [pair]


def test_a_separated_pair_of_the_java_client_has_its_key_in_the_message() -> None:
    schema, value = golden("KEY_VALUE SEPARATED")
    assert decoder(described(schema)).decode(binary(value), binary(b"k")).to_pylist() == [{"key": "k", "value": 7}]


def test_inline_pairs_among_nulls_in_a_slice() -> None:
    payloads = binary(b"outside", None, sized(b"a", number(1)), None, sized(None, None), sized(b"", number(2))).slice(1)
    assert decoder(INLINE).decode(payloads, binary(*[b"other"] * 5)).to_pylist() == [
        None,
        {"key": "a", "value": 1},
        None,
        {"key": None, "value": None},
        {"key": "", "value": 2},
    ]
    assert decoder(INLINE).decode(binary(None), binary(None)).to_pylist() == [None]
    assert decoder(INLINE).decode(binary(), binary()).to_pylist() == []


def test_a_separated_pair_is_null_where_both_are() -> None:
    found = decoder(SEPARATED).decode(binary(None, None, number(3)), binary(b"k", None, None))
    assert found.to_pylist() == [{"key": "k", "value": None}, None, {"key": None, "value": 3}]


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (b"", "^row 2: it ends within its key or its value"),
        (b"\0\0\0\2a", "^row 2: it ends within"),
        (sized(b"a"), "^row 2: it ends within"),
        (sized(b"a", number(1))[:-1], "^row 2: it ends within"),
        (sized(b"a", number(1)) + b"x", "^row 2: 1 bytes are left behind the value"),
        (sized(b"\xff", number(1)), "^row 2, field 'key': .*not valid UTF-8"),
        (sized(b"a", b"1"), "^row 2, field 'value': 1 bytes, where a value of the type INT32 has 4"),
    ],
)
def test_a_wrong_pair_is_named(payload: bytes, words: str) -> None:
    with pytest.raises(Undecodable, match=words):
        decoder(INLINE).decode(binary(None, sized(b"a", number(1)), payload), binary(None, None, None))


def test_a_field_of_a_pairs_record_is_named_below_it() -> None:
    text = b'{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'
    data = bytes(4) + len(text).to_bytes(4, "big") + text
    schema = described(registered("KEY_VALUE", data, {"key.schema.type": "STRING", "value.schema.type": "JSON"}))
    with pytest.raises(Undecodable, match=r"^row 0, field 'value.a': 'x', where the schema has int"):
        decoder(schema).decode(binary(sized(b"k", b'{"a": "x"}')), binary(None))


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        (Primitive("STRING"), Primitive("BYTES")),
        (Primitive("INT32"), INLINE),
        (SEPARATED, INLINE),
        (INLINE, Primitive("INT32")),
        (
            described(registered("AVRO", record(field("a", "int")))),
            described(registered("JSON", record(field("a", "int")))),
        ),
        (Pair(False, Primitive("INT32"), Primitive("INT32")), INLINE),
    ],
)
def test_two_schemas_that_do_not_go_together_are_both_named(writer: Any, reader: Any) -> None:
    with pytest.raises(
        InvalidInput, match=r"^messages were written with the schema .*, and the query reads them by "
    ) as it:
        decoder(reader, writer)
    if not isinstance(writer, Pair):
        assert str(writer) in str(it.value)


LAST = 2**63 - 1
"""Microseconds of Spark's last moment. The first one is as many, and one more, before 1970."""


@pytest.mark.parametrize(
    ("schema", "unit"),
    [
        *((registered(kind), 1000) for kind in ("DATE", "TIMESTAMP")),
        *((registered(kind), 1) for kind in ("INSTANT", "LOCAL_DATE_TIME")),
        *(
            (registered("AVRO", record(field("at", {"type": "long", "logicalType": f"{local}timestamp-{unit}"}))), size)
            for local in ("", "local-")
            for unit, size in (("millis", 1000), ("micros", 1))
        ),
    ],
)
def test_each_moment_that_spark_has_is_read_as_it_is_written(schema: Registered, unit: int) -> None:
    known = described(schema)
    kind = to_arrow_type(spark_type(known), timezone="UTC")
    moments = [LAST, LAST - 1, LAST - 10**6, 0, -1, 10**6 - LAST, 999 - LAST, -LAST - 1]
    if unit > 1:
        moments.pop()  # of a whole millisecond the part before is none of Spark's
    moment = kind.field("at").type if isinstance(kind, pa.StructType) else kind
    given = pa.array(moments, pa.int64()).cast(moment)
    values = pa.StructArray.from_arrays([given], fields=list(kind)) if isinstance(kind, pa.StructType) else given
    for times in (1, 100):  # one by one, and by the column
        written = encoder_of(known).encode(pa.concat_arrays([values] * times)).cast(pa.binary())
        found = Decoder(known, known, kind).decode(written)
        read = found.field("at") if isinstance(kind, pa.StructType) else found
        assert read.cast(pa.int64()).to_pylist() == [moment // unit * unit for moment in moments] * times

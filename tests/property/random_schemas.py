"""Schemas of Avro's drawn at random, each with values that it allows."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from hypothesis import strategies as st


@dataclass
class Kind:
    """A type of Avro's, and what values it has."""

    schema: Any
    values: st.SearchStrategy[Any]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PLAIN = [
    Kind("boolean", st.booleans()),
    Kind("int", st.integers(-(2**31), 2**31 - 1)),
    Kind("long", st.integers(-(2**63), 2**63 - 1)),
    Kind("double", st.floats(allow_nan=False, allow_infinity=False)),
    Kind("float", st.floats(width=32, allow_nan=False, allow_infinity=False)),
    Kind("string", TEXTS),
    Kind({"type": "enum", "symbols": ["LATE", "EARLY"]}, st.sampled_from(["LATE", "EARLY"])),
]


def nullable(kind: Kind) -> Kind:
    return Kind(["null", kind.schema], st.none() | kind.values)


def array(kind: Kind) -> Kind:
    return Kind({"type": "array", "items": kind.schema}, st.lists(kind.values, max_size=3))


def mapping(kind: Kind) -> Kind:
    return Kind({"type": "map", "values": kind.schema}, st.dictionaries(TEXTS, kind.values, max_size=3))


def record(kinds: list[Kind]) -> Kind:
    fields = [{"name": f"f{place}", "type": kind.schema} for place, kind in enumerate(kinds)]
    values = st.fixed_dictionaries({f"f{place}": kind.values for place, kind in enumerate(kinds)})
    return Kind({"type": "record", "fields": fields}, values)


def branches(inner: st.SearchStrategy[Kind]) -> st.SearchStrategy[Kind]:
    records = st.lists(inner, min_size=1, max_size=4).map(record)
    return st.one_of(inner.map(array), inner.map(mapping), records)


def records(leaves: list[Kind]) -> st.SearchStrategy[Kind]:
    kinds = st.recursive(
        st.sampled_from([*leaves, *map(nullable, leaves)]),
        lambda inner: branches(inner).flatmap(lambda kind: st.sampled_from([kind, nullable(kind)])),
        max_leaves=8,
    )
    return st.lists(kinds, min_size=1, max_size=4).map(record)


def logical(kind: str, name: str, values: st.SearchStrategy[Any], **more: Any) -> Kind:
    return Kind({"type": kind, "logicalType": name, **more}, values)


# Away from the first and the last year, where Python has no room for a zone.
MOMENTS = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1))
WHOLE_MS = MOMENTS.map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000))
DECIMALS = st.decimals(-9_999_999, 9_999_999, places=2)
ONLY_AVRO = [
    Kind("bytes", st.binary(max_size=40)),
    Kind({"type": "fixed", "size": 3}, st.binary(min_size=3, max_size=3)),
    logical("int", "date", st.dates(date(2, 1, 1), date(9998, 1, 1))),
    logical("int", "time-millis", st.integers(0, 86_399_999)),
    logical("long", "time-micros", st.integers(0, 86_399_999_999)),
    logical("long", "timestamp-micros", MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC))),
    logical("long", "timestamp-millis", WHOLE_MS.map(lambda moment: moment.replace(tzinfo=UTC))),
    logical("long", "local-timestamp-micros", MOMENTS),
    logical("long", "local-timestamp-millis", WHOLE_MS),
    logical("bytes", "decimal", DECIMALS, precision=9, scale=2),
    logical("fixed", "decimal", DECIMALS, precision=9, scale=2, size=5),
]
RECORDS = records(PLAIN)
AVRO_RECORDS = records([*PLAIN, *ONLY_AVRO])


def named(schema: Any, numbers: itertools.count[int]) -> Any:
    """Return the schema with a name of its own for each type that needs one."""
    if isinstance(schema, list):
        return [named(branch, numbers) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    name = {"name": f"N{next(numbers)}"} if schema.get("type") in ("record", "enum", "fixed") else {}
    inside = {key: named(part, numbers) for key, part in schema.items() if key in ("items", "values", "type")}
    if "fields" in schema:
        inside["fields"] = [field | {"type": named(field["type"], numbers)} for field in schema["fields"]]
    return schema | name | inside


def as_arrow_has_it(schema: Any, value: Any) -> Any:
    """Return a value with its maps as lists of pairs."""
    if isinstance(schema, list):
        return None if value is None else as_arrow_has_it(schema[1], value)
    if not isinstance(schema, dict):
        return value
    if "items" in schema:
        return [as_arrow_has_it(schema["items"], item) for item in value]
    if "values" in schema:
        return [(key, as_arrow_has_it(schema["values"], item)) for key, item in value.items()]
    if "fields" in schema:
        return {field["name"]: as_arrow_has_it(field["type"], value[field["name"]]) for field in schema["fields"]}
    return value


@st.composite
def messages(draw: st.DrawFn, of: st.SearchStrategy[Kind] = RECORDS) -> tuple[Any, list[Any]]:
    """Draw a schema and some of its values, nulls among them."""
    kind = draw(of)
    return named(kind.schema, itertools.count()), draw(st.lists(st.none() | kind.values, max_size=5))

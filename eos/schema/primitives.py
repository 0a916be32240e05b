"""Values that are one number, text, time or bytes, as Pulsar's clients write and read them.

Numbers are big-endian and signed. Read off the Java client's classes (`org.apache.pulsar.client.impl.schema`): a moment
is milliseconds since 1970 (DATE, TIME, TIMESTAMP), or seconds and nanoseconds (INSTANT); a local date is a number of
days, a local time one of nanoseconds, a local date and time both. Spark counts microseconds: what is finer is cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eos.pulsar.wire.keys import first_not_text
from eos.pulsar.wire.spans import column_bytes
from eos.pulsar.wire.varint import binary_array
from eos.schema.errors import Undecodable, Unencodable

Numbers = np.ndarray[Any, np.dtype[Any]]

_DAY_MS = 86_400_000
_DAY_NS = _DAY_MS * 1_000_000
_US = np.iinfo(np.int64)
"""The microseconds that Spark has moments for."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a primitive of fixed size lies in its bytes.

    Attributes:
        parts: numpy's type of these bytes.
        unit: Arrow's type of what `count` gives; the result is cast from it.
        count: what the parts mean, one number each; it raises _OutOfRange.
        part: the parts of such a number; it raises _OutOfRange.
    """

    parts: np.dtype[Any]
    unit: pa.DataType
    count: Callable[[Numbers], Numbers]
    part: Callable[[Numbers], tuple[Numbers, ...]]


class _OutOfRange(Exception):
    def __init__(self, wrong: Numbers) -> None:
        self.first = int(np.flatnonzero(wrong)[0])


def _check(numbers: Numbers, least: int, most: int) -> None:
    wrong = (numbers < least) | (numbers > most)
    if wrong.any():
        raise _OutOfRange(wrong)


def _as_it_is(parts: Numbers) -> Numbers:
    numbers: Numbers = parts["f0"]
    return numbers


def _true_or_false(parts: Numbers) -> Numbers:
    _check(parts["f0"], 0, 1)
    true: Numbers = parts["f0"] != 0
    return true


def _milliseconds(parts: Numbers) -> Numbers:
    _check(parts["f0"], -(_US.max // 1000), _US.max // 1000)
    moments: Numbers = parts["f0"].astype(np.int64) * 1000
    return moments


def _seconds_and_nanoseconds(parts: Numbers) -> Numbers:
    _check(parts["f1"], 0, 999_999_999)
    return _sum(parts, 1_000_000)


def _time_of_day(parts: Numbers) -> Numbers:
    _check(parts["f0"], 0, _DAY_NS - 1)
    return _as_it_is(parts)


def _days(parts: Numbers) -> Numbers:
    days = np.iinfo(np.int32)
    _check(parts["f0"], days.min, days.max)
    dates: Numbers = parts["f0"].astype(np.int32)
    return dates


def _days_and_nanoseconds(parts: Numbers) -> Numbers:
    _check(parts["f1"], 0, _DAY_NS - 1)
    return _sum(parts, _DAY_NS // 1000)


def _sum(parts: Numbers, per_unit: int) -> Numbers:
    """Return microseconds. Args: units, and nanoseconds that are less than one; the microseconds of a unit."""
    units, more = parts["f0"].astype(np.int64), parts["f1"].astype(np.int64) // 1000
    (first, least), (last, most) = divmod(_US.min, per_unit), divmod(_US.max, per_unit)
    before = (units < first) | ((units == first) & (more < least))
    after = (units > last) | ((units == last) & (more > most))
    if (wrong := before | after).any():
        raise _OutOfRange(wrong)
    moments: Numbers = units * per_unit + more  # the first unit alone overflows, and what is added brings it back
    return moments


def _alone(numbers: Numbers) -> tuple[Numbers, ...]:
    return (numbers,)


def _in_milliseconds(moments: Numbers) -> tuple[Numbers, ...]:
    return (moments // 1000,)


def _in_seconds_and_nanoseconds(moments: Numbers) -> tuple[Numbers, ...]:
    return moments // 1_000_000, moments % 1_000_000 * 1000


def _in_days_and_nanoseconds(moments: Numbers) -> tuple[Numbers, ...]:
    day = _DAY_NS // 1000
    return moments // day, moments % day * 1000


def _within_a_day(nanoseconds: Numbers) -> tuple[Numbers, ...]:
    _check(nanoseconds, 0, _DAY_NS - 1)
    return (nanoseconds,)


def _layout(
    parts: str,
    unit: pa.DataType,
    count: Callable[[Numbers], Numbers] = _as_it_is,
    part: Callable[[Numbers], tuple[Numbers, ...]] = _alone,
) -> Layout:
    kind = np.dtype([(f"f{place}", number) for place, number in enumerate(parts.split())])
    return Layout(kind, unit, count, part)


_MOMENT = pa.timestamp("us", "UTC")

PRIMITIVES: Mapping[str, Layout | None] = {
    "BYTES": None,
    "STRING": None,
    "BOOLEAN": _layout("u1", pa.bool_(), _true_or_false),
    "INT8": _layout("i1", pa.int8()),
    "INT16": _layout(">i2", pa.int16()),
    "INT32": _layout(">i4", pa.int32()),
    "INT64": _layout(">i8", pa.int64()),
    "FLOAT": _layout(">f4", pa.float32()),
    "DOUBLE": _layout(">f8", pa.float64()),
    "DATE": _layout(">i8", _MOMENT, _milliseconds, _in_milliseconds),
    "TIME": _layout(">i8", pa.int64()),
    "TIMESTAMP": _layout(">i8", _MOMENT, _milliseconds, _in_milliseconds),
    "INSTANT": _layout(">i8 >i4", _MOMENT, _seconds_and_nanoseconds, _in_seconds_and_nanoseconds),
    "LOCAL_DATE": _layout(">i8", pa.date32(), _days),
    "LOCAL_TIME": _layout(">i8", pa.int64(), _time_of_day, _within_a_day),
    "LOCAL_DATE_TIME": _layout(">i8 >i8", pa.timestamp("us"), _days_and_nanoseconds, _in_days_and_nanoseconds),
}
"""{kind: how it lies in its bytes; None where it has any number of them}."""


def decode_primitive(kind: str, values: pa.Array) -> pa.Array:
    """Return the values of a primitive, without a Python object for any. Args: the kind; the bytes, with nulls.

    Raises Undecodable for wrong sizes, for times that Spark has no place for, and for text that is not UTF-8.
    """
    layout = PRIMITIVES[kind]
    if layout is None:
        return values if kind == "BYTES" else _text(values)
    sizes = pc.binary_length(values)
    wrong = pc.fill_null(pc.not_equal(sizes, layout.parts.itemsize), False)
    if wrong.true_count:
        row = wrong.index(True).as_py()
        raise Undecodable(row, "", f"{sizes[row]} bytes, where a value of the type {kind} has {layout.parts.itemsize}")
    present = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    parts = np.frombuffer(column_bytes(values.drop_null()), dtype=layout.parts)
    try:
        numbers = layout.count(parts)
    except _OutOfRange as out:
        row = int(present[out.first])
        raise Undecodable(row, "", f"{parts[out.first].tolist()} is no {kind} that Spark has a place for") from None
    if len(present) == len(values):
        found, missing = numbers, None
    else:
        found, missing = np.zeros(len(values), numbers.dtype), np.ones(len(values), np.bool_)
        found[present], missing[present] = numbers, False
    plain = pa.array(found.astype(found.dtype.newbyteorder("="), copy=False), mask=missing)
    return plain.cast(layout.unit)


def encode_primitive(kind: str, values: pa.Array) -> pa.Array:
    """Return the bytes of each value, as large_binary; a null stays null. A part finer than the kind is cut off.

    Args: the kind; the values, of the kind's type or a smaller one.

    Raises Unencodable for text that is not UTF-8, and for a LOCAL_TIME outside of a day.
    """
    layout = PRIMITIVES[kind]
    if layout is None:
        return _in_utf_8(values) if kind == "STRING" else values.cast(pa.large_binary())
    numbers = _numbers(values.cast(layout.unit).drop_null())
    try:
        parts = layout.part(numbers)
    except _OutOfRange as out:
        present = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        why = f"{numbers[out.first]} is no {kind}. That is nanoseconds since midnight, below {_DAY_NS}"
        raise Unencodable(int(present[out.first]), "", why) from None
    data = np.empty(len(numbers), dtype=layout.parts)
    for place, part in enumerate(parts):
        data[f"f{place}"] = part
    ends = np.zeros(len(values) + 1, dtype=np.int64)
    ends[1:] = np.cumsum(values.is_valid().to_numpy(zero_copy_only=False)) * layout.parts.itemsize
    plain = binary_array(data.view(np.uint8), ends, pa.large_binary())
    return pc.if_else(values.is_valid(), plain, pa.scalar(None, pa.large_binary())) if values.null_count else plain


def _numbers(values: pa.Array) -> Numbers:
    """Return what Arrow counts in values without nulls: days, or microseconds, or the numbers themselves."""
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    elif pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    numbers: Numbers = values.to_numpy(zero_copy_only=False)
    return numbers


def _in_utf_8(values: pa.Array) -> pa.Array:
    plain = values.cast(pa.large_binary())
    if (row := first_not_text(plain)) is not None:
        raise Unencodable(row, "", "it is not valid UTF-8")
    return plain


def _text(values: pa.Array) -> pa.Array:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        for row, value in enumerate(values.to_pylist()):
            try:
                (value or b"").decode()
            except UnicodeDecodeError as error:
                raise Undecodable(row, "", f"{error}: it is not valid UTF-8") from error
        raise

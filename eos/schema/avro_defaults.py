"""A default as its bytes, and as a value, from the JSON that an Avro schema's text has it in."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Any

from eos.errors import InvalidInput
from eos.schema.avro_text import DAYS, MILLIS, Node
from eos.schema.conversions import decimal, from_millis, time_of_day
from eos.schema.errors import Wrong

_PYTHONS: Mapping[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "array": (list,),
    "map": (dict,),
    "record": (dict,),
}
"""{type: what JSON has its defaults as}; where it is another, other bytes would come of it, or an error without words.
Those that are texts have no other form."""


def zigzag(number: int) -> bytes:
    """Return a whole number of up to 64 bits as Avro writes it."""
    if not -(2**63) <= number < 2**63:
        raise OverflowError(f"{number} has more than 64 bits")
    left = (number << 1) ^ (number >> 63)
    out = bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


_WRONG = (ValueError, TypeError, KeyError, AttributeError, OverflowError, Wrong)

_EXACT = Context(prec=100)


def field_bytes(node: Node, given: Any, path: str) -> bytes:
    """Return `default_bytes` of a field. Raises InvalidInput, which names it, for what is none of its type."""
    try:
        return default_bytes(node, given)
    except _WRONG as error:
        why = error.why if isinstance(error, Wrong) else repr(error)
        raise InvalidInput(
            f"The default of field {path!r}, {given!r}, is no {node.logical or node.kind}: {why}. Correct the schema."
        ) from error


def field_value(node: Node, given: Any, path: str) -> Any:
    """Return a field's default as Arrow takes it: moments are counted in microseconds. Raises as `field_bytes`."""
    field_bytes(node, given, path)
    return _as_arrow_takes(node, given)


def beyond_logical(node: Node, given: Any) -> str | None:
    """Return why no message can have a default, as a logical type has no value of it; None where that is not so.

    Such a default does no harm where every row has the field. A default that is none of the type itself is another
    matter, which `field_bytes` refuses.
    """
    try:
        default_bytes(node, given)
    except Wrong as error:
        return error.why
    except _WRONG:
        return None
    return None


def _as_arrow_takes(node: Node, given: Any) -> Any:
    if given is None:
        return None
    if node.kind == "record":
        return {field.name: _as_arrow_takes(field.node, given.get(field.name, field.default)) for field in node.fields}
    if node.items is not None:
        if node.kind == "array":
            return [_as_arrow_takes(node.items, item) for item in given]
        return {key: _as_arrow_takes(node.items, item) for key, item in given.items()}
    if node.kind in ("bytes", "fixed"):
        return decimal_in(node, given) if node.logical == "decimal" else given.encode("latin-1")
    return given * 1000 if node.logical in MILLIS else given


def decimal_in(node: Node, given: str) -> Decimal:
    """Return the decimal whose bytes a text of Latin-1 has. Raises ValueError for another text."""
    return Decimal(int.from_bytes(given.encode("latin-1"), "big", signed=True)).scaleb(-node.scale, _EXACT)


def default_bytes(node: Node, given: Any) -> bytes:
    """Return a default as it is written. Args: its type; the default as JSON has it: bytes are a text of Latin-1.

    Raises ValueError, TypeError, KeyError, AttributeError, OverflowError or Wrong for what is none of the type.
    """
    if given is None and node.nullable:
        return zigzag(node.null_branch)
    branch = b"" if node.branch is None else zigzag(node.branch)
    return branch + _value(node, given)


def _value(node: Node, given: Any) -> bytes:
    _refuse_another_type(node, given)
    _refuse_beyond_logical(node, given)
    match node.kind:
        case "boolean":
            return b"\1" if given else b"\0"
        case "int" if not -(2**31) <= given < 2**31:
            raise OverflowError("it has more than 32 bits")
        case "int" | "long":
            return zigzag(given)
        case "float":
            return struct.pack("<f", given)
        case "double":
            return struct.pack("<d", given)
        case "enum":
            return zigzag(node.symbols.index(given))
        case "string":
            return _sized(given.encode())
        case "bytes":
            return _sized(given.encode("latin-1"))
        case "fixed":
            if len(given) != node.size:
                raise ValueError(f"it has {len(given)} bytes, and the type {node.size}")
            return bytes(given.encode("latin-1"))
        case "record":
            return b"".join(default_bytes(field.node, given.get(field.name, field.default)) for field in node.fields)
    assert node.items is not None
    if node.kind == "array":
        items = [default_bytes(node.items, item) for item in given]
    else:
        items = [_sized(key.encode()) + default_bytes(node.items, item) for key, item in given.items()]
    return zigzag(len(items)) + b"".join(items) + b"\0" if items else b"\0"


def _refuse_another_type(node: Node, given: object) -> None:
    kinds = _PYTHONS.get(node.kind, (str,))
    if not isinstance(given, kinds) or isinstance(given, bool) != (node.kind == "boolean"):
        raise TypeError(f"it is {type(given).__name__}")


def _refuse_beyond_logical(node: Node, given: Any) -> None:
    """Raise Wrong for what the type has a place for, and its logical type has none: no message can have it."""
    if node.logical == "decimal":
        decimal(node, decimal_in(node, given), "")
    elif node.logical in DAYS:
        time_of_day(node, given, "")
    elif node.logical in MILLIS:
        from_millis(given, "")


def _sized(data: bytes) -> bytes:
    return zigzag(len(data)) + data

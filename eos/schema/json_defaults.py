"""Defaults of a JSON schema: its text has them in Avro's form, and values of JSON have another one.

A default of a decimal is a text of Latin-1 there, one letter for each of its bytes, and a decimal in a value is a
number. Each default is brought into the form of a value once, so that all that reads values takes it as one of these.
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

from eos.errors import InvalidInput
from eos.schema.avro_defaults import decimal_in
from eos.schema.avro_text import Node, below
from eos.schema.errors import Wrong
from eos.schema.field_names import matched
from eos.schema.json_fields import field_value


def with_parsed_defaults(node: Node) -> Node:
    """Return a schema with each default as a parser makes it of a value. One that is wrong stays so."""
    fields = (
        replace(field, node=with_parsed_defaults(field.node), default=_parsed(field.node, field.default))
        for field in node.fields
    )
    items = None if node.items is None else with_parsed_defaults(node.items)
    return replace(node, fields=tuple(fields), items=items)


def check_defaults(writer: Node, reader: Node, path: str = "") -> None:
    """Raise InvalidInput for a wrong default of a field that the messages do not have, so that each of them needs it.

    Args: the schema of the messages; that of the query, `with_parsed_defaults`; where both lie.
    """
    if writer.items is not None and reader.items is not None:
        check_defaults(writer.items, reader.items, f"{path}[]")
    found = matched(writer.fields, reader.fields)
    for field in reader.fields:
        at = below(path, field.name)
        if field.name in found:
            check_defaults(found[field.name].node, field.node, at)
        elif field.has_default:
            try:
                field_value(field.node, field.default, at)
            except Wrong as wrong:
                raise InvalidInput(
                    f"The default of field {wrong.path!r} is wrong: {wrong.why}. Correct the schema."
                ) from None


def _parsed(node: Node, given: Any) -> Any:
    if node.kind == "record" and isinstance(given, dict):
        inner = {field.name: field.node for field in node.fields}
        return {name: _parsed(inner[name], part) if name in inner else part for name, part in given.items()}
    if node.items is not None and isinstance(given, list):
        return [_parsed(node.items, item) for item in given]
    if node.items is not None and isinstance(given, dict):
        return {key: _parsed(node.items, item) for key, item in given.items()}
    if node.logical == "decimal" and isinstance(given, str):
        try:
            return decimal_in(node, given)
        except ValueError:  # a letter that is none of Latin-1
            return given
    return Decimal(repr(given)) if isinstance(given, float) and math.isfinite(given) else given

"""JSON values: in step by numpy where they are plain, else by a parser of single values.

Whatever `eos.schema.json_vector_decoder` is not sure of is read again: by msgspec's parser where that is installed,
else by Python's, and checked column by column. Where that is in doubt, too, each value is looked at by itself: this has
the last word, and names the row and the field. These are refused there: a field of another type, a number that its type
can't hold, and a missing field that has no default and may not be null. Fields that the schema does not know are left
out.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pyarrow as pa

from eos.pulsar.wire.spans import Payloads, as_column
from eos.schema import vector_columns
from eos.schema.avro_text import Node
from eos.schema.conversions import as_written, check
from eos.schema.errors import Undecodable, Wrong
from eos.schema.garbage import no_collection
from eos.schema.json_columns import JsonColumns
from eos.schema.json_defaults import check_defaults, with_parsed_defaults
from eos.schema.json_fields import field_value
from eos.schema.json_objects import Dictionaries, Structs, parsed
from eos.schema.json_text import JsonData
from eos.schema.json_vector_decoder import top_column
from eos.schema.vector_columns import Unsure

FEWEST = 100
"""Values from which on numpy takes less time than a parser."""
_TRIES, _PARSED = 4, 60
"""After so many calls in turn that can't be read in step, so many go to a parser at once: likely they can't either."""


class JsonDecoder:
    """Decodes the JSON values that were written with one schema as another one has them."""

    def __init__(self, writer: Node, reader: Node, target: pa.DataType) -> None:
        """Args: the schema of the messages; that of the query; the Arrow type of the values.

        Raises InvalidInput when the two do not go together, and for a wrong default that each message needs.
        """
        check("JSON", writer, reader)
        reader = with_parsed_defaults(reader)
        check_defaults(writer, reader)
        node = self._node = as_written(writer, reader)
        self._target = target
        self._unread = self._parsed = 0
        self._columns: list[JsonColumns] = []
        for objects in (lambda: Structs(node), Dictionaries):
            with suppress(Unsure):
                self._columns.append(JsonColumns(node, target, objects()))

    def decode(self, values: pa.Array | Payloads) -> pa.Array:
        """Return the values. Args: the bytes, with nulls. Raises Undecodable."""
        if len(values) < FEWEST:
            return self._one_by_one(values)
        if self._unread >= _TRIES and self._parsed < _PARSED:
            self._parsed += 1
            return self._one_by_one(values)
        self._parsed = 0
        try:
            found = self._in_step(values)
            self._unread = 0
            return found
        except Unsure:
            self._unread += 1
            return self._one_by_one(values)

    def _in_step(self, values: pa.Array | Payloads) -> pa.Array:
        """Return the values as numpy reads them. Raises Unsure."""
        return vector_columns.decode(values, top_column(self._node, self._target), JsonData)

    def _one_by_one(self, values: pa.Array | Payloads) -> pa.Array:
        """Return the values as a parser reads each; what it has read is checked column by column, if it can be.

        Parsers make no cycles, so that a collection of garbage finds nothing, however often it looks.
        """
        values = as_column(values)
        with no_collection():
            for columns in self._columns:
                try:
                    return columns.array(values)
                except Unsure:
                    pass  # the next parser, or each value by itself, says what is wrong, or that all is well
            return self._checked(values)

    def _checked(self, values: pa.Array) -> pa.Array:
        rows: list[Any] = []
        for row, value in enumerate(values.to_pylist()):
            if value is None:
                rows.append(None)
                continue
            try:
                found = parsed(value)
                rows.append(None if found is None else field_value(self._node, found))
            except Wrong as wrong:
                raise Undecodable(row, wrong.path, wrong.why) from None
            except (ValueError, RecursionError) as error:
                raise Undecodable(row, "", f"it is not JSON: {error}") from error
        return pa.array(rows, self._target)

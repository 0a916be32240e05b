"""Fields of the messages and fields of the query, matched by names and aliases: in one place for AVRO and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eos.schema.avro_text import AvroField


def matched(written: Iterable[AvroField], read: Sequence[AvroField]) -> dict[str, AvroField]:
    """Return the field of the messages for each field of the query. No two fields of the query have the same one.

    A name comes before any alias, as in fastavro. So a field takes its default where another field of the query has
    its old name. In Avro's Java library an alias comes before a name. Of two fields with the same alias the last one
    takes the value, as in both libraries.

    Args: the fields of a record of the messages; those of the record that the query reads it as.

    Returns: {name of a field of the query: the field of the messages}, without the fields that the messages lack.
    """
    left = {theirs.name: theirs for theirs in written}
    found = {field.name: left.pop(field.name) for field in read if field.name in left}
    for field in reversed(read):
        alias = next((alias for alias in field.aliases if alias in left), None)
        if alias is not None and field.name not in found:
            found[field.name] = left.pop(alias)
    return found

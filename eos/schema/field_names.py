"""Fields of the messages and fields of the query, matched by names and aliases: in one place for AVRO and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eos.schema.avro_text import AvroField


def matched(written: Iterable[AvroField], read: Sequence[AvroField]) -> dict[str, AvroField]:
    """Return the field of the messages for each field of the query. No two fields of the query have the same one.

    A field that the messages have by its own name is that one. Any other takes the value that has one of its old names,
    its aliases, from a field of the query that has that name today: the messages are older than the new name. So after
    a was renamed to b, and b to c, messages with a and b give b and c, as Avro's Java library reads them
    (Schema.applyAliases); fastavro depends on the order of the fields. Of two fields with the same alias the last one
    takes the value, as in both libraries.

    Args: the fields of a record of the messages; those of the record that the query reads it as.

    Returns: {name of a field of the query: the field of the messages}, without the fields that the messages lack.
    """
    left = {theirs.name: theirs for theirs in written}
    names = {field.name for field in read}
    found: dict[str, AvroField] = {}
    before = -1
    while len(found) > before:  # a field whose name another one has taken looks for an old name of its own in turn
        before = len(found)
        for field in reversed(read):
            # Of its old names that are written, rather one that no other field has.
            alias = min((alias for alias in field.aliases if alias in left), key=names.__contains__, default=None)
            if alias is not None and field.name not in found and field.name not in left:
                found[field.name] = left.pop(alias)
    return found | {field.name: left[field.name] for field in read if field.name in left}


def matched_by_message(
    written: Iterable[AvroField], read: Sequence[AvroField]
) -> tuple[dict[str, AvroField], list[AvroField]]:
    """Return {name of a field of the messages: the field of the query that has its value}, and those without any."""
    found = matched(written, read)
    ours = {found[field.name].name: field for field in read if field.name in found}
    return ours, [field for field in read if field.name not in found]

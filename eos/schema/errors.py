"""What is wrong with one value, read or to be written."""

from __future__ import annotations


class Undecodable(ValueError):
    """A value is not what its schema says.

    Attributes:
        row: its place among the values that were to be decoded.
        field: the path of the field, as "legs.element.from"; "" for the value as a whole.
        why: what is wrong, without the last full stop.
    """

    def __init__(self, row: int, field: str, why: str) -> None:
        super().__init__(f"row {row}, field {field!r}: {why}" if field else f"row {row}: {why}")
        self.row = row
        self.field = field
        self.why = why


class Unencodable(ValueError):
    """A value can't be written as its schema says.

    Attributes:
        row: its place among the values that were to be written.
        field: the path of the field, as "legs[].from"; "" for the value as a whole.
        why: what is wrong, without the last full stop.
    """

    def __init__(self, row: int, field: str, why: str) -> None:
        super().__init__(f"row {row}, field {field!r}: {why}" if field else f"row {row}: {why}")
        self.row = row
        self.field = field
        self.why = why

"""The fault of one value, read or to be written."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa


class _WrongValue(ValueError):
    """A value and its schema do not go together.

    Attributes:
        row: its place among the values that were to be read or written.
        field: the path of the field; "" for the value as a whole.
        why: what is wrong, without the last full stop.
    """

    def __init__(self, row: int, field: str, why: str) -> None:
        super().__init__(f"row {row}, field {field!r}: {why}" if field else f"row {row}: {why}")
        self.row = row
        self.field = field
        self.why = why

    def __reduce__(self) -> tuple[type[_WrongValue], tuple[int, str, str]]:
        return type(self), (self.row, self.field, self.why)


class Undecodable(_WrongValue):
    """A value is not what its schema says; a path is like "legs.element.from"."""


class Unencodable(_WrongValue):
    """A value can't be written as its schema says; a path is like "legs[].from"."""


class Wrong(Exception):
    """One of the values of a call is wrong.

    Attributes:
        path: of the field.
        why: as in `Unencodable`.
    """

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path
        self.why = why

    def __reduce__(self) -> tuple[type[Wrong], tuple[str, str]]:
        return type(self), (self.path, self.why)


def naming_the_row(encode: Callable[[pa.Array], pa.Array], values: pa.Array) -> pa.Array:
    """Return the values encoded; raise Unencodable with the first row that is wrong where `encode` raises Wrong.

    Columns are checked as wholes, so the row is looked for once something is known to be wrong.
    """
    try:
        return encode(values)
    except Wrong as wrong:
        first = wrong
    good, bad = 0, len(values)  # the first `good` rows are well, the first `bad` ones are not
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            encode(values.slice(0, middle))
            good = middle
        except Wrong as wrong:
            first, bad = wrong, middle
    raise Unencodable(good, first.path, first.why) from None

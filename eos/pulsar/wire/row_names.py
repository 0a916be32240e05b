"""How an error message names a row."""

from __future__ import annotations

import pyarrow as pa

_SHOWN = 40  # characters of a key


def row_name(rows: pa.RecordBatch, index: int, first_row: int = 0) -> str:
    """Return 'row 7 (key "abc")': its number, by which the rows of a batch differ, and its key, which a user can find.

    Args: the rows; which of them; the number of the first, unless the column `row` has the numbers.
    """
    names = rows.schema.names
    number = rows.column("row")[index].as_py() if "row" in names else first_row + index
    key = rows.column("key")[index].as_py() if "key" in names else None
    if key is None:
        return f"row {number}"
    text = key.decode(errors="backslashreplace") if isinstance(key, bytes) else str(key)
    return f'row {number} (key "{text if len(text) <= _SHOWN else text[:_SHOWN] + "…"}")'

"""Arrow arrays of the numbers that numpy has read: as they are, as texts that they count, as decimals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eos.pulsar.wire.fields import Flags

Numbers = npt.NDArray[Any]
Finish = Callable[[Numbers, Flags | None], pa.Array]
"""Makes an Arrow array of numbers. Args: the numbers; which of them are null, None for none. Raises pa.ArrowInvalid."""


def plain(kind: pa.DataType) -> Finish:
    """Return what makes an Arrow array of numbers that have the width of its type."""

    def finish(values: Numbers, missing: Flags | None) -> pa.Array:
        found = pa.array(values, mask=missing)
        return found if found.type.equals(kind) else found.view(kind)

    return finish


def symbols(names: Sequence[str]) -> Finish:
    """Return what makes texts of their places among these."""
    known = pa.array(names, pa.string())
    return lambda values, missing: known.take(pa.array(values, mask=missing))


def decimals(written: pa.DataType, kind: pa.DataType) -> Finish:
    """Return what makes decimals of 16 bytes each, least significant first.

    Args: the type that they were written as, whose digits no value exceeds; the Arrow type, which may have others.
    """

    def finish(values: Numbers, missing: Flags | None) -> pa.Array:
        valid = None if missing is None else pa.array(~missing).buffers()[1]
        found = pa.Array.from_buffers(written, len(values), [valid, pa.py_buffer(np.ascontiguousarray(values))])
        found.validate(full=True)
        if not written.equals(kind):
            found = found.cast(kind)
            found.validate(full=True)
        return found

    return finish

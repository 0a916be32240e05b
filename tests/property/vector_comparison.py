"""A decoder by numpy held against the decoder of single values, which has the last word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from eos.pulsar.wire.spans import Payloads
from eos.schema.errors import Undecodable


class Decoder(Protocol):
    """The common part of both kinds of values."""

    def decode(self, values: pa.Array) -> pa.Array:
        """Return the values, by numpy where that is sure."""
        ...

    def one_by_one(self, values: pa.Array) -> pa.Array:
        """Return the values without numpy."""
        ...


def same(one: pa.Array, other: pa.Array) -> bool:
    """Compare two arrays bit by bit, so that 0.0 is not -0.0; a NaN is a NaN."""
    if one.type != other.type or len(one) != len(other) or one.is_valid() != other.is_valid():
        return False
    one, other = one.drop_null(), other.drop_null()
    if pa.types.is_floating(one.type):
        mine, theirs = one.to_numpy(), other.to_numpy()
        alike = mine.view(f"u{mine.itemsize}") == theirs.view(f"u{theirs.itemsize}")
        return bool((alike | np.isnan(mine) & np.isnan(theirs)).all())
    if pa.types.is_struct(one.type):
        return all(same(mine, theirs) for mine, theirs in zip(one.flatten(), other.flatten(), strict=True))
    if pa.types.is_list(one.type):
        return one.value_lengths() == other.value_lengths() and same(one.flatten(), other.flatten())
    if pa.types.is_map(one.type):
        lengths = [np.diff(np.asarray(column.offsets)).tolist() for column in (one, other)]
        return lengths[0] == lengths[1] and same(one.keys, other.keys) and same(one.items, other.items)
    return bool(one.equals(other))


def outcome(decode: Callable[[Any], pa.Array], values: pa.Array | Payloads) -> pa.Array | str:
    try:
        return decode(values)
    except Undecodable as error:
        return str(error)


def compared(decoder: Decoder, quick: pa.Array | None, values: pa.Array, where: str) -> str:
    """Hold what numpy makes of the values against the decoder of single values; say what became of them.

    Args: the decoder; what numpy alone made of the values, None where it was not sure; the values; names the case.
    """
    single = outcome(decoder.one_by_one, values)
    if quick is not None:
        assert not isinstance(single, str), f"{where}: {single}"
        quick.validate(full=True)
        assert same(quick, single), where
    whole = outcome(decoder.decode, values)
    assert whole == single if isinstance(single, str) else same(whole, single), where
    told = "refused" if isinstance(single, str) else "decoded"
    return f"{told}, {'by numpy' if quick is not None else 'one by one'}"

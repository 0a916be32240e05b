"""JSON's tokens: numbers are rounded as Python rounds them, and looks ahead end where the bytes end."""

from __future__ import annotations

import math
import struct
from contextlib import suppress
from random import Random
from unittest.mock import patch

import numpy as np
import pytest

from eos.pulsar.wire.fields import joined
from eos.schema import json_text
from eos.schema.arrow_numbers import Numbers
from eos.schema.json_text import HAS_64_BITS, JsonData, quoted, real, starting_with
from eos.schema.vector_columns import Cursor, Unsure


def cursor_of(texts: list[bytes], behind: bytes = b"") -> Cursor:
    """Return a cursor at the beginning of texts. Args: the texts; what comes behind each."""
    data, bounds = joined([text + behind for text in texts])
    at, ends = bounds[:-1], bounds[1:] - len(behind)
    return Cursor(JsonData(data, at, ends), at, ends)


def reals(texts: list[str]) -> Numbers:
    """Read numbers, each up to its end."""
    cursor = cursor_of([text.encode() for text in texts], b",")
    found = real(cursor)
    assert (cursor.at == cursor.end).all()
    return found


@pytest.fixture(params=[True, False], ids=["by 64 bits", "by Arrow"])
def divides(request: pytest.FixtureRequest) -> object:
    if request.param and not HAS_64_BITS:
        pytest.skip("this processor has no numbers of 64 bits")
    with patch.object(json_text, "HAS_64_BITS", request.param):
        yield


def numbers(random: Random) -> list[str]:
    whole, part = random.randrange(10**7), random.randrange(10**12)
    (any_double,) = struct.unpack("<d", random.randbytes(8))
    return [
        f"{whole}.{part:012}",  # 19 digits: each 2,000th is, in 64 bits, in the middle between two doubles
        str(random.random()),
        str(random.random() * 10 ** random.randrange(18)),
        str(whole),
        f"-{whole}.5",
        f"{whole}e{random.randrange(-300, 300)}",
        f"{whole}.{random.randrange(10**15):015}",
        f"0.{random.randrange(10**20, 10**21)}",
        f"0.{part:0{random.choice([12, 14, 16, 17, 18, 19, 20, 40])}}1",
        str(any_double) if math.isfinite(any_double) else "1.0",
        f"{random.randrange(1, 10**20)}.{random.randrange(10**6)}",
    ]


@pytest.mark.usefixtures("divides")
def test_numbers_are_rounded_as_python_rounds_them() -> None:
    random = Random(1)
    texts = [text for _ in range(12_000) for text in numbers(random)]
    found = reals(texts)
    assert [text for text, one in zip(texts, found.tolist(), strict=True) if one != float(text)] == []


@pytest.mark.usefixtures("divides")
@pytest.mark.parametrize(
    "text", ["1.", ".5", "01.5", "-", "1e", "1.e5", "00", "1.5e+", "", "-.5", "1.5.5", "1..5", "1e5.5"]
)
def test_what_is_no_number_is_not_read_to_its_end(text: str) -> None:
    for texts in ([text, "1.5"], ["1.5", text], [text] * 3, ["7", "1e5", text]):
        cursor = cursor_of([one.encode() for one in texts], b",")
        try:
            real(cursor)
        except Unsure:
            continue
        assert (cursor.at != cursor.end).any()


@pytest.mark.usefixtures("divides")
def test_a_number_ends_with_its_row_also_where_the_next_one_begins_with_a_digit() -> None:
    for texts in (["1.5", "2"], ["1", "2.5"], ["1.12345678", "9"], ["1234567", "8"]):
        with pytest.raises(Unsure):
            real(cursor_of([text.encode() for text in texts]))


@pytest.mark.parametrize("size", [*range(70)])
def test_a_text_ends_at_its_quote_however_long_it_is(size: int) -> None:
    texts = [b'"' + b"x" * one + b'"' for one in (size, 3, size, 0)]
    cursor = cursor_of(texts)
    assert quoted(cursor).tolist() == [size, 3, size, 0]
    last = cursor_of([texts[1], texts[0][:-1]])
    assert quoted(last)[1] >= size, "no quote comes: it is longer than its row, or ends with it"


@pytest.mark.parametrize("size", [1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 700])
def test_a_text_follows_where_all_its_bytes_do(size: int) -> None:
    text = bytes(Random(size).choices(b"abcdef", k=size))
    others = [text[:place] + b"x" + text[place + 1 :] for place in {0, size // 2, size - 1}]
    cursor = cursor_of([text, *others, text + b"more", text])
    assert starting_with(cursor, text).tolist() == [True, *[False] * len(others), True, True]
    short = cursor_of([text + b"!", text[:-1]])
    assert starting_with(short, text).tolist() == [True, False]
    assert starting_with(cursor_of([text, b""]), text).tolist() == [True, False]
    assert not np.any(starting_with(cursor_of([text[:-1] + b"!", b"", b""]), text))


def test_looks_ahead_end_within_the_padding_also_where_the_last_row_is_cut_off() -> None:
    for text in (b'"', b'"' + b"x" * 16, b"1", b"1.", b"1." + b"5" * 16, b"12345678.", b"nul"):
        for read in (quoted, real, lambda cursor: starting_with(cursor, b"null")):
            with suppress(Unsure):
                read(cursor_of([b'"a"', text]))


@pytest.mark.usefixtures("divides")
def test_a_few_long_numbers_in_each_of_many_steps_are_read_with_the_others() -> None:
    """Steps over a few items of lists are counted, since they take longer than a parser: these are not such steps."""
    data, bounds = joined([f"{place}.5,".encode() for place in range(99)] + [b"0." + b"1" * 25 + b","])
    held = JsonData(data, bounds[:-1], bounds[1:] - 1)
    for _ in range(300):
        assert real(Cursor(held, bounds[:-1], bounds[1:] - 1))[-1] == float("0." + "1" * 25)

"""The tokens of JSON, read at one place in each of many values: white space, texts, numbers, words.

Each function moves a `Cursor` over what it has read, and raises `Unsure` for whatever is not surely right JSON as it is
read here (`eos.schema.vector_columns` says what becomes of that). Grammar: RFC 8259.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eos.pulsar.wire.fields import Bytes, Flags, Places, window
from eos.pulsar.wire.spans import spans
from eos.schema.arrow_numbers import Numbers
from eos.schema.vector_columns import Cursor, Data, Unsure

QUOTE, SLASH, COMMA, COLON, MINUS, ZERO, DOT = b'"\\,:-0.'
OBJECT, ARRAY = b"{}", b"[]"
NULL, TRUE, FALSE = b"null", b"true", b"false"

_MOST_SPACES, _MOST_DIGITS, _USUAL_DIGITS = 256, 19, 32
_U = np.uint64
_ONES, _TOPS = _U(0x0101010101010101), _U(0x8080808080808080)
_QUOTES, _ZEROS, _OVER_NINE = _ONES * _U(QUOTE), _ONES * _U(ZERO), _ONES * _U(0x7F - 9)
_FOUR, _FIVE = _U(0xFFFFFFFF), _U(0xFFFFFFFFFF)
_TRUE, _FALSE = _U(int.from_bytes(TRUE, "little")), _U(int.from_bytes(FALSE, "little"))
_LOW = (_U(0x0F0F0F0F0F0F0F0F), _U(0x00FF00FF00FF00FF), _U(0x0000FFFF0000FFFF))
_FACTORS = (_U(2561), _U(6553601), _U(42949672960001))  # 10 and 1, 100 and 1, 10,000 and 1 in one product each
_SHIFTS = (_U(8), _U(16), _U(32))
_POWERS = np.array([10**digits for digits in range(_MOST_DIGITS + 1)], np.uint64)
_TENTHS = np.cumprod([1, *[10] * 27], dtype=np.longdouble)
_MIDDLE, _BELOW_DOUBLE = _U(0x400), _U(0x7FF)  # the bits that a number of 64 bits has and one of 53 has not


def _one_of(marks: bytes) -> Flags:
    """Return which of all bytes these are."""
    return np.isin(np.arange(256), list(marks))


_SPACES, _EXPONENT, _SIGN = _one_of(b" \t\r\n"), _one_of(b"eE"), _one_of(b"+-")
_GOES_ON = _one_of(b"0123456789eE")


class JsonData(Data):
    """The bytes that hold all values.

    Attributes:
        slashes: the places of all backslashes in the values.
        plain: the bytes, with another letter for each that a backslash escapes. A text ends at its first quote there.
    """

    def __init__(self, raw: Bytes, at: Places, ends: Places) -> None:
        """Args: the bytes, with PADDING after the last value; where each value begins, and where it ends."""
        super().__init__(raw)
        self.slashes = _slashes(raw)
        if len(self.slashes):  # most often it is a number between two values that looks like one
            value = np.searchsorted(at, self.slashes, side="right") - 1  # -1: before the first one
            self.slashes = self.slashes[self.slashes < np.append(ends, 0)[value]]
        self.plain = raw
        if len(self.slashes):
            self.plain = raw.copy()
            self.plain[_escaping(self.slashes) + 1] = ord("x")

    @cached_property
    def quotes(self) -> Places:
        """The places of all quotes that may end a text, and the end."""
        return np.append(np.flatnonzero(self.plain == QUOTE), len(self.raw))


def _slashes(raw: Bytes) -> Places:
    """Return the places of all backslashes. They are few, so eight bytes are looked at together first."""
    eights = (raw[: len(raw) // 8 * 8] == SLASH).reshape(-1, 8)
    some = np.flatnonzero(eights.view(np.uint64) != 0)
    which, place = np.nonzero(eights[some])
    found: Places = 8 * some[which] + place
    return found


def _escaping(slashes: Places) -> Places:
    """Return the backslashes that escape what follows: of those in a row the first, the third and so on."""
    place = np.arange(len(slashes))
    first = np.maximum.accumulate(np.where(np.diff(slashes, prepend=-2) == 1, 0, place))
    found: Places = slashes[(place - first) % 2 == 0]
    return found


def following(cursor: Cursor) -> Bytes:
    """Move over white space; return the byte at each place."""
    for _ in range(_MOST_SPACES):
        found = cursor.bytes_there()
        if found.min(initial=0xFF) > ord(" "):
            return found
        spaces = _SPACES[found]
        if not spaces.any():
            break
        cursor.move(cursor.at + spaces)
    raise Unsure


def expect(cursor: Cursor, byte: int) -> None:
    """Move over white space and this byte."""
    if (following(cursor) != byte).any():
        raise Unsure
    cursor.move(cursor.at + 1)


def starting_with(cursor: Cursor, text: bytes) -> Flags:
    """Return where this text follows. It may end after the end of the row. A move over it refuses that.

    Args: the values; a text that is one of theirs, or of 16 bytes at most.
    """
    raw = cursor.data.raw
    at = np.minimum(cursor.at, len(raw) - len(text) - 16) if len(text) > 16 else cursor.at  # else it is not theirs
    same = np.ones(len(at), np.bool_)
    for first in range(0, len(text), 16):
        halves = _halves(raw, at + first)
        for half, place in zip(halves, (first, first + 8), strict=True):
            part = text[place : place + 8]
            if len(part) == 8:
                same &= half == _U(int.from_bytes(part, "little"))
            elif part:
                same &= half & _U((1 << 8 * len(part)) - 1) == _U(int.from_bytes(part, "little"))
    return same


def quoted(cursor: Cursor) -> Places:
    """Move to where a text begins, after its quote; return its bytes, up to the next quote, perhaps of another row."""
    expect(cursor, QUOTE)
    at, data = cursor.at, cursor.data
    assert isinstance(data, JsonData)
    return _to_quote(data, at)


def _to_quote(data: JsonData, at: Places) -> Places:
    """Return how far the next quote is. The first look is at 16 bytes; texts that go on are fewer at each look."""
    sizes = _before_quote(data, at)
    going = np.flatnonzero(sizes == 16)
    if len(going):
        more = _before_quote(data, at[going] + 16)
        sizes[going] += more
        going = going[more == 16]
        sizes[going] = data.quotes[np.searchsorted(data.quotes, at[going])] - at[going]
    return sizes


def _before_quote(data: JsonData, at: Places) -> Places:
    """Return how many bytes lie before the next quote, up to 16."""
    low, high = _halves(data.plain, at)
    sizes = _bytes_before(_quotes(low))
    return sizes if sizes.max(initial=0) < 8 else np.where(sizes < 8, sizes, 8 + _bytes_before(_quotes(high)))


def _halves(raw: Bytes, at: Places) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return the eight bytes from each place on, and the eight after them. numpy takes 16 in the time of eight."""
    both = window(raw, "<c16")[at].view("<u8")
    return both[::2], both[1::2]


def _quotes(window: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return a number whose lowest bit lies in the first byte that is a quote; 0 where none is."""
    others = window ^ _QUOTES
    return (others - _ONES) & ~others & _TOPS


def _bytes_before(bits: npt.NDArray[np.uint64]) -> Places:
    """Return how many bytes lie below the lowest bit; 8 where there is none."""
    found: Places = (np.bitwise_count((bits & -bits) - _U(1)) >> 3).astype(np.int64)
    return found


def _digits(window: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.uint64], Places]:
    """Return eight bytes with 0 to 9 for each digit, and how many of the first of them are digits."""
    window = window ^ _ZEROS
    return window, _bytes_before(((window + _OVER_NINE) | window) & _TOPS)  # what it carries comes after the first hit


def _some_digits(data: Data, at: Places) -> tuple[npt.NDArray[np.uint64], Places]:
    """Return the same, where a number must have a digit at least."""
    window, digits = _digits(data.eight[at])
    if digits.min(initial=1) == 0:
        raise Unsure
    return window, digits


def _refuse_leading_zero(window: npt.NDArray[np.uint64], digits: Places) -> None:
    if ((digits > 1) & (window & _U(0xFF) == 0)).any():
        raise Unsure


def _valued(window: npt.NDArray[np.uint64], digits: Places) -> npt.NDArray[np.uint64]:
    """Return the number that so many digits make."""
    number = window << (_U(64) - digits.astype(np.uint64) * _U(8))  # all by 64 bits leave 0, in numpy
    for low, factor, shift in zip(_LOW, _FACTORS, _SHIFTS, strict=True):
        number = (number & low) * factor >> shift
    return number


def _signed(cursor: Cursor) -> Flags:
    """Move over white space and a sign; return where the sign was."""
    negative: Flags = following(cursor) == MINUS
    if negative.any():
        cursor.move(cursor.at + negative)
    return negative


def whole(cursor: Cursor) -> Places:
    """Read whole numbers of 64 bits."""
    negative = _signed(cursor)
    data, at = cursor.data, cursor.at
    window, size = _some_digits(data, at)
    _refuse_leading_zero(window, size)
    number = _valued(window, size)
    long = np.flatnonzero(size == 8)
    while len(long):
        window, more = _digits(data.eight[at[long] + size[long]])
        number[long] = number[long] * _POWERS[more] + _valued(window, more)
        size[long] += more
        if size.max() > _MOST_DIGITS:  # what has 19 digits can't have overflown
            raise Unsure
        long = long[more == 8]
    if size.max(initial=0) == _MOST_DIGITS and (number > _U(2**63 - 1) + negative).any():
        raise Unsure
    cursor.move(at + size)
    found = number.view(np.int64)
    return np.where(negative, -found, found) if negative.any() else found


def _run(data: Data, at: Places, *, leading_zero: bool = True) -> Places:
    """Return how many digits follow, one at least. Args: the places; whether the first of several may be 0."""
    window, sizes = _some_digits(data, at)
    if not leading_zero:
        _refuse_leading_zero(window, sizes)
    long = np.flatnonzero(sizes == 8)
    while len(long):
        if sizes.max() > _USUAL_DIGITS:  # a few such numbers in each of many steps are no reason to give up
            data.count_step(len(long))
        _, more = _digits(data.eight[at[long] + sizes[long]])
        sizes[long] += more
        long = long[more == 8]
    return sizes


def _bits(numbers: npt.NDArray[np.longdouble]) -> npt.NDArray[np.uint64]:
    return numbers.view(np.uint64)[::2]


HAS_64_BITS = np.finfo(np.longdouble).nmant == 63 and bool(_bits(1 / _TENTHS[1:2])[0] & _BELOW_DOUBLE)
"""Whether the processor divides numbers of 64 bits: x86 does."""


def real(cursor: Cursor) -> Numbers:
    """Read numbers, as 64 bits of a float, rounded right. Those beyond are infinite."""
    negative = _signed(cursor)
    every = np.arange(len(negative))
    found, hard = _divided(cursor) if HAS_64_BITS else (np.empty(len(every)), every)
    if len(hard):
        some = cursor.only(hard)
        found[hard] = _parsed(some)
        cursor.back(hard, some)
    if not negative.any():
        return found
    if (negative & (found == 0)).any():  # -0 is a whole number of Python's: 0
        raise Unsure
    return np.where(negative, -found, found)


def _divided(cursor: Cursor) -> tuple[Numbers, Places]:
    """Read numbers without a sign, as a whole number over a power of ten; return which ones are left unread.

    19 digits are less than 2^64, and 5^27 than 2^63, so both are exact in 64 bits, and the processor rounds their
    quotient right. Rounded once more, to the 53 bits of a float, it stays right, unless it lies in the middle between
    two of these: the side of it on which the number lay is no longer known. Such numbers are left, so are those with
    more digits or with an exponent.
    """
    data, at = cursor.data, cursor.at
    found, before = _some_digits(data, at)
    _refuse_leading_zero(found, before)
    number = _valued(found, before)
    dot = data.raw[at + before] == DOT
    first = at + before + 1
    low, high = _halves(data.raw, first)
    found, after = _digits(low)
    after = np.where(dot, after, 0)
    number = number * _POWERS[after] + _valued(found, after)
    if (dot & (after == 0)).any():
        raise Unsure
    if after.max(initial=0) == 8:
        found, more = _digits(high)
        more = np.where(after == 8, more, 0)
        number = number * _POWERS[more] + _valued(found, more)
        after += more
        long = np.flatnonzero(after == 16)
        found, more = _digits(data.eight[first[long] + 16])
        number[long] = number[long] * _POWERS[more] + _valued(found, more)
        after[long] += more
    end = first + after - ~dot
    quotient = number.astype(np.longdouble) / _TENTHS[after]
    hard = _GOES_ON[data.raw[end]] | (before + after > _MOST_DIGITS) | (_bits(quotient) & _BELOW_DOUBLE == _MIDDLE)
    cursor.move(np.where(hard, at, end))
    return quotient.astype(np.float64), np.flatnonzero(hard)


def _parsed(cursor: Cursor) -> Numbers:
    """Read numbers without a sign as Arrow does, which rounds them right."""
    data, at = cursor.data, cursor.at
    end = at + _run(data, at, leading_zero=False)
    there = np.flatnonzero(data.raw[end] == DOT)
    if len(there):
        end[there] += 1 + _run(data, end[there] + 1)
    there = np.flatnonzero(_EXPONENT[data.raw[end]])
    if len(there):
        after = end[there] + 1
        after += _SIGN[data.raw[after]]
        end[there] = after + _run(data, after)
    cursor.move(end)
    text = spans(data.raw, at, end - at, None).view(pa.string())
    try:
        found: Numbers = pc.cast(text, pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid as error:
        raise Unsure from error
    return found


def boolean(cursor: Cursor) -> Flags:
    """Read true and false."""
    following(cursor)
    head = cursor.data.eight[cursor.at]
    true: Flags = head & _FOUR == _TRUE
    if not (true | (head & _FIVE == _FALSE)).all():
        raise Unsure
    cursor.move(cursor.at + len(FALSE) - true)
    return true

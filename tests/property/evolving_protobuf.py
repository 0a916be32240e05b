"""Messages of protobuf drawn by a seed, what they may become in another version, and bytes that a writer may write.

The bytes are written here, and not by a library: fields may come in any order, lists packed or not, and with fields
that the schema does not have.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from random import Random

from eos.pulsar.protocol.schemas import Registered
from tests.unit.schema.registered import native

FIXED = {"sfixed32": "<i", "fixed32": "<I", "float": "<f", "sfixed64": "<q", "fixed64": "<Q", "double": "<d"}
BITS = {"int32": 31, "int64": 63, "sint32": 31, "sint64": 63, "uint32": 32, "uint64": 64}
KINDS = [*FIXED, *BITS, "bool", "string", "string", "bytes", "Status", "google.protobuf.Timestamp"]
BECOMES = {"int32": "int64", "int64": "int32", "sint32": "sint64", "sint64": "sint32", "uint32": "uint64",
           "uint64": "uint32"}  # fmt: skip
SYMBOLS = ["NONE", "LATE", "EARLY"]
LABELS = ["", "optional ", "repeated ", "map", "one of p "]


@dataclass(frozen=True)
class Line:
    """One field: its label, its type, which may be the name of a message, and its number."""

    label: str
    kind: str
    number: int

    def __str__(self) -> str:
        of = f"map<string, {self.kind}>" if self.label == "map" else f"{self.label}{self.kind}"
        return f"{of} f{self.number} = {self.number}"


Messages = dict[str, list[Line]]


def draw(random: Random, messages: Messages, name: str, depth: int) -> None:
    """Draw a message, and those in it."""
    lines = messages[name] = []
    for number in sorted(random.sample([1, 2, 3, 4, 15, 16, 300, 5000], random.randint(1, 5))):
        label, kind = random.choice(LABELS), random.choice(KINDS)
        if depth and random.random() < 0.3:
            kind = f"{name}x{number}"
            draw(random, messages, kind, depth - 1)
        lines.append(Line(label, kind, number))


def evolved(random: Random, messages: Messages) -> Messages:
    """Return what messages may be in another version."""
    made: Messages = {}
    for name, lines in messages.items():
        kept = [line for line in lines if random.random() > 0.12] or lines
        made[name] = [_evolved(random, line) for line in kept]
        if random.random() < 0.2:
            made[name].append(Line(random.choice(["", "optional ", "repeated "]), random.choice(KINDS), 77))
    return made


def _evolved(random: Random, line: Line) -> Line:
    if line.label in ("", "optional ") and random.random() < 0.1:
        line = replace(line, label=random.choice(["", "optional "]))
    return replace(line, kind=BECOMES[line.kind]) if line.kind in BECOMES and random.random() < 0.06 else line


def schema(messages: Messages, symbols: list[str], syntax: str) -> Registered:
    """Return the schema of the first message."""
    lines = {name: [_in_syntax(str(line), syntax) for line in lines] for name, lines in messages.items()}
    return native(lines, {"Status": symbols}, syntax=syntax)


def _in_syntax(line: str, syntax: str) -> str:
    plain = line.startswith(("optional", "repeated", "map", "one of"))
    return line if plain or syntax == "proto3" else f"optional {line}"


def varint(number: int, random: Random) -> bytes:
    left, out = number % 2**64, bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    if random.random() < 0.00002 and len(out) < 9:
        out[-1] |= 0x80
        out.append(0)
    return bytes(out)


def sized(data: bytes, random: Random) -> bytes:
    return varint(len(data), random) + data


def written(random: Random, messages: Messages, name: str, *, odd: bool) -> bytes:
    """Return a random message. Args: whether fields may come in any order, twice, and with others between them."""
    parts: list[bytes] = []
    members = [line for line in messages[name] if line.label.startswith("one of")]
    member = random.choice(members) if members else None
    for line in messages[name]:
        if line in members and line is not member:
            continue
        parts += _field(random, messages, line, odd=odd)
        if odd and random.random() < 0.0003:
            parts += _field(random, messages, line, odd=odd)
    if random.random() < (0.2 if odd else 0.02):
        parts.append(_unknown(random))
    if odd and random.random() < 0.3:
        random.shuffle(parts)
    return b"".join(parts)


def _unknown(random: Random) -> bytes:
    number = random.choice([99, 1234, 6000]) << 3
    return random.choice(
        [
            varint(number, random) + varint(random.randrange(2**40), random),
            varint(number | 1, random) + random.randbytes(8),
            varint(number | 2, random) + sized(random.randbytes(random.randint(0, 9)), random),
            varint(number | 5, random) + random.randbytes(4),
        ]
    )


def _field(random: Random, messages: Messages, line: Line, *, odd: bool) -> list[bytes]:
    tag = line.number << 3
    if line.label == "map":
        pairs = []
        for number in range(random.choice([0, 1, 3])):
            value = _value(random, messages, line.kind, odd=odd)
            key = sized(str(number).encode(), random)
            pair = varint(10, random) + key + varint(16 | _wire(line.kind), random) + value
            pairs.append(varint(tag | 2, random) + sized(pair, random))
        return pairs
    if line.label == "repeated ":
        values = [_value(random, messages, line.kind, odd=odd) for _ in range(random.choice([0, 1, 2, 5]))]
        if _wire(line.kind) != 2 and random.random() < 0.7:
            cut = random.randint(0, len(values)) if odd and random.random() < 0.2 else 0
            runs = [run for run in (values[:cut], values[cut:]) if run or random.random() < 0.1]
            return [varint(tag | 2, random) + sized(b"".join(run), random) for run in runs]
        return [varint(tag | _wire(line.kind), random) + value for value in values]
    if random.random() < 0.3:
        return []
    return [varint(tag | _wire(line.kind), random) + _value(random, messages, line.kind, odd=odd)]


def _wire(kind: str) -> int:
    if kind in FIXED:
        return 5 if struct.calcsize(FIXED[kind]) == 4 else 1
    return 0 if kind in BITS or kind in ("bool", "Status") else 2


def _value(random: Random, messages: Messages, kind: str, *, odd: bool) -> bytes:
    if kind in FIXED:
        size = struct.calcsize(FIXED[kind])
        return (
            struct.pack(FIXED[kind], 0.5 * random.randint(-9, 9))
            if kind in ("float", "double")
            else random.randbytes(size)
        )
    if kind in BITS:
        bits = random.choice([3, 10, 31, BITS[kind]])
        number = random.randrange(2 ** min(bits, BITS[kind]))
        if kind.startswith("s"):
            return varint(number * 2 + random.randrange(2), random)
        return varint(number if kind.startswith("u") else number * random.choice([1, -1]), random)
    if kind == "bool":
        return varint(random.randrange(2), random)
    if kind == "Status":
        return varint(random.randrange(3) if random.random() > 0.0001 else random.choice([-1, 3, 2**32]), random)
    if kind == "string":
        return sized("".join(random.choices("ab€ x", k=random.choice([0, 1, 5, 30]))).encode(), random)
    if kind == "bytes":
        return sized(random.randbytes(random.randint(0, 5)), random)
    if kind == "google.protobuf.Timestamp":
        seconds = varint(8, random) + varint(random.randint(-(10**9), 10**10), random)
        nanos = varint(16, random) + varint(random.randrange(10**9), random)
        return sized(random.choice([b"", seconds, nanos, seconds + nanos]), random)
    return sized(written(random, messages, kind, odd=odd), random)

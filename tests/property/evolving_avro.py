"""AVRO schemas drawn by a seed, what they may become in another version, and values with their bytes.

The bytes are written here, and not by a library: a writer may split a list into blocks, name their sizes or not, and
pad a number with groups of zeros.
"""

from __future__ import annotations

import copy
import json
import struct
from random import Random
from typing import Any

NUMBERS = {"int": 31, "long": 63}
LEAVES: tuple[Any, ...] = (
    "boolean", "int", "int", "long", "long", "float", "double", "string", "string", "bytes", "enum", "fixed",
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "time-micros"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "local-timestamp-millis"},
    {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3},
    {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0},
    ["int", "long"],
    ["float", "null", "double"],
)  # fmt: skip
BECOMES = {"int": ["long", "float", "double"], "long": ["int", "double"], "float": ["double"], "string": ["bytes"],
           "bytes": ["string"]}  # fmt: skip
MOMENTS = {"timestamp-millis": "timestamp-micros", "timestamp-micros": "timestamp-millis"}
DEFAULTS = {"boolean": True, "int": 7, "long": -7, "float": 0.5, "double": 1.5, "string": "x", "bytes": "x"}
DAYS = {"time-millis": 86_400_000, "time-micros": 86_400_000_000}


class Names:
    """Names that no other type of a schema has."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.count = 0

    def one(self) -> str:
        self.count += 1
        return f"N{self.count}"


def leaf(names: Names) -> Any:
    random = names.random
    kind = copy.deepcopy(random.choice(LEAVES))
    if kind == "enum":
        return {
            "type": "enum",
            "name": names.one(),
            "symbols": random.sample(["A", "B", "C", "D"], random.randint(1, 4)),
        }
    if kind == "fixed":
        if random.random() < 0.3:
            decimal = {"logicalType": "decimal", "precision": 9, "scale": 2}
            return {"type": "fixed", "name": names.one(), "size": random.choice([4, 5, 9]), **decimal}
        return {"type": "fixed", "name": names.one(), "size": random.choice([1, 3, 16])}
    return kind


def some_type(names: Names, depth: int) -> Any:
    """Return a type, perhaps with null."""
    random = names.random
    kind = leaf(names)
    if depth and random.random() < 0.45:
        inner = some_type(names, depth - 1)
        kind = random.choice(
            [{"type": "array", "items": inner}, {"type": "map", "values": inner}, record(names, depth - 1)]
        )
    if not isinstance(kind, list) and random.random() < 0.35:
        return random.choice([["null", kind], [kind, "null"]])
    return kind


def record(names: Names, depth: int) -> dict[str, Any]:
    fields = [{"name": f"f{place}", "type": some_type(names, depth)} for place in range(names.random.randint(1, 5))]
    return {"type": "record", "name": names.one(), "fields": fields}


def evolved(schema: Any, random: Random) -> Any:
    """Return what a type may be in another version; often the same."""
    if isinstance(schema, list):
        if not any(isinstance(branch, dict) or branch == "null" for branch in schema) or len(schema) > 2:
            return schema
        inner = [evolved(branch, random) if branch != "null" else branch for branch in schema]
        return (
            inner[1 - inner.index("null")] if len(inner) == 2 and "null" in inner and random.random() < 0.1 else inner
        )
    if isinstance(schema, str):
        return random.choice(BECOMES[schema]) if schema in BECOMES and random.random() < 0.12 else schema
    made = dict(schema)
    if schema.get("logicalType") in MOMENTS and random.random() < 0.4:
        made["logicalType"] = MOMENTS[schema["logicalType"]]
    elif schema.get("logicalType") == "decimal" and random.random() < 0.2:
        made |= {"precision": random.choice([12, 20, 38]), "scale": schema["scale"] + random.choice([0, 1])}
    elif schema["type"] == "enum" and random.random() < 0.4:
        made["symbols"] = random.sample(["A", "B", "C", "D", "E"], random.randint(1, 5))
        if random.random() < 0.6:
            made["default"] = made["symbols"][0]
    for part in ("items", "values"):
        if part in made:
            made[part] = evolved(made[part], random)
    if "fields" in made:
        made["fields"] = fields_evolved(made["fields"], random)
    return made


def fields_evolved(fields: list[Any], random: Random) -> list[Any]:
    made = []
    for field in fields:
        if random.random() < 0.15:
            continue
        kind = evolved(field["type"], random)
        if not isinstance(kind, list) and random.random() < 0.1:
            kind = ["null", kind]
        made.append({"name": field["name"], "type": kind})
        if random.random() < 0.1:
            made[-1:] = renamed(made[-1], random)
    if random.random() < 0.3:
        kind = random.choice(sorted(DEFAULTS))
        made.append({"name": "more", "type": kind, "default": DEFAULTS[kind]})
        made.append({"name": "nothing", "type": ["null", "string"], "default": None})
    if random.random() < 0.3:
        random.shuffle(made)
    return made or [{"name": "only", "type": "long", "default": 5}]


def renamed(field: Any, random: Random) -> list[Any]:
    """Return a field by another name, often beside one that has got its old name since, or has the same alias."""
    name, kind = field["name"], field["type"]
    other = {"name": f"renamed_{name}", "type": kind, "aliases": [name]}
    if not isinstance(kind, str) or random.random() < 0.25:
        return [other]
    other["default"] = DEFAULTS[kind]
    again = {"name": name, "type": kind, "default": DEFAULTS[kind]}
    twin = other | {"name": f"twin_{name}"}
    made = random.choice([[other, again], [other, again, twin], [other, twin]])
    return random.sample(made, len(made))


def has_old_names_back(schema: Any) -> bool:
    """Whether a field has a name that is another field's alias: fastavro takes such names otherwise."""
    if isinstance(schema, list):
        return any(map(has_old_names_back, schema))
    if not isinstance(schema, dict):
        return False
    fields = schema.get("fields", [])
    aliases = {alias for field in fields for alias in field.get("aliases", [])}
    inner = [field["type"] for field in fields] + [schema.get("items"), schema.get("values"), schema.get("type")]
    return not aliases.isdisjoint(field["name"] for field in fields) or any(map(has_old_names_back, inner))


def varint(number: int, random: Random) -> bytes:
    """Return a number as AVRO has it, seldom with groups of zeros after it."""
    left = (number << 1) ^ (number >> 63)
    out = bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    if random.random() < 0.001 and len(out) < 10:
        more = random.randint(1, 10 - len(out))
        out[-1] |= 0x80
        out += b"\x80" * (more - 1) + b"\0"
    return bytes(out)


def sized(data: bytes, random: Random) -> bytes:
    return varint(len(data), random) + data


def written(schema: Any, random: Random) -> bytes:
    """Return a random value as bytes."""
    if isinstance(schema, list):
        place = random.randrange(len(schema))
        branch = schema[place]
        return varint(place, random) + (b"" if branch == "null" else written(branch, random))
    if isinstance(schema, str):
        return plain({"type": schema}, random)
    if "fields" in schema:
        return b"".join(written(field["type"], random) for field in schema["fields"])
    if schema["type"] == "array":
        return blocks([written(schema["items"], random) for _ in range(length(random))], random)
    if schema["type"] == "map":
        keys = [f"key {number}" * random.randint(0, 2) + str(number) for number in range(length(random))]
        return blocks([sized(key.encode(), random) + written(schema["values"], random) for key in keys], random)
    return plain(schema, random)


def length(random: Random) -> int:
    return random.choice([0, 0, 1, 1, 2, 3, 12 if random.random() < 0.02 else 4])


def blocks(items: list[bytes], random: Random) -> bytes:
    out = b""
    while items:
        count = random.randint(1, len(items)) if random.random() < 0.2 else len(items)
        block, items = b"".join(items[:count]), items[count:]
        named = random.random() < 0.3
        out += (varint(-count, random) + varint(len(block), random) if named else varint(count, random)) + block
    return out + varint(0, random)


def plain(schema: Any, random: Random) -> bytes:
    kind, logical = schema["type"], schema.get("logicalType", "")
    if logical == "decimal":
        size = schema.get("size") or (17 if random.random() < 0.0005 else random.choice([0, 1, 2, 3, 5, 8, 9, 15, 16]))
        most = min(10 ** schema["precision"] - 1, 2 ** (8 * size - 1) - 1 if size else 0)
        data = random.randint(-most, most).to_bytes(size, "big", signed=True)
        return data if kind == "fixed" else sized(data, random)
    if kind in NUMBERS:
        if logical in DAYS:
            return varint(random.randrange(DAYS[logical]), random)
        bits = random.choice([3, 6, 13, 31, NUMBERS[kind] if not logical else 40])
        return varint(random.randint(-(2**bits), 2**bits - 1) if bits <= NUMBERS[kind] else 0, random)
    if kind in ("float", "double"):
        return struct.pack("<f" if kind == "float" else "<d", random.choice([0.0, -0.0, 0.5, -1e9, random.random()]))
    if kind == "boolean":
        return bytes([random.randrange(2)])
    if kind == "enum":
        return varint(random.randrange(len(schema["symbols"])), random)
    if kind == "fixed":
        return random.randbytes(schema["size"])
    text = "".join(random.choices("ab€\U0001f600 x", k=random.choice([0, 1, 5, 20, 80])))
    raw = random.randbytes(3) if kind == "bytes" and random.random() < 0.05 else text.encode()
    return sized(raw, random)


def damaged(data: bytes, random: Random) -> bytes:
    """Return bytes that a writer did not write."""
    at = random.randint(0, len(data))
    match random.randrange(6):
        case 0:
            return data[:at]
        case 1:
            return data + random.randbytes(random.randint(1, 3))
        case 2:
            return (
                data[:at]
                + bytes([random.choice([0, 1, 2, 3, 0x7F, 0x80, 0xFF, random.randrange(256)])])
                + data[at + 1 :]
            )
        case 3:
            return data[:at] + b"\xff" * random.randint(1, 12) + data[at:]
        case 4:
            return data[:at] + random.randbytes(random.randint(0, 9))
    return data[:at] + b"\x80" * random.randint(1, 11) + random.choice([b"\0", b"\1", b""]) + data[at:]


def without_logical_types(schema: Any) -> Any:
    """Return a schema with its types as they are stored."""
    if isinstance(schema, list):
        return [without_logical_types(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key not in ("logicalType", "precision", "scale")}
    for part in ("items", "values", "type"):
        if part in kept:
            kept[part] = without_logical_types(kept[part])
    if "fields" in kept:
        kept["fields"] = [field | {"type": without_logical_types(field["type"])} for field in kept["fields"]]
    return kept


def pair(random: Random, depth: int = 3) -> tuple[Any, Any]:
    """Return the schema of the messages and that of the query, which may be the same."""
    writer = record(Names(random), depth)
    reader = writer if random.random() < 0.3 else evolved(writer, random)
    return json.loads(json.dumps(writer)), json.loads(json.dumps(reader))

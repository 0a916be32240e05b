"""What BookKeeper's own classes wrote: ledgers.json, taken apart."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from eos.bookkeeper.wire.digest import Digest

LEDGER = 4711
PASSWORD = b"secret"

_ALL: list[dict[str, Any]] = json.loads((Path(__file__).parent / "ledgers.json").read_text(encoding="utf-8"))

STORED = {Digest[one["digest"]]: bytes.fromhex(one["stored"]) for one in _ALL if one["kind"] == "stored"}
"""Entry 6, with the payload "the payload", the last confirmed entry 5 and the length 77, by its digest."""

FRAMES = {one["name"]: bytes.fromhex(one["frame"]) for one in _ALL if one["kind"] == "frame"}
"""Frames with their sizes, by what they are."""

METADATA = [one | {"znode": base64.b64decode(one["znode"])} for one in _ALL if one["kind"] == "metadata"]
"""The same ledger's metadata: format, state, digest, znode, printed."""

"""CRC32C (Castagnoli), the checksum of a frame's metadata and payload."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import google_crc32c
import pyarrow as pa

Buffer = bytes | bytearray | memoryview


def crc32c(parts: Iterable[Buffer]) -> int:
    """Return the checksum of the concatenated parts as an unsigned 32-bit number."""
    value = 0
    for part in parts:
        # google-crc32c takes no memoryview; an Arrow buffer over one is accepted, and copies nothing.
        value = google_crc32c.extend(value, part if isinstance(part, bytes) else pa.py_buffer(part))
    return value


def crc32c_of_each(parts: Sequence[bytes]) -> list[int]:
    """Return the checksum of each of these, as `crc32c` does of all."""
    return list(map(google_crc32c.value, parts))

"""Keys whose hashes are in key_hashes.json: every length of a tail, every length of a UTF-8 sequence."""

from __future__ import annotations

import random


def keys() -> list[str]:
    """Return the keys; the same at every call."""
    chosen = [
        "",
        "a",
        "Aa",
        "BB",
        "é",
        "ключ",
        "日本語",
        "😀",
        "a😀b",
        "\x00",
        "\x7f\x80\u07ff\u0800\uffff",
        "\U00010000",
    ]
    chosen += ["".join(chr(97 + (length + i) % 26) for i in range(length)) for length in range(2, 40)]
    draw = random.Random(1)
    letters = "abcxyz0189-_é日😀"
    chosen += ["".join(draw.choices(letters, k=draw.randint(1, 60))) for _ in range(100)]
    return chosen

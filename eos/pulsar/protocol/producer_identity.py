"""How a producer introduces itself: by a name and by properties, which `pulsar-admin topics stats` shows."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """Who writes. The names made of it are all different.

    Attributes:
        name: what the producers' names begin with, for a person to read.
        properties: what else is to be known; texts.
        encrypted: whether all that it writes is encrypted. The broker then refuses what is not. Default False.
    """

    name: str
    properties: Mapping[str, str] = field(default_factory=dict)
    encrypted: bool = False

    def part(self, role: str, **properties: str) -> ProducerIdentity:
        """Return the introduction of a part of this writer: its role, in a word, and what else is to be known of it."""
        return ProducerIdentity(f"{self.name}:{role}", {**self.properties, **properties}, self.encrypted)

    def fresh_name(self) -> str:
        """Return a name that no producer had before.

        With deduplication the broker remembers the sequence ids of a name beyond an abort, and drops what comes under
        them again.
        """
        return f"{self.name}:{secrets.token_hex(8)}"

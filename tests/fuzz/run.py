"""Damage entries and values at random for some time: `python -m tests.fuzz.run --minutes 30 [--seed N]`.

Each case has a seed of its own, which is printed with a fault. A case that takes longer than `HANG_S` is a fault too.
"""

from __future__ import annotations

import argparse
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from eos.pulsar.wire.encryption import Decryptor
from eos.schema import json_values
from tests.fuzz import judge
from tests.fuzz.corpus import Stored, Value, decryptor, entry, stored, values
from tests.fuzz.mutations import mutated, with_other_metadata
from tests.wire import received

HANG_S = 60
MEMORY_BYTES = 64 * 1024 * 1024 + 12 * judge.MOST
"""The allowed growth of the process: that of decoding small entries, and twelve times the largest message."""


class Hang(judge.Fault):
    """A case did not end."""


class Fuzzer:
    """Makes cases, and judges what comes of them.

    Attributes:
        outcomes: how often each result came of each kind of damage.
    """

    def __init__(self, folder: Path) -> None:
        """Args: a folder for the keys of encrypted entries."""
        json_values._TRIES = sys.maxsize  # each damaged value is read in step, too
        self._stored: list[Stored] = stored()
        self._values: list[Value] = values()
        self._decrypt: Decryptor = decryptor(folder)
        self._bytes = [bytes(one.packed) for group in self._stored for one in group.entries] + [
            one.data for one in self._values
        ]
        self._rows = {group.name: judge.rows(list(group.entries), self._decrypt) for group in self._stored}
        assert all(isinstance(found, list) and found for found in self._rows.values()), self._rows
        assert {judge.value(one, one.data) for one in self._values} == {"read"}
        self.outcomes: Counter[tuple[str, str]] = Counter()

    def case(self, seed: int) -> None:
        """Make the case of a seed. Raises Fault, or whatever else must not come out."""
        random = Random(seed)
        kind = random.choice((self._value, self._value, self._entry, self._frame))
        before = signal.signal(signal.SIGALRM, _hung)
        signal.alarm(HANG_S)
        try:
            self.outcomes[kind.__name__.lstrip("_"), kind(random)] += 1
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)

    def _value(self, random: Random) -> str:
        one = random.choice(self._values)
        return judge.value(one, mutated(one.data, random, self._bytes))

    def _entry(self, random: Random) -> str:
        """Damage below the checksum: as a producer, or a broken disk with a right checksum, would leave it."""
        group = random.choice(self._stored)
        entries = [entry(one.metadata, bytes(one.packed), one.id.entry) for one in group.entries]
        if len(entries) > 1 and random.randrange(3) == 0:
            random.shuffle(entries)
            entries = entries[: random.randint(1, 3)] + entries[: random.randrange(2)]
        place = random.randrange(len(entries))
        one = entries[place]
        metadata = with_other_metadata(one.metadata, random) if random.randrange(3) else one.metadata
        packed = mutated(bytes(one.packed), random, self._bytes) if random.randrange(3) else bytes(one.packed)
        if random.randrange(10) == 0:
            packed += bytes(random.choice((1_000, 200_000)))
        entries[place] = entry(metadata, packed, one.id.entry)
        judge.among(entries[place], one)
        found = judge.rows(entries, self._decrypt)
        return "refused" if isinstance(found, str) else "read"

    def _frame(self, random: Random) -> str:
        """Damage a frame without making its checksum anew."""
        plain = [group for group in self._stored if group.name not in ("chunks", "encrypted")]
        group = random.choice(plain)
        (one,) = group.entries
        before = [dict(row) for row in self._rows[group.name] if isinstance(row, dict)]
        return judge.framed(mutated(received(one), random, [b"\x0e\x02\0\0\0\x01\0", *self._bytes]), before)


def grown(start: int) -> int:
    """Return the bytes by which the process has grown at most. Args: what it had at its most before, in bytes."""
    return most() - start


def most() -> int:
    """Return the bytes that the process had at its most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _hung(number: int, frame: FrameType | None) -> Any:
    raise Hang(f"the case did not end within {HANG_S} s")


def main() -> int:
    """Run for some minutes; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fuzzer = Fuzzer(Path(folder))
    end, seed, start, faults = time.monotonic() + 60 * given.minutes, given.seed, most(), 0
    while time.monotonic() < end:
        try:
            fuzzer.case(seed)
        except Exception as error:
            faults += 1
            sys.stdout.write(f"seed {seed}: {type(error).__name__}: {str(error)[:2000]}\n")
        seed += 1
    sys.stdout.write(f"{seed - given.seed} cases, {faults} faults, grown by {grown(start) / 2**20:.0f} MiB\n")
    for (kind, outcome), count in sorted(fuzzer.outcomes.items()):
        sys.stdout.write(f"{kind}: {outcome} {count}\n")
    return 1 if faults or grown(start) > MEMORY_BYTES else 0


if __name__ == "__main__":
    sys.exit(main())

"""The output of a command: all texts can be printed, and where nothing can be printed, the command ends."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, TextIO

READER_GONE: Final = 141
"""Exit code where nobody reads the output any longer, as with `| head -1`: 128 + SIGPIPE, as in shells."""


class Unprinted(Exception):
    """A stream of the command takes nothing further. No error of `eos`, lest its packages take it for one and go on.

    Attributes:
        error: why.
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(
            f"the output can't be written: {error.strerror}. The command may have done its work all the same"
        )
        self.error = error

    def __reduce__(self) -> tuple[type[Unprinted], tuple[OSError]]:
        return type(self), (self.error,)


class _Stream(io.TextIOWrapper):
    """A stream whose errors can be told from others; it prints what its encoding lacks as a number, \\u2026."""

    def __init__(self, over: io.TextIOWrapper) -> None:
        super().__init__(
            over.buffer,
            over.encoding,
            "backslashreplace",
            line_buffering=over.line_buffering,
            write_through=over.write_through,
        )

    def write(self, text: str, /) -> int:
        """Write a text. Raises Unprinted."""
        try:
            return super().write(text)
        except OSError as error:
            raise Unprinted(error) from error

    def flush(self) -> None:
        """Hand on what is written. Raises Unprinted."""
        try:
            super().flush()
        except OSError as error:
            raise Unprinted(error) from error


@contextmanager
def printing(no_answer: int) -> Iterator[None]:
    """Let the block print. Where it can't, it ends with a sentence on standard error and an exit code.

    Args: the exit code, but for output that nobody reads any longer: then it ends without a word, by READER_GONE.
    """
    before = sys.stdout, sys.stderr
    # Python has None for a stream that was closed when the command began. Nobody reads it, and all may write to it.
    whole = [_nowhere() if one is None else one for one in before]
    mine = [_Stream(one) if isinstance(one, io.TextIOWrapper) else one for one in whole]
    sys.stdout, sys.stderr = mine
    try:
        try:
            yield
        finally:
            for one in mine:
                one.flush()
    except Unprinted as lost:
        gone = lost.error.errno == errno.EPIPE
        if not gone:
            with suppress(Unprinted):
                print(f"error: {lost}", file=sys.stderr, flush=True)
        _let_go(mine)
        sys.exit(READER_GONE if gone else no_answer)
    finally:
        sys.stdout, sys.stderr = before
        for one in mine:
            if isinstance(one, _Stream):
                one.detach()  # else it would close what lies below it


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")


def _let_go(streams: Sequence[TextIO]) -> None:
    """Send what is not written yet nowhere: Python would try it again at its end, and say so."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for one in streams:
        os.dup2(nowhere, one.fileno())

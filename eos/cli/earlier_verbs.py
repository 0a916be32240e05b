"""Verbs that have moved: an old verb answers with the present one."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

from eos.errors import InvalidInput

_OF_SINKS = ("show", "verify", "abort", "skip", "reset", "adopt")
MOVED = {
    ("eos", "tables"): "topics",
    ("eos", "sinks"): "sink list",
    **{("eos", verb): f"sink {verb}" for verb in _OF_SINKS},
    ("local", "topic"): "topics create",
    ("local", "read"): "peek",
}
"""{(the group, its verb before): the verb now}"""


class EarlierVerbs(TyperGroup):
    """A group of verbs that names a moved verb's present name."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a verb's command. Raises InvalidInput for one that has moved."""
        if now := MOVED.get((self.name or "", cmd_name)):
            raise InvalidInput(f"This verb has moved. It is now: eos {now}")
        return super().get_command(ctx, cmd_name)

"""Outputs of verbs for docs/reference/commands.md, one at least of each group, as tests have recorded them.

Those of `eos` come from a real Pulsar (tests/integration/situations). The others are printed by the commands' code on
stand-ins (tests/unit/tools/test_command_outputs.py). Both tests fail when a command prints something else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
SITUATIONS = TESTS / "integration" / "situations" / "as_text.md"
STAND_INS = TESTS / "unit" / "tools" / "command_outputs.md"
SHOWN: Mapping[str, tuple[Path, str]] = {
    "eos doctor": (SITUATIONS, "Healthy"),
    "eos local status": (STAND_INS, "Stand-ins"),
    "eos sink abort": (SITUATIONS, "In doubt"),
    "eos sink verify": (SITUATIONS, "Healthy"),
    "eos topics": (SITUATIONS, "Healthy"),
    "statestore savepoint create": (STAND_INS, "Stand-ins"),
    "statestore verify": (STAND_INS, "Stand-ins"),
}
"""{verb: the recording, and the title there}"""


def output_of(verb: str) -> str | None:
    """Return a command line with this verb and what it printed. None: the page shows no output of this verb.

    Raises LookupError where the recording has none.
    """
    if verb not in SHOWN:
        return None
    page, title = SHOWN[verb]
    _, _, after = page.read_text(encoding="utf-8").partition(f"\n## {title}\n")
    found = re.search(rf"^\$ {verb}\s(?s:.*?)(?=\n(?:exit code \d\n)?```$)", after.partition("\n## ")[0], re.MULTILINE)
    if found is None:
        raise LookupError(f'{page} has no output of "{verb}" under "{title}"')
    return found[0]

from __future__ import annotations

import inspect
import re

from eos import bookkeeper
from eos.bookkeeper import errors


def test_the_tree_at_the_top_names_each_error_under_its_parent() -> None:
    drawn = dict(re.findall(r"^ *(?:│ +)?[├└]── (\w+) +(.*)$", errors.__doc__ or "", re.MULTILINE))
    made = {name for name, one in inspect.getmembers(errors, inspect.isclass) if one.__module__ == errors.__name__}
    assert drawn.keys() == made - {"LedgerReadError"}


def test_the_package_gives_out_what_a_program_needs_and_nothing_else() -> None:
    assert all(hasattr(bookkeeper, name) for name in bookkeeper.__all__)
    assert "kazoo" not in {module.partition(".")[0] for module in vars(bookkeeper)}

"""The options of a catalog: those of a batch read, whose topics are its tables."""

from __future__ import annotations

from collections.abc import Mapping

from eos.errors import InvalidInput
from eos.source.options import SourceOptions, parse_options


def catalog_options(given: Mapping[str, str]) -> SourceOptions:
    """Return the checked options of a catalog, for no topic. Raises InvalidInput."""
    options = parse_options({**given, "topic": "any"}, "batch")
    if options.on_damaged == "keep":
        raise InvalidInput(
            "onDamagedEntry=keep needs the column __damage, which no table of the SQL catalog has. Give the catalog "
            'onDamagedEntry=skip, or read by format("pulsar") with a schema that names the column.'
        )
    return options

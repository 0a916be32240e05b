"""The offsets of a batch beside those of the batch before: what a cut line of `offsets` can't tell by itself.

Spark refuses offsets of fewer sources than the query has (OffsetSeq.toStreamProgress), and a source refuses an offset
that isn't whole. How many sources there are, other batches tell, and the folders of those that note something; what
their offsets look like, only other batches.
"""

from __future__ import annotations

from collections.abc import Iterator

from eos.json_reader import read_json
from statestore.checkpoint.files import Files, join
from statestore.checkpoint.logs import OFFSETS, SOURCES, OffsetsLogEntry, batch_ids, read_offsets
from statestore.checkpoint.sources import numbers_of
from statestore.checkpoint.stores import Gap
from statestore.errors import Damaged, NotFound, Unavailable, Unreadable

_BEGINS_JSON = ("{", "[", '"')


def wrong_offsets(files: Files, last: int) -> Iterator[Gap]:
    """Yield what is wrong with the offsets of a batch and of the batch before, which a start reads.

    Args:
        last: the batch that was planned last.
    """
    known: dict[int, OffsetsLogEntry] = {}
    for number in batch_ids(files, OFFSETS):
        if last - 2 <= number <= last + 1:
            try:
                known[number] = read_offsets(files, number)
            except Unreadable as error:
                if number in (last - 1, last):
                    yield Gap.of(join(OFFSETS, str(number)), error)
            except (NotFound, Unavailable):
                pass  # who reads it later says so
    most = max((len(offsets.sources) for offsets in known.values()), default=0)
    noted = max((int(name) + 1 for name in files.list(SOURCES) if name.isdecimal()), default=0)
    for number in (last - 1, last):
        if number in known and (reason := _reason(known, number, most, noted)):
            yield Gap(join(OFFSETS, str(number)), reason, "damaged")


def _reason(known: dict[int, OffsetsLogEntry], number: int, most: int, noted: int) -> str:
    """The fault of a batch's offsets. "" where there is none."""
    offsets = known[number]
    if offsets.version == 1 and len(offsets.sources) < most:
        return (
            f"it has the offsets of {len(offsets.sources)} sources, and another batch those of {most}. It was cut short"
        )
    if offsets.version == 1 and len(offsets.sources) < noted:
        more = join(SOURCES, str(noted - 1))
        return f"it has the offsets of {len(offsets.sources)} sources, and {more} is of one more. It was cut short"
    try:
        numbers_of(offsets)
    except Damaged as error:
        return str(error)
    for folder, offset in offsets.of_sources.items():
        if offset is None:
            continue
        source = folder.rpartition("/")[2]
        of_others = (one.of_sources.get(folder) for batch, one in known.items() if batch != number)
        if _is_cut(offset, [other for other in of_others if other is not None]):
            return f"the offset of source {source} is not whole: {offset[-40:]!r}"
        earlier = known[number - 1].of_sources.get(folder) if number - 1 in known else None
        if earlier is not None and earlier.isdecimal() and offset.isdecimal() and int(offset) < int(earlier):
            return f"the offset of source {source} goes back, from {earlier} to {offset}"
    return ""


def _is_cut(offset: str, others: list[str]) -> bool:
    """Whether an offset is JSON that doesn't end. A source's offset may be any text: then others are none either."""
    if _is_json(offset):
        return False
    return any(_is_json(other) for other in others) or (not others and offset.startswith(_BEGINS_JSON))


def _is_json(text: str) -> bool:
    try:
        read_json(text)
    except ValueError:
        return False
    return True

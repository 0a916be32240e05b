from __future__ import annotations

import itertools
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eos.bookkeeper.errors import (
    BookieUnauthorized,
    BookieUnavailable,
    BookieUntrusted,
    EntryDamaged,
    EntryMissing,
    LedgerReadError,
    MetadataUnreadable,
)
from eos.bookkeeper.net.bookies import Bookies, by_id, by_map
from eos.bookkeeper.net.ledger_reader import Denial, Evidence, LedgerReader, verdict
from eos.bookkeeper.wire.digest import Digest, StoredEntries
from eos.bookkeeper.wire.frames import Code, Operation
from eos.bookkeeper.wire.metadata import LedgerMetadata, LedgerState
from tests.certificates import AUTHORITY, make_authority, make_certificate
from tests.simulation.bookie import SimulatedBookie

LEDGER, ENTRIES = 7, 40
PAYLOADS = [f"payload {number}".encode() for number in range(ENTRIES)]
WHOLE = list(enumerate(PAYLOADS))


@pytest.fixture
def bookies() -> Iterator[list[SimulatedBookie]]:
    with ExitStack() as opened:
        made = [opened.enter_context(SimulatedBookie()) for _ in range(3)]
        yield sorted(made, key=lambda one: one.id)  # the first is asked first


@pytest.fixture
def connect() -> Iterator[Callable[..., Bookies]]:
    with ExitStack() as opened:
        yield lambda **options: opened.enter_context(Bookies(**{"timeout_s": 0.3, **options}))


def stored_on(
    bookies: Sequence[SimulatedBookie], *, write_quorum: int = 3, move_at: int | None = None
) -> LedgerMetadata:
    """Store the ledger on these bookies, from the entry `move_at` on in another order, and return its metadata."""
    ids = tuple(one.id for one in bookies)
    ensembles = ((0, ids),) if move_at is None else ((0, ids), (move_at, (*ids[1:], ids[0])))
    length = sum(map(len, PAYLOADS))
    metadata = LedgerMetadata(
        LEDGER, LedgerState.CLOSED, len(ids), write_quorum, 1, ensembles, Digest.CRC32C, ENTRIES - 1, length
    )
    entries = StoredEntries(LEDGER, Digest.CRC32C)
    for number, payload in WHOLE:
        for one in bookies:
            if one.id in metadata.replicas(number):
                one.entries[LEDGER, number] = entries.stored(number, number - 1, 0, payload)
    return metadata


def read(reader: LedgerReader, first: int = 0, last: int = ENTRIES - 1) -> list[tuple[int, bytes]]:
    return list(itertools.chain.from_iterable(reader.read(first, last)))


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("write_quorum", [1, 2, 3])
@pytest.mark.parametrize("move_at", [None, 13])
@pytest.mark.parametrize("batch_bytes", [1, 50, 2**20])
def test_each_range_comes_whole_and_in_order(
    bookies: list[SimulatedBookie], connect: Any, old: bool, write_quorum: int, move_at: int | None, batch_bytes: int
) -> None:
    for one in bookies:
        one.old = old
    metadata = stored_on(bookies, write_quorum=write_quorum, move_at=move_at)
    for turn, (first, last) in enumerate([(0, ENTRIES - 1), (5, 5), (12, 14), (ENTRIES - 1, ENTRIES - 1), (4, 3)]):
        reader = LedgerReader(connect(), metadata, batch_bytes=batch_bytes, turn=turn)
        assert read(reader, first, last) == WHOLE[first : last + 1]


@pytest.mark.parametrize("write_quorum", [2, 3])
def test_a_bookie_that_is_gone_or_silent_is_passed_over(
    bookies: list[SimulatedBookie], connect: Any, write_quorum: int
) -> None:
    metadata = stored_on(bookies, write_quorum=write_quorum)
    bookies[0].close()
    assert read(LedgerReader(connect(), metadata)) == WHOLE
    opened = connect()
    bookies[1].silent = write_quorum == 3
    assert read(LedgerReader(opened, metadata)) == WHOLE
    assert opened.quarantined(bookies[0].id)
    assert not opened.quarantined(bookies[2].id)


@pytest.mark.parametrize("old", [False, True])
def test_a_bookie_whose_answer_comes_in_drops_is_passed_over(
    bookies: list[SimulatedBookie], connect: Any, old: bool
) -> None:
    """Each drop began the time-out again, so that a read could take hours."""
    metadata = stored_on(bookies)
    bookies[0].slow, bookies[0].old = True, old  # it is asked for a batch, or for many entries at once
    opened = connect()
    if old:
        opened.knows_no_batches(bookies[0].id)
    assert read(LedgerReader(opened, metadata)) == WHOLE
    assert opened.quarantined(bookies[0].id)
    for one in bookies:
        one.slow = True
    with pytest.raises(BookieUnavailable, match=r"sent \d+ bytes within 0\.3 s"):
        read(LedgerReader(connect(), metadata, patience_s=0))


@pytest.mark.parametrize("write_quorum", [2, 3])
def test_what_one_bookie_lacks_or_damaged_comes_from_another(
    bookies: list[SimulatedBookie], connect: Any, write_quorum: int
) -> None:
    metadata = stored_on(bookies, write_quorum=write_quorum)
    for entry in range(0, ENTRIES, 3):
        holder = next(one for one in bookies if one.id == metadata.replicas(entry)[0])
        if entry % 2:
            del holder.entries[LEDGER, entry]
        else:
            holder.entries[LEDGER, entry] = holder.entries[LEDGER, entry][:-1] + b"?"
    for turn in range(3):
        assert read(LedgerReader(connect(), metadata, turn=turn)) == WHOLE


def test_what_all_lack_is_missing_and_what_one_has_damaged_is_damaged(
    bookies: list[SimulatedBookie], connect: Any
) -> None:
    metadata = stored_on(bookies)
    for one in bookies:
        del one.entries[LEDGER, 7]
    with pytest.raises(EntryMissing, match=r"entry 7:7 is lost\. Each bookie of its write set was asked"):
        read(LedgerReader(connect(), metadata, patience_s=0))
    bookies[0].entries[LEDGER, 7] = bookies[0].entries[LEDGER, 8]
    with pytest.raises(EntryDamaged, match=f"{bookies[0].id} has it damaged"):
        read(LedgerReader(connect(), metadata, patience_s=0))


@pytest.mark.parametrize("broken", ["closed", "silent", "busy"])
def test_while_one_is_silent_nothing_is_proved(bookies: list[SimulatedBookie], connect: Any, broken: str) -> None:
    metadata = stored_on(bookies)
    for one in bookies[1:]:
        one.entries.clear()
    if broken == "closed":
        bookies[0].close()
    bookies[0].silent = broken == "silent"
    bookies[0].refuses = Code.TOO_MANY_REQUESTS if broken == "busy" else None
    with pytest.raises(BookieUnavailable, match="could not be asked"):
        read(LedgerReader(connect(), metadata, patience_s=0.2))


def test_a_silent_bookie_that_answers_again_is_waited_for(bookies: list[SimulatedBookie], connect: Any) -> None:
    metadata = stored_on(bookies[:1], write_quorum=1)
    bookies[0].silent = True

    def wake() -> LedgerMetadata:
        bookies[0].silent = False
        return metadata

    assert read(LedgerReader(connect(), metadata, refresh=wake)) == WHOLE


def test_entries_that_were_moved_are_found_by_metadata_that_are_read_again(
    bookies: list[SimulatedBookie], connect: Any
) -> None:
    metadata = stored_on(bookies[:1], write_quorum=1)
    gone = replace(metadata, ensembles=((0, ("127.0.0.1:1",)),))
    assert read(LedgerReader(connect(), gone, refresh=lambda: metadata)) == WHOLE
    with pytest.raises(BookieUnavailable):
        read(LedgerReader(connect(), gone, refresh=lambda: gone, patience_s=0))


class AdminDown:
    """Reads metadata again in vain, and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> LedgerMetadata:
        self.calls += 1
        raise LedgerReadError("the metadata of ledger 7 can't be read again: brokers down")


def failing(tries: int) -> Callable[[str], tuple[str, int]]:
    """Return a way to bookies that can't be reached so many times."""
    left = iter(range(tries))

    def resolve(bookie: str) -> tuple[str, int]:
        if next(left, None) is not None:
            raise BookieUnavailable("restarting")
        return by_id(bookie)

    return resolve


def test_bookies_are_waited_for_while_the_metadata_can_not_be_read_again_either(
    bookies: list[SimulatedBookie], connect: Any
) -> None:
    """The first round that failed ended the read, where all brokers were down too."""
    metadata = stored_on(bookies[:1], write_quorum=1)
    assert read(LedgerReader(connect(resolve=failing(2)), metadata, refresh=AdminDown(), window=1)) == WHOLE
    with pytest.raises(BookieUnavailable, match=r"restarting.*brokers down") as raised:
        read(LedgerReader(connect(resolve=failing(99)), metadata, refresh=AdminDown(), patience_s=0.1))
    assert isinstance(raised.value.__cause__, LedgerReadError)
    assert "lost" not in str(raised.value)


@pytest.mark.parametrize("broken", ["missing", "damaged", "refused"])
def test_metadata_that_may_be_old_prove_nothing(bookies: list[SimulatedBookie], connect: Any, broken: str) -> None:
    metadata = stored_on(bookies[:1], write_quorum=1)
    if broken == "missing":
        del bookies[0].entries[LEDGER, 7]
    elif broken == "damaged":
        bookies[0].entries[LEDGER, 7] = bookies[0].entries[LEDGER, 8]
    else:
        bookies[0].refuses = Code.UNAUTHORIZED
    with pytest.raises(BookieUnavailable, match=r"Other bookies may have the entry by now.*brokers down"):
        read(LedgerReader(connect(), metadata, refresh=AdminDown(), patience_s=0.1))
    proof = {"missing": EntryMissing, "damaged": EntryDamaged, "refused": BookieUnauthorized}[broken]
    with pytest.raises(proof):
        read(LedgerReader(connect(), metadata, refresh=lambda: metadata, patience_s=0.1))


def test_a_loss_is_told_only_by_metadata_that_were_read_after_the_bookies_said_so(
    bookies: list[SimulatedBookie], connect: Any
) -> None:
    """Between two tries metadata are read once a second. An entry that moves in between is no loss."""
    metadata = stored_on(bookies[:2], write_quorum=2)
    old = replace(metadata, ensembles=((0, (bookies[2].id,) * 2),))
    bookies[2].entries[LEDGER, 0] = b""  # it knows the ledger, and no entry
    answers = iter([old, metadata])
    reader = LedgerReader(connect(resolve=failing(2)), old, refresh=lambda: next(answers), window=1)
    assert read(reader, 1) == WHOLE[1:]


def test_a_ledger_that_is_gone_is_not_waited_for(bookies: list[SimulatedBookie], connect: Any) -> None:
    def gone() -> LedgerMetadata:
        raise MetadataUnreadable("ledger 7 is no longer on bookies")

    metadata = stored_on(bookies[:1], write_quorum=1)
    with pytest.raises(MetadataUnreadable, match="no longer on bookies"):
        read(LedgerReader(connect(resolve=failing(99)), metadata, refresh=gone, window=1))


def test_metadata_are_read_again_once_a_second_while_bookies_are_waited_for(
    bookies: list[SimulatedBookie], connect: Any
) -> None:
    metadata, refresh = stored_on(bookies[:1], write_quorum=1), AdminDown()
    with pytest.raises(BookieUnavailable):
        read(LedgerReader(connect(resolve=failing(999)), metadata, refresh=refresh, patience_s=1.2, batch_bytes=1))
    assert refresh.calls == 2


def test_credentials_are_shown_and_a_bookie_that_wants_others_is_named(
    bookies: list[SimulatedBookie], connect: Any
) -> None:
    class Password:
        plugin = "password"

        def __init__(self, word: bytes) -> None:
            self.word = word

        def answer(self, challenge: bytes | None) -> bytes | None:
            return self.word if challenge is None else None

    metadata = stored_on(bookies[:1], write_quorum=1)
    bookies[0].password = b"right"
    assert read(LedgerReader(connect(authentication=lambda: Password(b"right")), metadata)) == WHOLE
    for options in ({}, {"authentication": lambda: Password(b"wrong")}):
        with pytest.raises(BookieUnauthorized, match=bookies[0].id):
            read(LedgerReader(connect(**options), metadata))


@pytest.mark.parametrize("write_quorum", [2, 3])
def test_a_bookie_that_refuses_this_client_is_passed_over(
    bookies: list[SimulatedBookie], connect: Any, write_quorum: int
) -> None:
    metadata = stored_on(bookies, write_quorum=write_quorum)
    bookies[0].refuses = Code.UNAUTHORIZED
    opened = connect()
    assert read(LedgerReader(opened, metadata)) == WHOLE
    assert opened.quarantined(bookies[0].id)


@pytest.fixture
def tls(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A bookie's side and a client's side that trust each other."""
    make_authority(tmp_path, AUTHORITY)
    make_certificate(tmp_path, "bookie", AUTHORITY, "subjectAltName=IP:127.0.0.1")
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(tmp_path / "bookie.pem", tmp_path / "bookie.key")
    return theirs, ssl.create_default_context(cafile=tmp_path / f"{AUTHORITY}.pem")


def test_tls_protects_each_answer_and_none_that_came_before_it_counts(
    bookies: list[SimulatedBookie], connect: Any, tls: tuple[ssl.SSLContext, ssl.SSLContext]
) -> None:
    metadata = stored_on(bookies[:1], write_quorum=1)
    with pytest.raises(BookieUnavailable, match="does not begin TLS: status 501"):
        read(LedgerReader(connect(tls=tls[1]), metadata, patience_s=0))
    bookies[0].tls = tls[0]
    assert read(LedgerReader(connect(tls=tls[1]), metadata)) == WHOLE
    untrusting = ssl.create_default_context()
    with pytest.raises(BookieUntrusted, match=r"certificate verify failed.*Trust the authority that signed"):
        read(LedgerReader(connect(tls=untrusting), metadata))
    for injected in (b"\0", b"\0\0\0\1?"):  # the beginning of a frame, and a whole one
        bookies[0].before_tls = injected
        with pytest.raises(BookieUnavailable, match="sent more than its answer before TLS began"):
            read(LedgerReader(connect(tls=tls[1]), metadata, patience_s=0))


def test_a_bookie_with_an_id_of_its_own_is_found_by_a_map(bookies: list[SimulatedBookie], connect: Any) -> None:
    metadata = replace(stored_on(bookies[:1], write_quorum=1), ensembles=((0, ("bookie-7",)),))
    assert read(LedgerReader(connect(resolve=by_map({"bookie-7": bookies[0].id})), metadata)) == WHOLE
    with pytest.raises(BookieUnavailable, match="entry 7:0 can't be read now, because bookie-7 could not be asked"):
        read(LedgerReader(connect(), metadata, patience_s=0))


def test_a_bookie_that_knows_batches_is_asked_for_them_and_an_old_one_once(
    bookies: list[SimulatedBookie], connect: Any
) -> None:
    metadata = stored_on(bookies[:1], write_quorum=1)
    read(LedgerReader(connect(), metadata))
    assert {operation for operation, _ in bookies[0].asked} == {Operation.BATCH_READ}
    bookies[0].old = True
    bookies[0].asked.clear()
    opened = connect()
    for _ in range(2):
        assert read(LedgerReader(opened, metadata, batch_bytes=100)) == WHOLE
    assert {operation for operation, _ in bookies[0].asked} == {Operation.READ}
    assert not opened.quarantined(bookies[0].id)


def test_no_more_requests_are_under_way_than_the_window_allows(bookies: list[SimulatedBookie], connect: Any) -> None:
    metadata = stored_on(bookies[:1], write_quorum=1)
    entries = LedgerReader(connect(), metadata, window=2, batch_bytes=1).read(0, ENTRIES - 1)
    next(entries)
    entries.close()  # type: ignore[attr-defined]
    assert len(bookies[0].asked) <= 3


@pytest.mark.parametrize("kinds", list(itertools.product([None, *Evidence], repeat=3)))
def test_the_verdict_is_a_loss_only_where_each_replica_said_so(kinds: tuple[Evidence | None, ...]) -> None:
    denials = {f"b{number}": Denial(kind) for number, kind in enumerate(kinds) if kind is not None}
    expected: type[LedgerReadError] = EntryMissing
    if not denials:
        expected = MetadataUnreadable
    elif Evidence.SILENT in kinds:
        expected = BookieUnavailable
    elif Evidence.REFUSES in kinds:
        expected = BookieUnauthorized
    elif Evidence.UNTRUSTED in kinds:
        expected = BookieUntrusted
    elif Evidence.DAMAGED in kinds:
        expected = EntryDamaged
    assert type(verdict(LEDGER, 3, denials)) is expected
    assert type(verdict(LEDGER, 3, denials, LedgerReadError("down"))) is BookieUnavailable

"""The options that say how bookies are reached: where they are, and TLS."""

from __future__ import annotations

from eos.config import Tls
from eos.errors import InvalidInput


def bookie_addresses(text: str | None) -> tuple[tuple[str, str], ...]:
    """Return id and "host:port" of each bookie that the option `bookie.addresses` names.

    Raises InvalidInput where a bookie has no host or no port.
    """
    pairs = [one.strip().partition("=") for one in text.split(",")] if text is not None else []
    for bookie, _, address in pairs:
        host, _, port = address.rpartition(":")
        if not bookie or not host or not port.isdecimal():
            raise InvalidInput(
                f"bookie.addresses={text!r} must name each bookie with its host and port, with commas between them, as "
                'in "bookie-0=10.0.0.5:3181,bookie-1=10.0.0.6:3181". Bookies whose id is an address need no entry.'
            )
    return tuple((bookie, address) for bookie, _, address in pairs)


def bookie_tls(wanted: bool, given: Tls) -> Tls | None:
    """Return how TLS with bookies goes; None for none.

    Args: whether `bookie.tls` is true; what the other options of TLS with bookies say.

    Raises InvalidInput for half of a client certificate, and for what has no effect without TLS.
    """
    if (given.certificate is None) != (given.key is None):
        raise InvalidInput("bookie.tls_certificate and bookie.tls_key belong together. Give both or neither.")
    if not wanted and given != Tls():
        raise InvalidInput(
            "the options bookie.tls_… have no effect without TLS, and bookie.tls is not true. Connections to bookies "
            "would be in plain text. Give bookie.tls=true too, or leave those options out."
        )
    return given if wanted else None

"""The parts of an address that anybody gives as a text: a host, the number of a port, a user with a password."""

from __future__ import annotations

import ipaddress
import re

from eos.option_names import whole_number

_USER = re.compile(r"^([\w.+:-]+://)[^/@]*:[^/@]*@")
"""User and password in an address, which Hadoop's older file systems and JDBC take."""


def is_host(name: str) -> bool:
    """Tell whether a name can be looked up at all. Each part between dots must have 1 to 63 characters."""
    try:
        return bool(name.encode("idna"))
    except UnicodeError:
        return False


def is_this_machine(host: str) -> bool:
    """Tell whether a host is the machine that asks: localhost, or an address of the loopback interface."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # another name
        return False


def port_number(text: str) -> int | None:
    """Return the port that a text of digits says, from 1 to 65535; None for another text."""
    number = whole_number(text) or 0
    return number if 0 < number < 65536 else None


def without_user(address: str) -> str:
    """Return an address without the user and the password in it."""
    return _USER.sub(r"\1…@", address)

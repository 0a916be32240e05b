"""Builds the site without a network: `python tools/build_site.py`. Exit code 1 when the build fails or asks for one.

A reader may be on a machine without the internet, and so may be who builds the site. A file that a build fetches today
may be gone tomorrow, and no page shows it.
"""

from __future__ import annotations

import os
import runpy
import socket
import sys

_CALLS = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto")


def refuse_network(asked: list[str]) -> None:
    """From now on no code of this process reaches another machine; each try is noted, whether it is caught or not.

    Python has no way to take this back.
    """

    def refuse(event: str, arguments: tuple[object, ...]) -> None:
        if event not in _CALLS:
            return
        if isinstance(arguments[0], socket.socket) and arguments[0].family == socket.AF_UNIX:
            return
        asked.append(f"{event}{arguments[-1] if event in ('socket.connect', 'socket.sendto') else arguments[:2]}")
        raise OSError(f"The site must be built without a network, and something asked for one: {asked[-1]}")

    sys.addaudithook(refuse)


def main() -> int:
    """Run mkdocs, and print what asked for a network. Returns the exit code."""
    os.environ["NO_MKDOCS_2_WARNING"] = "1"
    asked: list[str] = []
    refuse_network(asked)
    sys.argv = ["mkdocs", "build"]  # with --quiet it would overlook warnings, and `strict` be void
    try:
        runpy.run_module("mkdocs", run_name="__main__", alter_sys=True)
        ended = 0
    except SystemExit as end:
        ended = end.code if isinstance(end.code, int) else int(end.code is not None)
    for one in asked:
        print(f"The build of the site asked for a network: {one}", file=sys.stderr)
    return ended or int(bool(asked))


if __name__ == "__main__":
    sys.exit(main())

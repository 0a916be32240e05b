"""Where things are kept: the cache folder, the locks in it, and the folders of instances."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

Tell = Callable[[str], None]
"""Takes one line about what is going on; for people."""


def quiet(line: str) -> None:
    """Drop the line: the default."""


def cache() -> Path:
    """The cache folder: $EOS_CACHE, or $XDG_CACHE_HOME, or ~/.cache; in it `spark-pulsar-eos`."""
    base = os.environ.get("EOS_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).absolute() / "spark-pulsar-eos"


@contextmanager
def locked(name: str, tell: Tell = quiet) -> Iterator[None]:
    """Hold the lock `name` of the cache folder; the system lets go of it when the process dies.

    The lock files stay: removing one would let two processes hold "the" lock.
    """
    folder = cache()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(f"Waiting for another process that holds the lock {file.name}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def remove_files(home: Path, names: Iterable[str], with_folder: bool) -> None:
    """Remove these files and folders from a folder, and the folder itself when nothing else is in it."""
    for name in names:
        path = home / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    if with_folder and home.exists() and not any(home.iterdir()):
        home.rmdir()

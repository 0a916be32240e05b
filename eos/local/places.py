"""Where things are kept: the cache folder, the locks in it, and the folders of instances."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from eos.local.checks import LocalError

Tell = Callable[[str], None]
"""Takes one line about what is going on; for people."""


def quiet(line: str) -> None:
    """Drop the line: the default."""


def cache() -> Path:
    """The cache folder: $EOS_CACHE, or $XDG_CACHE_HOME, or ~/.cache; in it `spark-pulsar-eos`.

    Raises LocalError where none is named and the user has no home.
    """
    base = os.environ.get("EOS_CACHE") or os.environ.get("XDG_CACHE_HOME")
    try:
        return Path(base or Path.home() / ".cache").absolute() / "spark-pulsar-eos"
    except RuntimeError as error:
        raise LocalError("This user has no home, and so no cache folder. Name one by EOS_CACHE") from error


@contextmanager
def locked(name: str, tell: Tell = quiet) -> Iterator[None]:
    """Hold the lock `name` of the cache folder. The system frees it when the process dies.

    The lock files stay: removing one would let two processes hold "the" lock.

    Raises LocalError where the cache folder can't be written.
    """
    folder = cache()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / f"{name}.lock").open("w")
    except OSError as failure:
        raise LocalError(
            f"can't write to the cache folder {folder}: {failure.strerror}. Name another by EOS_CACHE"
        ) from failure
    with lock as file:
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
            with suppress(NotADirectoryError):
                path.unlink(missing_ok=True)
    if with_folder and home.is_dir() and not any(home.iterdir()):
        home.rmdir()

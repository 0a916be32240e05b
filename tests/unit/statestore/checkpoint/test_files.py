"""A checkpoint in a folder of this machine: what the operating system says of it is not called damage."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from statestore.checkpoint import LocalFiles
from statestore.errors import InvalidInput, NotFound, Unavailable


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (errno.ENOENT, NotFound),
        (errno.ENOTDIR, NotFound),
        (errno.EISDIR, NotFound),
        (errno.EACCES, InvalidInput),
        (errno.EPERM, InvalidInput),
        (errno.EMFILE, Unavailable),
        (errno.EIO, Unavailable),
    ],
)
def test_no_refusal_is_damage(
    code: int, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> bytes:
        raise OSError(code, os.strerror(code), str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    monkeypatch.setattr(Path, "iterdir", refuse)
    for call in (LocalFiles(tmp_path).read, LocalFiles(tmp_path).list):
        with pytest.raises(error) as raised:
            call("")
        assert type(raised.value) is error

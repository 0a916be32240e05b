"""Keys in base64, and back."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos.pulsar.wire.keys import undo_base64, wire_keys


@given(st.lists(st.none() | st.binary(max_size=20)), st.sampled_from([pa.binary(), pa.large_binary()]))
def test_what_was_made_base64_comes_back(keys: list[bytes | None], kind: pa.DataType) -> None:
    wire = wire_keys(pa.array(keys, kind))
    if wire.encoded is None:
        return
    encoded = wire.text.filter(wire.encoded)
    plain = undo_base64(encoded)
    assert plain is not None
    assert plain.type == encoded.type
    assert plain.to_pylist() == pa.array(keys, kind).filter(wire.encoded).to_pylist()


@pytest.mark.parametrize("wrong", [b"YQ", b"YQ=", b"=YQ=", b"YQ==YQ==", b"Y===", b"YQ=a", b"Y*==", b"YWI_"])
def test_what_is_no_base64_is_refused(wrong: bytes) -> None:
    assert undo_base64(pa.array([b"YQ==", wrong, b"YWI="])) is None


def test_empty_rows_between_others() -> None:
    plain = undo_base64(pa.array([b"", b"YQ==", b"", None, b"YWJj", b""]))
    assert plain is not None
    assert plain.to_pylist() == [b"", b"a", b"", b"", b"abc", b""]

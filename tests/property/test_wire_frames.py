"""However a stream of frames is cut, the same frames come out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eos.errors import DamagedFrame
from eos.pulsar.wire.frames import FrameDecoder
from tests.vectors.frames import frames

FRAMES = list(frames().values())


@given(st.lists(st.sampled_from(FRAMES), max_size=6), st.data())
def test_cuts_change_nothing(chosen: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(chosen)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    decoder = FrameDecoder()
    received = []
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        received += decoder.feed(stream[start:stop])
    assert received == [FrameDecoder().feed(frame)[0] for frame in chosen]


@given(st.binary(max_size=200))
def test_noise_is_read_or_refused_and_nothing_else(noise: bytes) -> None:
    framed = len(noise).to_bytes(4, "big") + noise
    try:
        received = FrameDecoder().feed(framed)
    except DamagedFrame:
        return
    assert len(received) == 1

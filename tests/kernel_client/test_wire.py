"""Frames: whole, byte by byte, too long, and no frames at all."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from kernel_client import wire
from kernel_client.errors import FrameTooLong, ProtocolError

TEXT = st.text(st.characters(), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)
    ),
    max_leaves=8,
)
FRAMES = st.lists(
    st.builds(
        lambda kind, rest: {**rest, "type": kind},
        TEXT,
        st.dictionaries(TEXT, JSON, max_size=4),
    ),
    max_size=5,
)


@given(FRAMES)
@settings(deadline=None, max_examples=50)
def test_byte_by_byte_is_the_same_as_whole(frames: list[dict[str, Any]]) -> None:
    """However the bytes are cut, the same frames come out in the same order."""
    data = b"".join(map(wire.encode, frames))
    whole = wire.Decoder().feed(data)
    decoder = wire.Decoder()
    single: list[dict[str, Any]] = []
    for number in data:
        single += decoder.feed(bytes([number]))
    assert whole == single == frames
    assert not decoder.partial


@given(FRAMES, st.data())
@settings(deadline=None, max_examples=50)
def test_any_pieces(frames: list[dict[str, Any]], draw: st.DataObject) -> None:
    """Pieces of any length, cut anywhere, also in the middle of an escape."""
    data = b"".join(map(wire.encode, frames))
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(data)), max_size=6)))
    decoder = wire.Decoder()
    found: list[dict[str, Any]] = []
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        found += decoder.feed(data[start:end])
    assert found == frames


@given(st.binary(max_size=200))
def test_garbage_only_ever_breaks_the_protocol(data: bytes) -> None:
    """Whatever the bytes are, only a ProtocolError comes of them."""
    decoder = wire.Decoder(limit=64)
    with contextlib.suppress(ProtocolError):
        decoder.feed(data)
    assert all(isinstance(frame["type"], str) for frame in decoder.drain())


def test_frame_is_one_line_of_ascii() -> None:
    """No raw newline inside, and bytes that are no UTF-8 travel as lone surrogates."""
    data = wire.encode({"type": "x", "path": "a\nb\udcff\u20ac"})
    assert data.isascii()
    assert data.count(b"\n") == 1
    assert data.endswith(b"\n")
    assert rb"\udcff" in data
    assert wire.Decoder().feed(data) == [{"type": "x", "path": "a\nb\udcff\u20ac"}]


def test_limit_is_that_of_the_page() -> None:
    """A frame of 16 MiB, its newline included, passes; one byte more does not."""
    assert wire.MAX_FRAME_BYTES == 16_777_216
    empty = len(wire.encode({"type": "x", "fill": ""}))
    fits = wire.encode({"type": "x", "fill": "a" * (wire.MAX_FRAME_BYTES - empty)})
    assert len(fits) == wire.MAX_FRAME_BYTES
    assert len(wire.Decoder().feed(fits)) == 1
    over = wire.encode({"type": "x", "fill": "a" * (wire.MAX_FRAME_BYTES - empty + 1)})
    with pytest.raises(FrameTooLong):
        wire.Decoder().feed(over)


def test_too_long_is_seen_before_its_end() -> None:
    """Nothing above the limit is kept while a newline is waited for."""
    decoder = wire.Decoder(limit=10)
    decoder.feed(b"123456789")
    with pytest.raises(FrameTooLong) as caught:
        decoder.feed(b"0")
    assert caught.value.code == "too_long"
    assert caught.value.limit == 10


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"hello", "not_json"),
        (b"", "not_json"),
        (b"\xff", "not_json"),
        (b"[" * 100_000, "not_json"),
        (b"[]", "shape"),
        (b"null", "shape"),
        (b'{"id":1}', "shape"),
        (b'{"type":1}', "shape"),
    ],
    ids=["word", "empty", "bytes", "deep", "list", "null", "no type", "number"],
)
def test_no_frame(line: bytes, code: str) -> None:
    """What is not an object with a type is told apart from what is not JSON."""
    with pytest.raises(ProtocolError) as caught:
        wire.Decoder().feed(line + b"\n")
    assert caught.value.code == code


def test_frames_before_a_bad_one_are_kept() -> None:
    """They were whole; `drain` gives them once."""
    decoder = wire.Decoder()
    good = wire.encode({"type": "a"})
    with pytest.raises(ProtocolError):
        decoder.feed(good + good + b"bad\n" + good)
    assert decoder.drain() == [{"type": "a"}, {"type": "a"}]
    assert decoder.drain() == []


def test_unfinished_frame_is_known() -> None:
    """`partial` tells that the end of a frame is missing."""
    decoder = wire.Decoder()
    data = wire.encode({"type": "a"})
    assert decoder.feed(data[:-1]) == []
    assert decoder.partial
    assert decoder.feed(data[-1:]) == [{"type": "a"}]
    assert not decoder.partial


def test_other_peoples_json_is_read() -> None:
    """UTF-8 and spaces, as another language may write them."""
    line = json.dumps({"type": "x", "v": "é"}, ensure_ascii=False, indent=None)
    assert wire.Decoder().feed(line.encode() + b"\r\n") == [{"type": "x", "v": "é"}]

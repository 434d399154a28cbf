"""Framing of the pipe: one JSON object a line, both ways (PROTOCOL.md).

Pure: bytes in, frames out. Reading keeps no more than one unfinished frame and
never searches the same bytes twice.
"""

from __future__ import annotations

from kernel_client import lean
from kernel_client.errors import FrameTooLong, ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Frame = dict[str, Any]

MAX_FRAME_BYTES = 16 * 1024 * 1024
"""The longest frame, its newline included."""


def encode(frame: Frame) -> bytes:
    """Give the bytes of one frame: ASCII-only JSON and a newline.

    Lone surrogates (bytes of a path that are not UTF-8, as Python's
    `surrogateescape` reads them) travel as `\\udcXX` escapes.
    """
    return lean.dumps(frame).encode("ascii") + b"\n"


class Decoder:
    """Turns received bytes into frames, in whatever pieces they come.

    `feed` raises `FrameTooLong` or `ProtocolError`; the connection is then of
    no use any more. Frames that were whole before the bad one are kept and are
    given by `drain`.
    """

    __slots__ = ("_buffer", "_frames", "_limit", "_searched")

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._searched = 0
        self._frames: list[Frame] = []

    def feed(self, data: bytes) -> list[Frame]:
        """Take received bytes and give every frame that they complete."""
        buffer = self._buffer
        buffer += data
        while True:
            end = buffer.find(b"\n", self._searched)
            if end < 0:
                self._searched = len(buffer)
                if len(buffer) >= self._limit:
                    raise FrameTooLong(self._limit)
                return self.drain()
            if end >= self._limit:
                raise FrameTooLong(self._limit)
            line = bytes(buffer[:end])
            del buffer[: end + 1]
            self._searched = 0
            self._frames.append(_parse(line))

    def drain(self) -> list[Frame]:
        """Give the frames that were complete and not yet given."""
        frames = self._frames
        self._frames = []
        return frames

    @property
    def partial(self) -> bool:
        """Whether an unfinished frame waits for its end."""
        return bool(self._buffer)


def _parse(line: bytes) -> Frame:
    try:
        frame = lean.loads(line)
    except (ValueError, RecursionError):
        raise ProtocolError("not_json", "a frame is not JSON") from None
    if not isinstance(frame, dict) or not isinstance(frame.get("type"), str):
        raise ProtocolError("shape", "a frame is not an object with a type")
    return frame

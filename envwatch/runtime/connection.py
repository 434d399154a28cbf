"""One peer: bytes in, frames to the core; frames from the core, bytes out.

Callbacks of the loop in place of a task and streams for each peer: a thousand
kernels that say nothing cost 5 MB less, a question costs no registration with the
selector, and an answer leaves with the system call that the core's effect makes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from envwatch.core.events import Closed, Event, Garbled, Received
from envwatch.runtime.channel import Channel
from kernel_client.errors import ProtocolError
from kernel_client.wire import Decoder

MAX_UNSENT_BYTES = 32 * 1024 * 1024
"""A peer that leaves more than this unread is cut off."""

STALLED_S = 30.0
"""So is one that reads nothing for so long while something waits for it."""

MAX_UNREAD_BYTES = 128 * 1024 * 1024

_CHUNK_BYTES = 64 * 1024
_SEND_BYTES = 1024 * 1024


class Unread:
    """Bytes of unfinished frames of all peers together, bounded."""

    __slots__ = ("cut_biggest", "total")

    def __init__(self, cut_biggest: Callable[[], None]) -> None:
        self.total = 0
        self.cut_biggest = cut_biggest

    def add(self, count: int) -> None:
        """Count bytes, or take them back; above the bound the biggest is cut off."""
        self.total += count
        if self.total > MAX_UNREAD_BYTES:
            self.cut_biggest()


class Connection:
    """One connection.

    `unread` is how many bytes of an unfinished frame it holds, `stalled_since`
    when the peer last took something of what waits for it (monotonic seconds;
    None: nothing waits).
    """

    __slots__ = (
        "_all_unread",
        "_channel",
        "_decoder",
        "_handle",
        "_is_closed",
        "_is_closing",
        "_loop",
        "_unsent",
        "number",
        "stalled_since",
        "unread",
    )

    def __init__(
        self,
        number: int,
        channel: Channel,
        handle: Callable[[Event], None],
        all_unread: Unread,
    ) -> None:
        self.number = number
        self.unread = 0
        self.stalled_since: float | None = None
        self._channel = channel
        self._handle = handle
        self._all_unread = all_unread
        self._decoder = Decoder()
        self._loop = asyncio.get_running_loop()
        self._unsent = bytearray()
        self._is_closing = False
        self._is_closed = False

    def open(self) -> None:
        """Begin to read."""
        if not self._is_closed:
            self._loop.add_reader(self._channel.reading, self._readable)

    def send(self, data: bytes) -> None:
        """Send now what goes, and the rest when there is room."""
        if self._is_closing:
            return
        if self._unsent:
            if len(self._unsent) + len(data) > MAX_UNSENT_BYTES:
                self.cut()
            else:
                self._unsent += data
            return
        try:
            sent = self._channel.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self.cut()
            return
        if sent < len(data):
            self._wait(memoryview(data)[sent:])

    def send_descriptor(self, data: bytes, descriptor: int) -> None:
        """Send a frame with a descriptor, if nothing waits to be sent before it.

        A peer that reads nothing gets none: it can do without.
        """
        if self._is_closing or self._unsent:
            return
        try:
            sent = self._channel.send_descriptor(data, descriptor)
        except OSError:
            # No room, or too many descriptors on their way already.
            return
        if sent < len(data):
            self._wait(memoryview(data)[sent:])

    def close(self) -> None:
        """End it after what was sent; what the peer still says is not read."""
        self._is_closing = True
        if not self._unsent:
            self.cut()
        elif not self._is_closed:
            self._loop.remove_reader(self._channel.reading)

    def cut(self) -> None:
        """End it at once."""
        if self._is_closed:
            return
        self._is_closing = self._is_closed = True
        self.stalled_since = None
        self._loop.remove_reader(self._channel.reading)
        self._loop.remove_writer(self._channel.writing)
        self._channel.close()
        self._hold(0)
        self._handle(Closed(self.number))

    def _readable(self) -> None:
        try:
            data = self._channel.receive(_CHUNK_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.cut()
            return
        if data:
            self._take(data)
        else:
            self.close()

    def _writable(self) -> None:
        try:
            with memoryview(self._unsent) as unsent:
                sent = self._channel.send(unsent[:_SEND_BYTES])
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.cut()
            return
        del self._unsent[:sent]
        self.stalled_since = time.monotonic()
        if self._unsent:
            return
        self.stalled_since = None
        self._loop.remove_writer(self._channel.writing)
        if self._is_closing:
            self.cut()

    def _wait(self, data: memoryview) -> None:
        self._unsent += data
        self.stalled_since = time.monotonic()
        self._loop.add_writer(self._channel.writing, self._writable)

    def _hold(self, unread: int) -> None:
        more = unread - self.unread
        self.unread = unread
        self._all_unread.add(more)

    def _take(self, data: bytes) -> None:
        problem: ProtocolError | None = None
        try:
            frames = self._decoder.feed(data)
        except ProtocolError as error:
            problem = error
            frames = self._decoder.drain()
        end = data.rfind(b"\n")
        self._hold(self.unread + len(data) if end < 0 else len(data) - end - 1)
        for frame in frames:
            self._handle(Received(self.number, frame))
        if problem is not None:
            self._hold(0)
            self._decoder = Decoder()
            self._handle(Garbled(self.number, problem.code, str(problem)))

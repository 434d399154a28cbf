"""One peer: bytes in, frames to the core; frames from the core, bytes out.

Raw sockets in place of streams: a thousand kernels that say nothing cost little
memory, and an answer leaves with the system call that the core's effect makes.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio
import anyio.lowlevel

from envwatch.core.events import Closed, Event, Garbled, Received
from envwatch.runtime.channel import Channel
from kernel_client.errors import ProtocolError
from kernel_client.wire import Decoder

MAX_UNSENT_BYTES = 32 * 1024 * 1024
"""A peer that leaves more than this unread is cut off."""

STALLED_S = 30.0
"""So is one that reads nothing for so long while something waits for it."""

_CHUNK_BYTES = 64 * 1024


class Connection:
    """One connection; `unread` is how many bytes of an unfinished frame it holds."""

    __slots__ = (
        "_channel",
        "_decoder",
        "_flush",
        "_flushing",
        "_handle",
        "_unsent",
        "closing",
        "number",
        "scope",
        "stalled_since",
        "unread",
    )

    def __init__(
        self,
        number: int,
        channel: Channel,
        handle: Callable[[Event], None],
        flush: Callable[[Connection], None],
    ) -> None:
        self.number = number
        self.unread = 0
        self.stalled_since: float | None = None
        self.closing = False
        self.scope: anyio.CancelScope | None = None
        self._channel = channel
        self._decoder = Decoder()
        self._handle = handle
        self._flush = flush
        self._flushing = False
        self._unsent: bytearray | None = None

    async def serve(self) -> None:
        """Read until the peer has gone or is cut off; then close."""
        try:
            with anyio.CancelScope() as self.scope:
                if not self.closing:
                    await self._read()
        finally:
            self.closing = True
            self._unsent = None
            if self._flushing:
                anyio.notify_closing(self._channel.writing)
            self._channel.close()
            self._handle(Closed(self.number))

    def send(self, data: bytes, now: float) -> None:
        """Send now what goes, and keep the rest for `flush`."""
        if self.closing:
            return
        if self._unsent is not None:
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
            self._unsent = bytearray(memoryview(data)[sent:])
            self.stalled_since = now
            if not self._flushing:
                self._flushing = True
                self._flush(self)

    async def flush(self, clock: Callable[[], float]) -> None:
        """Send what is left over; runs only while there is something."""
        try:
            while self._unsent and self.scope is not None:
                try:
                    await anyio.wait_writable(self._channel.writing)
                    sent = self._channel.send(memoryview(self._unsent)[:1048576])
                except (BlockingIOError, InterruptedError):
                    continue
                except (OSError, TypeError, anyio.ClosedResourceError):
                    self.cut()
                    return
                del self._unsent[:sent]
                self.stalled_since = clock()
        finally:
            self._flushing = False
            self._unsent = None
            self.stalled_since = None
        if self.closing:
            self.cut()

    def close(self) -> None:
        """End it after what was sent."""
        self.closing = True
        if not self._flushing:
            self.cut()

    def cut(self) -> None:
        """End it at once."""
        self.closing = True
        if self.scope is not None:
            self.scope.cancel()

    async def _read(self) -> None:
        channel = self._channel
        while True:
            try:
                data = channel.receive(_CHUNK_BYTES)
            except (BlockingIOError, InterruptedError):
                await anyio.wait_readable(channel.reading)
                continue
            except OSError:
                return
            if not data:
                return
            if self.closing:
                # Refused: what it still says is thrown away, so that it can read
                # why before the connection is reset.
                continue
            self._take(data)
            if len(data) == _CHUNK_BYTES:
                # More may be there: others get their turn first.
                await anyio.lowlevel.checkpoint()

    def _take(self, data: bytes) -> None:
        problem: ProtocolError | None = None
        try:
            frames = self._decoder.feed(data)
        except ProtocolError as error:
            problem = error
            frames = self._decoder.drain()
        end = data.rfind(b"\n")
        self.unread = self.unread + len(data) if end < 0 else len(data) - end - 1
        for frame in frames:
            self._handle(Received(self.number, frame))
        if problem is not None:
            self.unread = 0
            self._decoder = Decoder()
            self._handle(Garbled(self.number, problem.code, str(problem)))

"""The peer of the bare round trip: an anyio server that does nothing else.

    python -m bench.actors.echo SOCKET REPLY_BYTES

answers each line with that many bytes.
"""

from __future__ import annotations

import sys

import anyio
from anyio.abc import SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

MAX_LINE_BYTES = 16 * 1024 * 1024


async def serve(path: str, reply: bytes) -> None:
    """Answer every line of every connection."""

    async def answer(stream: SocketStream) -> None:
        received = BufferedByteReceiveStream(stream)
        async with stream:
            while True:
                try:
                    await received.receive_until(b"\n", MAX_LINE_BYTES)
                except (anyio.IncompleteRead, anyio.EndOfStream):
                    return
                await stream.send(reply)

    listener = await anyio.create_unix_listener(path, backlog=2048)
    await listener.serve(answer)


if __name__ == "__main__":
    anyio.run(serve, sys.argv[1], b"x" * (int(sys.argv[2]) - 1) + b"\n")

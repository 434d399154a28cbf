"""An edit that the sidecar has evaluated before the next run asks."""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
from collections.abc import Iterator

from bench.measures import Row, micro, seconds
from bench.worlds import World, until

_ECHO = """
import asyncio, os, sys

async def serve(reader, writer):
    size = int(sys.argv[2])
    answer = b"x" * (size - 1) + b"\\n"
    while await reader.readline():
        writer.write(answer)

async def main():
    server = await asyncio.start_unix_server(serve, sys.argv[1])
    print("ready", flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


class Echo:
    """A bare round trip: a socket server that answers a line with some bytes."""

    def __init__(self, world: World, name: str, size: int) -> None:
        path = str(world.top / "s" / name)
        process = world.start(
            [sys.executable, "-c", _ECHO, path, str(size)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()
        self.path = path
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.connect(path)
        self.size = size

    def trip(self) -> None:
        """Send what an `export` is long, and receive the whole answer."""
        self.connection.sendall(b"x" * 199 + b"\n")
        left = self.size
        while left:
            left -= len(self.connection.recv(65536))


def precomputed(world: World, *, quick: bool) -> Iterator[Row]:
    """Row 5: an allowed edit, precomputed, against direnv's own reload."""
    world.serve()
    folder = world.workspace("e", "watch_file value\nexport FOO=$(cat value)\n")
    value = folder / "value"
    value.write_text("0")
    world.run("allow", str(folder / ".envrc"))
    saved = dict(os.environ)
    os.environ.clear()
    os.environ.update(world.environ)
    client = world.client({}, shared=True)
    from kernel_client import Client

    client = Client(output=lambda _: None, settings=client.settings)
    os.chdir(folder)
    client.refresh()
    answer_bytes = sum(map(len, os.environ.values()))
    echo = Echo(world, "echo", max(1000, answer_bytes))
    base = dict(world.environ)
    trips, ours, theirs = [], [], []
    for turn in range(10 if quick else 40):
        before = world.evaluated(folder / ".envrc")[0]
        value.write_text(str(turn + 1))
        until(
            lambda before=before: (  # type: ignore[misc]
                world.evaluated(folder / ".envrc")[0] > before
                and world.evaluated(folder / ".envrc")[2] == "idle"
            )
        )
        trips.append(statistics.median(seconds(echo.trip) for _ in range(20)))
        ours.append(seconds(client.refresh))
        if os.environ["FOO"] != str(turn + 1):
            raise SystemExit("bench: the edit did not arrive")
        theirs.append(seconds(world.hook(base, folder)))
    client.close()
    os.chdir("/")
    os.environ.clear()
    os.environ.update(saved)
    middle = statistics.median(ours)
    trip = statistics.median(trips)
    reload = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
    bare = statistics.median(a / b for a, b in zip(ours, trips, strict=True))
    yield Row("edited, precomputed: p50", "< 1 ms", micro(middle), middle < 1e-3)
    yield Row(
        "  beside direnv's own reload",
        ">= 30 x cheaper",
        f"{reload:.1f} x: {micro(middle)} / {micro(statistics.median(theirs))}",
        reload >= 30,
    )
    yield Row(
        "  beside a bare round trip",
        "<= 4 x",
        f"{bare:.2f} x: {micro(middle)} / {micro(trip)}",
        bare <= 4,
    )

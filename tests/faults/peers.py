"""A sidecar that does what a test tells it to: well behaved, odd, or rude."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kernel_client import wire
from tests.support.processes import gone

Script = Callable[["Said"], None]


class Said:
    """One connection, as the script of a test sees it."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._decoder = wire.Decoder()
        self._frames: list[dict[str, Any]] = []

    def hear(self) -> dict[str, Any]:
        """Give the next frame; raises EOFError when the kernel has gone."""
        while not self._frames:
            data = self.socket.recv(1 << 16)
            if not data:
                raise EOFError
            self._frames += self._decoder.feed(data)
        return self._frames.pop(0)

    def say(self, kind: str, **fields: Any) -> None:
        """Send a frame."""
        self.raw(wire.encode({"type": kind, **fields}))

    def raw(self, data: bytes) -> None:
        """Send bytes."""
        self.socket.sendall(data)

    def welcome(self, direnv: str | None, *, protocol: int = 1) -> None:
        """Hear the hello and answer it."""
        assert self.hear()["type"] == "hello"
        program = None if direnv is None else {"path": direnv, "version": "1"}
        self.say(
            "welcome",
            protocol=protocol,
            version="0",
            pid=1,
            direnv=program,
            capabilities=[],
        )

    def diff(self, number: int, outcome: str = "loaded", **fields: Any) -> None:
        """Send an answer."""
        usual = {
            "set": {},
            "unset": [],
            "messages": [],
            "snapshot": [],
            "seconds": 0.0,
            "evaluated_s_ago": 0,
            "shared": False,
        }
        self.say("diff", id=number, outcome=outcome, **{**usual, **fields})

    def gone(self) -> None:
        """Read until the kernel has closed its end."""
        with contextlib.suppress(OSError):
            while self.socket.recv(1 << 16):
                pass


class FakeSidecar:
    """Listens at a path of its own, and plays the script to each connection."""

    def __init__(self, script: Script) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ewp-", dir="/tmp"))
        self.path = self.folder / "sock"
        self.connections = 0
        self.failures: list[BaseException] = []
        self._script = script
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self.path))
        self._listening.listen(64)
        self._start(self._accept)

    def close(self) -> None:
        """End all connections and threads; what failed in a script fails here."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        for connection in tuple(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()
        self._listening.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        assert not self.failures, self.failures

    def _start(self, work: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            self._start(self._play, connection)

    def _play(self, connection: socket.socket) -> None:
        with connection:
            try:
                self._script(Said(connection))
            except (EOFError, OSError):
                return
            except BaseException as error:  # noqa: BLE001 - close() raises it
                self.failures.append(error)


@contextlib.contextmanager
def listening(script: Script) -> Iterator[FakeSidecar]:
    """Listen for the length of a test."""
    made = FakeSidecar(script)
    try:
        yield made
    finally:
        made.close()


def marked(marker: str) -> list[int]:
    """Give the processes that have a marker in their environment."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if marker.encode() in Path(f"/proc/{name}/environ").read_bytes():
                found.append(int(name))
    return [pid for pid in found if not gone(pid)]

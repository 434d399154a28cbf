"""Sidecars as processes, and peers that speak to them over real sockets."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kernel_client import environment as env, messages, wire
from tests.support.daemons import Daemon
from tests.support.worlds import World

DEADLINE_S = 30.0
CHECKOUT = Path(__file__).parents[2]


class Peer:
    """A kernel that speaks by hand."""

    def __init__(self, path: Path | None = None, *, greets: bool = True) -> None:
        self.decoder = wire.Decoder()
        self.kept: list[dict[str, Any]] = []
        if path is None:
            return
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(DEADLINE_S)
        self.socket.connect(str(path))
        if greets:
            self.send(messages.hello(pid=os.getpid(), client="test", cwd=None))
            assert self.hear("welcome")["pid"]

    @classmethod
    def over(cls, connection: socket.socket) -> Peer:
        """Speak over a connected socket."""
        peer = cls()
        connection.settimeout(DEADLINE_S)
        peer.socket = connection
        return peer

    def send(self, frame: dict[str, Any]) -> None:
        """Send a frame."""
        self.socket.sendall(wire.encode(frame))

    def next(self) -> dict[str, Any] | None:
        """Give the next frame; None when the other end has gone."""
        while not self.kept:
            try:
                data = self.socket.recv(1 << 20)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self.kept += self.decoder.feed(data)
        return self.kept.pop(0)

    def hear(self, *kinds: str) -> dict[str, Any]:
        """Give the next frame of these types; others are dropped."""
        while (frame := self.next()) is not None:
            if frame["type"] in kinds:
                return frame
        raise AssertionError(f"the sidecar closed before any of {kinds}")

    def status(self) -> dict[str, Any]:
        """Ask for the status."""
        self.send(messages.status(1_000_000))
        answer: dict[str, Any] = self.hear("done")["status"]
        return answer

    def export(
        self, world: World, number: int = 1, *, folder: str = "w", **more: str
    ) -> None:
        """Ask for the diff of a folder of a world."""
        environment = env.passed({**world.environ, **more})
        self.send(
            messages.export(
                number,
                root=str(world.path(folder) / ".envrc"),
                fingerprint=env.fingerprint(environment),
                direnv=world.direnv,
                environment=environment,
            )
        )

    def diff(self, world: World, number: int = 1, **more: str) -> dict[str, Any]:
        """Ask for a diff, and wait for it."""
        self.export(world, number, **more)
        frame = self.hear("diff", "error")
        assert frame["type"] == "diff", frame
        return frame

    def close(self) -> None:
        """Go away."""
        self.socket.close()


@pytest.fixture
def version() -> str:
    """Use one direnv: what is tested here does not depend on its version."""
    return "2.37"


@pytest.fixture
def started(direnvs: dict[str, str]) -> Iterator[Callable[..., Daemon]]:
    """Give what starts sidecars with settings of their own."""
    running: list[Daemon] = []

    def start(direnv: str = "", **settings: str) -> Daemon:
        daemon = Daemon(
            direnv or direnvs["2.37"],
            environ={f"ENVWATCH_{name}": value for name, value in settings.items()},
        )
        running.append(daemon)
        daemon.start()
        return daemon

    yield start
    for daemon in running:
        if daemon.process is not None and daemon.process.poll() is not None:
            daemon.process = None
        daemon.close()


@pytest.fixture
def peers() -> Iterator[Callable[..., Peer]]:
    """Give what connects peers."""
    made: list[Peer] = []

    def connect(daemon: Daemon, *, greets: bool = True) -> Peer:
        peer = Peer(daemon.socket, greets=greets)
        made.append(peer)
        return peer

    yield connect
    for peer in made:
        peer.close()


def served(
    *arguments: str, environ: Mapping[str, str], **options: Any
) -> subprocess.Popen[bytes]:
    """Start a sidecar without waiting for anything."""
    return subprocess.Popen(
        [sys.executable, "-m", "envwatch", "serve", *arguments],
        env={**os.environ, **environ},
        cwd=CHECKOUT,
        stderr=subprocess.PIPE,
        **options,
    )

"""The sidecar's life from start to end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable

import pytest

from kernel_client import messages
from tests.runtime.conftest import Peer, served
from tests.support.daemons import Daemon, until
from tests.support.worlds import World

Start = Callable[..., Daemon]
Connect = Callable[..., Peer]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_cleanly(started: Start, number: signal.Signals) -> None:
    """Exit code 0, and no socket left behind."""
    daemon = started()
    peer = Peer(daemon.socket)
    assert daemon.process is not None
    daemon.process.send_signal(number)
    assert daemon.process.wait(20) == 0
    assert not daemon.socket.exists()
    assert peer.next() is None
    assert "Traceback" not in daemon.said
    peer.close()


def test_it_ends_when_nobody_comes(started: Start) -> None:
    """A connection holds it, the end of the last one does not."""
    daemon = started(IDLE_S="1.5")
    assert daemon.process is not None
    peer = Peer(daemon.socket)
    begun = time.monotonic()
    until("two seconds", lambda: time.monotonic() - begun > 2.5)
    assert peer.status()["kernels"] == 1
    peer.close()
    assert daemon.process.wait(20) == 0
    assert '"idle"' in daemon.said
    assert not daemon.socket.exists()


def test_stdio_speaks_to_one_peer(world: World) -> None:
    """On stdin and stdout, frames and nothing else; the end of input ends it."""
    world.envrc("w", "export A=1\n")
    ours, theirs = socket.socketpair()
    with subprocess.Popen(["true"]), ours:
        process = served(
            "--stdio",
            environ={"ENVWATCH_DIRENV": world.direnv},
            stdin=theirs,
            stdout=theirs,
        )
        theirs.close()
        peer = Peer.over(ours)
        peer.send(messages.hello(pid=1, client="t", cwd=None))
        welcome = peer.hear("welcome")
        assert welcome["pid"] == process.pid
        # Though it is a socket here: no descriptor is sent through stdout.
        assert welcome["capabilities"] == []
        assert peer.diff(world)["set"]["A"] == "1"
        ours.shutdown(socket.SHUT_WR)
        _, said = process.communicate(timeout=20)
        assert process.returncode == 0, said


def test_stdio_over_pipes(world: World) -> None:
    """Two pipes are as good as a socket."""
    process = served(
        "--stdio",
        environ={"ENVWATCH_DIRENV": world.direnv},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    out, said = process.communicate(
        b'{"type":"hello","protocol":1,"pid":1,"client":"t","capabilities":[],'
        b'"cwd":null}\n{"type":"status","id":1}\n',
        timeout=20,
    )
    assert [line[:18] for line in out.splitlines()] == [
        b'{"type":"welcome",',
        b'{"type":"done","id',
    ]
    assert process.returncode == 0, said


def test_stdio_needs_something_that_can_be_awaited(world: World) -> None:
    """A file as stdin is refused in one line."""
    path = world.write("frames", "")
    with path.open("rb") as file:
        process = served(
            "--stdio",
            environ={"ENVWATCH_DIRENV": world.direnv},
            stdin=file,
            stdout=subprocess.PIPE,
        )
        out, said = process.communicate(timeout=20)
    assert process.returncode == 77, said
    assert b"--stdio needs a pipe" in said
    assert b"Traceback" not in said
    assert out == b""


def test_another_view_of_the_filesystem_is_refused(started: Start) -> None:
    """Device and inode of the kernel's folder must be the same here."""
    daemon = started()
    seen = os.stat("/tmp")
    for path, ino, kind in (
        ("/tmp", seen.st_ino, "welcome"),
        ("/tmp", seen.st_ino + 1, "error"),
        ("/nonexistent", seen.st_ino, "error"),
    ):
        peer = Peer(daemon.socket, greets=False)
        cwd = {"path": path, "dev": str(seen.st_dev), "ino": str(ino)}
        peer.send(messages.hello(pid=1, client="t", cwd=cwd))
        answer = peer.next()
        assert answer is not None
        assert answer["type"] == kind
        peer.close()


@pytest.mark.parametrize(("mode", "expected"), [("auto", ["fence"]), ("off", [])])
def test_it_tells_whether_it_gives_fences(
    started: Start, mode: str, expected: list[str]
) -> None:
    """As it was told to; status says so too."""
    peer = Peer(started(FENCE=mode).socket, greets=False)
    peer.send(messages.hello(pid=1, client="t", cwd=None))
    assert peer.hear("welcome")["capabilities"] == expected
    assert peer.status()["fences"]["mode"] == mode
    peer.close()


def test_it_starts_again_after_kill(started: Start, peers: Connect) -> None:
    """The lock went with the process, the stale socket is replaced."""
    daemon = started()
    daemon.kill()
    assert daemon.socket.exists()
    daemon.start()
    assert peers(daemon).status()["kernels"] == 1


def test_the_log_can_be_a_file(started: Start, world: World) -> None:
    """Only its owner can read it; stderr stays empty."""
    path = world.path("log")
    daemon = started(LOG=str(path))
    until("it is written", lambda: path.exists() and "started" in path.read_text())
    assert path.stat().st_mode & 0o077 == 0
    assert daemon.said == ""

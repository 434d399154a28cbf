"""The kernel's end of the pipe: find, connect, talk, start."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from envwatch.core import frames
from kernel_client import messages, sidecar, wire
from kernel_client.errors import SidecarError
from kernel_client.settings import Settings
from kernel_client.sidecar import Link
from tests.faults.peers import Said, listening
from tests.support.daemons import until
from tests.support.planted import secret

UID = os.getuid()


@pytest.mark.parametrize(
    ("environ", "path"),
    [
        ({"ENVWATCH_SOCKET": "/a/b"}, "/a/b"),
        ({"ENVWATCH_SOCKET": "/a/b", "XDG_RUNTIME_DIR": "/run"}, "/a/b"),
        ({"XDG_RUNTIME_DIR": "/run/u"}, "/run/u/envwatch/envwatch.sock"),
        ({"XDG_RUNTIME_DIR": "run"}, f"/tmp/envwatch-{UID}/envwatch.sock"),
        ({"TMPDIR": "/t"}, f"/t/envwatch-{UID}/envwatch.sock"),
        ({"TMPDIR": "t"}, f"/tmp/envwatch-{UID}/envwatch.sock"),
        ({}, f"/tmp/envwatch-{UID}/envwatch.sock"),
    ],
    ids=str,
)
def test_socket_path(environ: dict[str, str], path: str) -> None:
    """The three places of PROTOCOL.md, in its order."""
    assert sidecar.socket_path(environ) == path


@pytest.mark.parametrize(
    ("mode", "safe"), [(0o700, 1), (0o755, 1), (0o720, 0), (0o702, 0), (0o777, 0)]
)
def test_folder(tmp_path: Path, mode: int, safe: int) -> None:
    """Nobody else may write there; the remedy is in the line."""
    tmp_path.chmod(mode)
    problem = sidecar.folder_problem(str(tmp_path))
    assert (problem is None) == bool(safe)
    assert problem is None or "chmod 700" in problem


def test_folder_that_is_none(tmp_path: Path) -> None:
    """A file, a link to a folder, nothing at all."""
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("file", "link"):
        assert "not a folder" in (sidecar.folder_problem(str(tmp_path / name)) or "")
    with pytest.raises(FileNotFoundError):
        sidecar.folder_problem(str(tmp_path / "missing"))


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, Said]]:
    """Give both ends of a pipe."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, Said(theirs)


def greeted(ends: tuple[socket.socket, Said], direnv: str | None = "/d") -> Link:
    """Give a link after its welcome."""
    ours, said = ends
    thread = threading.Thread(target=said.welcome, args=("/d",))
    thread.start()
    try:
        return Link(ours, direnv)
    finally:
        thread.join()


def test_greeting(ends: tuple[socket.socket, Said]) -> None:
    """Who is there, and which direnv it runs; ids are not used twice."""
    link = greeted(ends)
    assert (link.pid, link.version, link.direnv) == (1, "0", "/d")
    assert [link.number() for _ in range(3)] == [1, 2, 3]


def test_another_direnv(ends: tuple[socket.socket, Said]) -> None:
    """Is refused; None takes any."""
    with pytest.raises(SidecarError) as caught:
        greeted(ends, "/other")
    assert caught.value.code == "direnv"


def test_frames_in_pieces(ends: tuple[socket.socket, Said]) -> None:
    """Many small sends of big frames, both ways."""
    link = greeted(ends, None)
    _, said = ends
    frame = {"type": "left", "root": "/r" * 200_000}
    heard: list[dict[str, Any]] = []
    thread = threading.Thread(target=lambda: heard.append(said.hear()))
    thread.start()
    link.send(frame)
    thread.join()
    assert heard == [frame]
    data = wire.encode(messages.left("/a")) * 3
    for number in data:
        said.raw(bytes([number]))
    found: list[dict[str, Any]] = []
    while len(found) < 3:
        found += link.receive(1)
    assert found == [messages.left("/a")] * 3
    assert link.receive(0) == []


def test_last_frames_of_a_sidecar_that_has_gone(
    ends: tuple[socket.socket, Said],
) -> None:
    """They are given before the error."""
    link = greeted(ends, None)
    _, said = ends
    said.say("done", id=1)
    said.socket.close()
    assert [frame["type"] for frame in link.receive(1)] == ["done"]
    with pytest.raises(SidecarError) as caught:
        link.receive(1)
    assert caught.value.code == "closed"
    with pytest.raises(SidecarError) as caught:
        link.send(messages.left("/a"))
    assert caught.value.code == "closed"


def test_peer_that_reads_nothing(
    ends: tuple[socket.socket, Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A send does not wait for ever."""
    link = greeted(ends, None)
    monkeypatch.setattr(sidecar, "SILENCE_S", 0.1)
    with pytest.raises(SidecarError) as caught:
        link.send({"type": "left", "root": "r" * 10_000_000})
    assert caught.value.code == "silent"


def test_request(ends: tuple[socket.socket, Said]) -> None:
    """Its done; its error; nothing of others'; a deadline."""
    link = greeted(ends, None)
    _, said = ends
    said.say("done", id=5)
    said.say("done", id=1, kernels=3)
    assert link.request(messages.status(1))["kernels"] == 3
    said.say("error", id=2, code="stopping", message="it stops")
    with pytest.raises(SidecarError) as caught:
        link.request(messages.status(2))
    assert caught.value.code == "stopping"
    with pytest.raises(SidecarError) as caught:
        link.request(messages.status(3), timeout_s=0.05)
    assert caught.value.code == "silent"


def test_connect() -> None:
    """Over a socket in a safe folder; absent where there is none."""

    def play(said: Said) -> None:
        said.welcome("/d")
        said.gone()

    with listening(play) as peer:
        link = sidecar.connect(Settings(socket=str(peer.path)), {}, "/d")
        assert link.direnv == "/d"
        link.close()
        again = sidecar.connect(Settings(), {"ENVWATCH_SOCKET": str(peer.path)}, None)
        again.close()
    with pytest.raises(SidecarError) as caught:
        sidecar.connect(Settings(socket=str(peer.path)), {}, None)
    assert caught.value.code == "absent"


def test_descriptor(ends: tuple[socket.socket, Said]) -> None:
    """An inherited one is used, and stays the host's; a closed one is absent."""
    ours, said = ends
    thread = threading.Thread(target=said.welcome, args=("/d",))
    thread.start()
    link = sidecar.connect(Settings(fd=ours.fileno()), {}, "/d")
    thread.join()
    link.close()
    assert os.fstat(ours.fileno())
    with pytest.raises(SidecarError) as caught:
        sidecar.connect(Settings(fd=9999), {}, "/d")
    assert caught.value.code == "absent"


def test_command(tmp_path: Path) -> None:
    """Which program would be started, if any."""
    path = tmp_path / "envwatch"
    given = {"PATH": str(tmp_path)}
    assert sidecar.command(Settings(sidecar="off"), given) is None
    assert sidecar.command(Settings(sidecar="listening"), given) is None
    assert sidecar.command(Settings(fd=3), given) is None
    assert sidecar.command(Settings(sidecar=str(path)), given) is None
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    assert sidecar.command(Settings(sidecar=str(path)), given) == str(path)
    found = sidecar.command(Settings(), given)
    assert found is not None
    assert os.path.basename(found) == "envwatch"


def test_start_gives_nothing_of_the_workspace(tmp_path: Path) -> None:
    """Only what direnv and Python need; the sidecar is nobody's child."""
    path, out = tmp_path / "envwatch", tmp_path / "out"
    path.write_text(
        f'#!/bin/sh\n(echo "args $*"; pwd; env) > {out}.part\nmv {out}.part {out}\n'
    )
    path.chmod(0o755)
    environ = {
        "HOME": "/h",
        "PATH": "/usr/bin:/bin",
        "LC_ALL": "C",
        "SECRET": secret("x"),
        "ENVWATCH_FD": "3",
        "ENVWATCH_IDLE_S": "5",
        "DIRENV_DIFF": "x",
    }
    sidecar.start(str(path), Settings(socket="/s", direnv="/d"), environ)
    until("it has run", out.exists)
    said = set(out.read_text().splitlines())
    assert {"args serve", "/", "HOME=/h", "ENVWATCH_SOCKET=/s"} <= said
    assert {"ENVWATCH_DIRENV=/d", "ENVWATCH_IDLE_S=5", "LC_ALL=C"} <= said
    names = {line.partition("=")[0] for line in said}
    assert not names & {"SECRET", "ENVWATCH_FD", "DIRENV_DIFF"}


@pytest.mark.parametrize("missing", ["paths", "rest", "view", "descriptor"])
def test_a_fence_of_another_shape(missing: str) -> None:
    """It is the protocol that was broken, and no descriptor is left open."""
    before = len(os.listdir("/proc/self/fd"))
    ours, theirs = socket.socketpair()
    theirs.sendall(frames.welcome("0", 1, None, fences=True))
    taken: list[int] = []
    link = Link(ours, None, lambda _, number: taken.append(number))
    assert link.fences
    frame = {"type": "fence", "root": "/w", "paths": "", "rest": [], "view": ""}
    frame.pop(missing, None)
    passed = [] if missing == "descriptor" else [theirs.fileno()]
    socket.send_fds(theirs, [wire.encode(frame)], passed)
    with pytest.raises(SidecarError) as caught:
        link.receive(10.0)
    assert caught.value.code == "protocol"
    assert not taken
    link.close()
    theirs.close()
    assert len(os.listdir("/proc/self/fd")) == before

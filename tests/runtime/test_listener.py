"""Where the sidecar listens, and where it refuses to."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from envwatch import errors
from envwatch.runtime.listener import Listener
from tests.runtime.conftest import Peer, served
from tests.support.daemons import Daemon, until

Start = Callable[..., Daemon]


@pytest.fixture
def anyio_backend() -> str:
    """Use the backend that the sidecar uses."""
    return "asyncio"


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder that only its owner can write to."""
    return tmp_path_factory.mktemp("s")


def test_folder_and_socket_are_for_the_user_alone(folder: Path) -> None:
    """Both are made; the socket goes at the end, the lock stays."""
    path = folder / "a" / "sock"
    listener = Listener.at(str(path))
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    listener.close()
    listener.close()
    assert [each.name for each in path.parent.iterdir()] == ["sock.lock"]


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_can_write_to_is_refused(folder: Path, mode: int) -> None:
    """Somebody else could put a socket there."""
    folder.chmod(mode)
    with pytest.raises(errors.UnsafeSocket, match="can be written by others"):
        Listener.at(str(folder / "sock"))
    assert not list(folder.iterdir())


def test_a_stale_socket_is_replaced(folder: Path) -> None:
    """A sidecar that was killed leaves its socket behind."""
    path = folder / "sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    listener = Listener.at(str(path))
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(path))
    listener.close()


def test_a_file_that_is_no_socket_is_not_removed(folder: Path) -> None:
    """A setting that names somebody's file by mistake costs nothing."""
    path = folder / "notes.txt"
    path.write_text("mine")
    with pytest.raises(errors.Refused, match="is no socket"):
        Listener.at(str(path))
    assert path.read_text() == "mine"
    path.unlink()
    # The lock was given back.
    Listener.at(str(path)).close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
async def test_another_user_is_turned_away() -> None:
    """Even where the modes would let them in; who is next is welcome."""
    folder = Path(tempfile.mkdtemp(prefix="ews-", dir="/tmp"))
    path = folder / "sock"
    listener = Listener.at(str(path))
    os.chmod(folder, 0o711)
    os.chmod(path, 0o666)
    came: list[socket.socket] = []
    logged: list[dict[str, object]] = []
    program = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX);"
        " s.connect(sys.argv[1]); print(s.recv(1))"
    )
    try:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(
                    listener.accept,
                    came.append,
                    lambda event, **fields: logged.append({"event": event, **fields}),
                )
                done = await anyio.run_process(
                    ["/usr/bin/env", "python3", "-c", program, str(path)],
                    user=65534,
                    group=65534,
                    extra_groups=[],
                    cwd="/",
                )
                assert done.stdout == b"b''\n"
                with socket.socket(socket.AF_UNIX) as own:
                    own.connect(str(path))
                    while not came:
                        await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
        assert logged == [{"event": "turned_away", "uid": 65534}]
        assert len(came) == 1
    finally:
        for each in came:
            each.close()
        listener.close()
        shutil.rmtree(folder)


def test_a_second_sidecar_leaves_the_first_in_place(folder: Path) -> None:
    """It is refused before it touches the socket."""
    path = folder / "sock"
    first = Listener.at(str(path))
    with pytest.raises(errors.AlreadyListening):
        Listener.at(str(path))
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(path))
    first.close()


def test_a_socket_of_somebody_else_is_not_removed(folder: Path) -> None:
    """At the end the path may be another socket's already."""
    path = folder / "sock"
    listener = Listener.at(str(path))
    path.unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        listener.close()
        assert path.exists()


def test_a_path_that_is_too_long_is_one_clear_line(folder: Path) -> None:
    """The system's own words for it are none."""
    with pytest.raises(errors.Refused, match="too long for a socket"):
        Listener.at(str(folder / ("x" * 120)))


def test_two_started_at_once(folder: Path) -> None:
    """One listens, the other ends with the exit code for that."""
    environ = {"ENVWATCH_SOCKET": str(folder / "sock")}
    both = [served(environ=environ) for _ in range(2)]
    try:
        until("one ends", lambda: any(each.poll() is not None for each in both))
        codes = sorted(str(each.poll()) for each in both)
        assert codes == ["75", "None"]
        Peer(folder / "sock").close()
    finally:
        for each in both:
            each.terminate()
            each.communicate(timeout=20)


def test_socket_activation(folder: Path, direnvs: dict[str, str]) -> None:
    """systemd's socket is used, and stays; its variables reach nobody."""
    path = folder / "sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        script = (
            'exec 3<&"$0"; export LISTEN_PID=$$ LISTEN_FDS=1;'
            ' exec "$1" -m envwatch serve'
        )
        process = subprocess.Popen(
            ["bash", "-c", script, str(listening.fileno()), sys.executable],
            pass_fds=[listening.fileno()],
            env={**os.environ, "ENVWATCH_SOCKET": "/nonexistent/x"},
            stderr=subprocess.DEVNULL,
        )
        try:
            peer = Peer(path)
            assert peer.status()["pid"] == process.pid
            peer.close()
        finally:
            process.terminate()
            assert process.wait(20) == 0
        assert path.exists()


@pytest.mark.parametrize(
    ("kind", "why"), [("connected", "does not listen"), ("inet", "no Unix socket")]
)
def test_what_is_passed_must_be_a_listening_unix_socket(kind: str, why: str) -> None:
    """A unit with Accept=yes, or with an address, is refused in one line."""
    ours, theirs = socket.socketpair()
    inet = socket.socket(socket.AF_INET)
    with ours, theirs, inet:
        passed = theirs if kind == "connected" else inet
        script = (
            'exec 3<&"$0"; export LISTEN_PID=$$ LISTEN_FDS=1;'
            ' exec "$1" -m envwatch serve'
        )
        done = subprocess.run(
            ["bash", "-c", script, str(passed.fileno()), sys.executable],
            pass_fds=[passed.fileno()],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    assert done.returncode == errors.Refused.exit_code
    assert why in done.stderr
    assert done.stderr.count("\n") == 1


def test_no_descriptor_left_is_no_end(started: Start) -> None:
    """With the last descriptor gone it pauses, and goes on when one is free."""
    daemon = started()
    first = Peer(daemon.socket)
    assert daemon.process is not None
    used = len(os.listdir(f"/proc/{daemon.process.pid}/fd"))
    limit = used + 1
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (limit, limit))
    more = [Peer(daemon.socket, greets=False) for _ in range(4)]
    until("it says so", lambda: "no_room" in daemon.said)
    assert first.status()["kernels"] == 1
    for each in more:
        each.close()
    until("there is room again", lambda: first.status()["kernels"] == 1)
    assert daemon.said.count("no_room") <= 2
    first.close()

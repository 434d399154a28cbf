"""A socket, or stdin and stdout, as a connection."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from envwatch.runtime.channel import SocketChannel

CHECKOUT = Path(__file__).parents[2]


def run(program: str, *, redirect: str = "") -> subprocess.CompletedProcess[bytes]:
    """Run Python with pipes as stdin and stdout, and more redirections of a shell."""
    return subprocess.run(
        ["bash", "-c", f'exec "$0" "$@" {redirect}', sys.executable, "-c", program],
        input=b"in\n",
        capture_output=True,
        cwd=CHECKOUT,
        timeout=30,
        check=False,
    )


def test_what_is_printed_never_gets_between_frames() -> None:
    """stdout is stderr for everybody else, and stdin is at its end."""
    done = run(
        "import os; from envwatch.runtime.channel import StdioChannel\n"
        "channel = StdioChannel()\n"
        "print('stray', flush=True); os.system('echo stray; cat')\n"
        "assert channel.receive(100) == b'in\\n'\n"
        "channel.send(b'frame'); channel.close()"
    )
    assert (done.returncode, done.stdout) == (0, b"frame"), done.stderr
    assert done.stderr == b"stray\nstray\n"


def test_the_mode_of_the_descriptors_is_given_back() -> None:
    """Others share it: a terminal or a pipe of a shell must not stay non-blocking."""
    done = run(
        "import os; from envwatch.runtime.channel import StdioChannel\n"
        "kept = os.dup(0), os.dup(1)\n"
        "channel = StdioChannel()\n"
        "assert not any(map(os.get_blocking, kept))\n"
        "channel.close()\n"
        "assert all(map(os.get_blocking, kept))"
    )
    assert done.returncode == 0, done.stderr


def test_no_descriptor_goes_through_stdout() -> None:
    """It may be a pipe: that is known before, and trying it is an error."""
    done = run(
        "from envwatch.runtime.channel import StdioChannel\n"
        "channel = StdioChannel()\n"
        "assert not channel.can_pass\n"
        "try: channel.send_descriptor(b'frame', 2)\n"
        "except OSError: channel.send(b'refused')"
    )
    assert (done.returncode, done.stdout) == (0, b"refused"), done.stderr


def test_a_descriptor_goes_through_a_unix_socket_only() -> None:
    """It comes out as another descriptor of the same file, with the bytes."""
    with socket.socket() as inet:
        assert not SocketChannel(inet).can_pass
    ours, theirs = socket.socketpair()
    with ours, theirs, Path("/dev/null").open("rb") as null:
        channel = SocketChannel(ours)
        assert channel.can_pass
        assert channel.send_descriptor(b"frame", null.fileno()) == 5
        data, descriptors, _, _ = socket.recv_fds(theirs, 100, 4)
        (descriptor,) = descriptors
        try:
            assert data == b"frame"
            assert os.path.samestat(os.fstat(descriptor), os.fstat(null.fileno()))
        finally:
            os.close(descriptor)


def test_closed_descriptors_are_refused() -> None:
    """Each with a line of its own."""
    program = (
        "import sys; from envwatch.errors import Refused\n"
        "from envwatch.runtime.channel import StdioChannel\n"
        "try: StdioChannel()\n"
        "except Refused as error: sys.exit(str(error))"
    )
    for redirect, name in (("<&-", "stdin"), (">&-", "stdout")):
        done = run(program, redirect=redirect)
        expected = f"--stdio needs a pipe or a socket as {name}\n"
        assert done.stderr.decode() == expected


def test_descriptors_are_closed_in_what_is_started() -> None:
    """An evaluation must not hold the peer's pipe."""
    done = run(
        "import os; from envwatch.runtime.channel import StdioChannel\n"
        "channel = StdioChannel()\n"
        "assert not os.get_inheritable(channel.reading)\n"
        "assert not os.get_inheritable(channel.writing)"
    )
    assert done.returncode == 0, done.stderr
    assert os.get_inheritable(0)


def test_a_socket_goes_both_ways_and_never_blocks() -> None:
    """It gives nothing at the end, and takes no more than there is room for."""
    ours, theirs = socket.socketpair()
    with theirs:
        channel = SocketChannel(ours)
        assert channel.reading == channel.writing == ours.fileno()
        assert not os.get_blocking(channel.reading)
        with pytest.raises(BlockingIOError):
            channel.receive(100)
        theirs.sendall(b"there")
        assert channel.receive(3) + channel.receive(100) == b"there"
        assert channel.send(memoryview(b"back")) == 4
        assert theirs.recv(100) == b"back"
        piece = bytes(1 << 20)
        assert 0 < channel.send(piece) < len(piece)
        with pytest.raises(BlockingIOError):
            channel.send(piece)
        theirs.shutdown(socket.SHUT_WR)
        assert channel.receive(100) == b""
        channel.close()
        assert ours.fileno() == -1


def test_a_peer_that_has_gone_is_an_error_to_write_to() -> None:
    """Not the end of the process."""
    ours, theirs = socket.socketpair()
    channel = SocketChannel(ours)
    theirs.close()
    with pytest.raises(BrokenPipeError):
        channel.send(b"anybody?")
    channel.close()

"""Peers that break the rules, and many that keep them."""

from __future__ import annotations

import resource
import socket
from collections.abc import Callable
from contextlib import suppress

import pytest

from kernel_client import messages
from tests.runtime.conftest import Peer
from tests.support.daemons import Daemon, until
from tests.support.worlds import World

Start = Callable[..., Daemon]
Connect = Callable[..., Peer]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\0\xff\xfe garbage\n", "not_json"),
        (b"[]\n", "shape"),
        (b'{"type": 1}\n', "shape"),
        (b'{"type": "hello"}\n', "shape"),
        (b'{"type": "export"}\n', "order"),
        (b"[" * 100_000 + b"\n", "not_json"),
    ],
)
def test_garbage_ends_its_connection_with_a_reason(
    started: Start, peers: Connect, data: bytes, code: str
) -> None:
    """The peer reads why, then the end; another kernel goes on."""
    daemon = started()
    other = peers(daemon)
    bad = peers(daemon, greets=False)
    bad.socket.sendall(data)
    assert bad.hear("error")["code"] == code
    assert bad.next() is None
    assert other.status()["kernels"] == 1


def test_a_frame_that_is_too_long_ends_its_connection(
    started: Start, peers: Connect
) -> None:
    """17 MiB without an end: refused with a reason that can be read."""
    daemon = started()
    bad, other = peers(daemon), peers(daemon)
    with suppress(BrokenPipeError, ConnectionResetError):
        bad.socket.sendall(b'{"type":"' + b"x" * (17 * 1024 * 1024))
    assert bad.hear("error")["code"] == "too_long"
    assert other.status()["kernels"] == 1


def test_half_a_frame_and_a_dead_peer(started: Start, peers: Connect) -> None:
    """A kernel that dies in the middle of a frame leaves nothing behind."""
    daemon = started()
    dead, other = peers(daemon), peers(daemon)
    dead.socket.sendall(b'{"type":"status"')
    dead.close()
    until("it is gone", lambda: other.status()["kernels"] == 1)


def test_frames_in_single_bytes_are_understood(started: Start, peers: Connect) -> None:
    """However they are cut."""
    daemon = started()
    peer = peers(daemon)
    for byte in b'{"type":"status","id":1}\n{"type":"status","id":2}\n':
        peer.socket.sendall(bytes([byte]))
    assert [peer.hear("done")["id"] for _ in range(2)] == [1, 2]


def test_a_peer_that_never_reads_is_cut_off(
    started: Start, peers: Connect, world: World
) -> None:
    """At the bound of what is kept for it; nobody else waits."""
    daemon = started()
    world.envrc("w", f"export BIG={'x' * 100_000}\n" * 1)
    deaf, other = peers(daemon), peers(daemon)
    other.diff(world)
    deaf.socket.settimeout(0.5)
    try:
        for number in range(1, 1000):
            deaf.export(world, number)
    except (TimeoutError, BrokenPipeError, ConnectionResetError):
        pass
    until("the deaf one is cut off", lambda: other.status()["kernels"] == 1)


def test_long_answers_arrive_whole_at_a_slow_reader(
    started: Start, peers: Connect, world: World
) -> None:
    """What the socket has no room for is sent when there is."""
    daemon = started()
    body = "".join(f"export A{number}={'x' * 100_000}\n" for number in range(5))
    world.envrc("w", body)
    slow, other = peers(daemon), peers(daemon)
    other.diff(world)
    for number in range(1, 11):
        slow.export(world, number)
    assert other.status()["kernels"] == 2
    for number in range(1, 11):
        diff = slow.hear("diff")
        assert (diff["id"], len(diff["set"]["A4"])) == (number, 100_000)


def test_unfinished_frames_are_bounded_over_all_peers(
    started: Start, peers: Connect
) -> None:
    """The one that makes the sidecar hold most is cut off; small ones are not."""
    daemon = started()
    small = peers(daemon)
    small.socket.sendall(b'{"type":"status",')
    for _ in range(10):
        with suppress(BrokenPipeError, ConnectionResetError):
            peers(daemon).socket.sendall(b'{"type":"' + b"x" * (15 * 1024 * 1024))
    small.socket.sendall(b'"id":1}\n')
    status = small.hear("done")["status"]
    assert status["kernels"] < 11
    assert "too much of unfinished frames" in daemon.said


def test_a_thousand_kernels_at_once(started: Start, world: World) -> None:
    """All are welcomed, and one evaluation serves them all."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 1200:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    daemon = started()
    world.envrc("w", "export A=1\n")
    kernels = [Peer(daemon.socket, greets=False) for _ in range(1000)]
    try:
        for kernel in kernels:
            kernel.send(messages.hello(pid=1, client="t", cwd=None))
        for number, kernel in enumerate(kernels, 1):
            kernel.hear("welcome")
            kernel.export(world, number)
        for number, kernel in enumerate(kernels, 1):
            assert kernel.hear("diff")["id"] == number
        status = kernels[0].status()
        assert (status["kernels"], status["evaluations"]) == (1000, 1)
    finally:
        for kernel in kernels:
            kernel.close()


def test_a_peer_that_half_closes_is_gone(started: Start, peers: Connect) -> None:
    """The end of its input is its end."""
    daemon = started()
    peer, other = peers(daemon), peers(daemon)
    peer.socket.shutdown(socket.SHUT_WR)
    assert peer.next() is None
    assert other.status()["kernels"] == 1

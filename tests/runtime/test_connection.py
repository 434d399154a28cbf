"""Peers that break the rules, and many that keep them."""

from __future__ import annotations

import os
import resource
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from envwatch.config import Config
from envwatch.core.events import (
    Allowance,
    Armed,
    Burnt,
    Closed,
    Event,
    Pass,
    Retire,
)
from envwatch.core.hub import Hub
from envwatch.core.sidecar import Rules
from envwatch.runtime.channel import SocketChannel
from envwatch.runtime.connection import STALLED_S, Connection, Unread
from envwatch.runtime.daemon import Daemon as Sidecar
from envwatch.runtime.fence import Fences
from kernel_client import messages, snapshot
from tests.runtime.conftest import Peer
from tests.support.daemons import Daemon, until
from tests.support.worlds import World

Start = Callable[..., Daemon]
Connect = Callable[..., Peer]


@pytest.fixture
def anyio_backend() -> str:
    """Use the backend that the sidecar uses."""
    return "asyncio"


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


def stalled(connection: Connection) -> float | None:
    """Give since when a peer has taken nothing of what waits for it."""
    return connection.stalled_since


async def test_how_long_a_peer_has_taken_nothing_is_known() -> None:
    """From what waits for it, not from silence; the daemon cuts it off by that."""
    ours, theirs = socket.socketpair()
    heard: list[Event] = []
    connection = Connection(1, SocketChannel(ours), heard.append, Unread(lambda: None))
    connection.open()
    connection.send(b"short")
    sent = 5
    assert stalled(connection) is None
    while stalled(connection) is None:
        connection.send(b"x" * 100_000)
        sent += 100_000
    since = stalled(connection)
    assert since is not None
    assert since <= time.monotonic()
    theirs.settimeout(0)
    connection.send(b"x" * 4_000_000)
    sent += 4_000_000
    while stalled(connection) == since:
        with suppress(BlockingIOError):
            sent -= len(theirs.recv(1 << 16))
        await anyio.lowlevel.checkpoint()
    # It reads, if slowly: the time starts again.
    assert (stalled(connection) or 0) > since
    while sent:
        with suppress(BlockingIOError):
            sent -= len(theirs.recv(1 << 20))
        await anyio.lowlevel.checkpoint()
    assert stalled(connection) is None
    theirs.close()
    while not heard:
        await anyio.lowlevel.checkpoint()
    assert heard == [Closed(1)]


async def test_stalled_peers_are_cut_off_and_others_not() -> None:
    """After half a minute in which they took nothing."""
    daemon = Sidecar(Config(socket="/nonexistent"))
    logged: list[str] = []
    daemon._log = lambda event, **fields: logged.append(event)
    daemon._hub = Hub(Rules(version="0", pid=1, direnv=None), 0.0)
    pairs = [socket.socketpair() for _ in range(2)]
    for ours, _ in pairs:
        daemon._welcome(ours)
    deaf, well = daemon._connections.values()
    deaf.stalled_since = 100.0
    daemon._cut_off(100.0 + STALLED_S - 0.1)
    assert list(daemon._connections.values()) == [deaf, well]
    daemon._cut_off(100.0 + STALLED_S)
    assert list(daemon._connections.values()) == [well]
    assert logged == ["cut_off"]
    assert pairs[0][1].recv(1) == b""
    well.cut()
    for _, theirs in pairs:
        theirs.close()


# ------------------------------------------------------------------ descriptors


class Pair:
    """A connection, and the other end of it as a kernel reads it."""

    def __init__(self) -> None:
        ours, self.theirs = socket.socketpair()
        self.raw = ours
        self.heard: list[Event] = []
        unread = Unread(lambda: None)
        channel = SocketChannel(ours)
        self.connection = Connection(1, channel, self.heard.append, unread)
        self.theirs.settimeout(0)

    def fill(self) -> int:
        """Leave no room in the socket; gives how many bytes that took."""
        size = 0
        with suppress(BlockingIOError):
            while True:
                size += self.raw.send(b"x" * 4096)
        return size

    def read(self, size: int) -> tuple[bytes, int]:
        """Give what is there, and how many descriptors came with it."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self.theirs, size, 8)
        except BlockingIOError:
            return b"", 0
        for descriptor in descriptors:
            os.close(descriptor)
        return data, len(descriptors)

    async def drain(self) -> tuple[bytes, list[int]]:
        """Read to the end; gives all bytes, and where in them descriptors came."""
        data, where = bytearray(), list[int]()
        while True:
            is_all = stalled(self.connection) is None
            new, count = self.read(1 << 16)
            where += [len(data)] * count
            data += new
            await anyio.lowlevel.checkpoint()
            if not new and is_all:
                return bytes(data), where


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    """Give a connection and its other end."""
    made = Pair()
    yield made
    made.connection.cut()
    made.theirs.close()


async def test_a_descriptor_comes_with_the_first_byte_of_its_frame(
    pair: Pair,
) -> None:
    """Neither before nor after it, however the bytes are read."""
    pair.connection.send(b"before\n")
    pair.connection.send_descriptor(b"fence\n", 0)
    pair.connection.send(b"after\n")
    assert pair.read(7) == (b"before\n", 0)
    assert pair.read(1) == (b"f", 1)
    assert pair.read(100)[1] == 0
    assert pair.heard == []


async def test_a_descriptor_does_not_wait(pair: Pair) -> None:
    """Where something is to be sent before it, the peer gets neither."""
    filled = pair.fill()
    pair.connection.send(b"waits\n")
    pair.connection.send_descriptor(b"fence\n", 0)
    # There is room now, and what waits has not been sent yet.
    early, _ = pair.read(filled // 2)
    assert len(early) == filled // 2
    pair.connection.send_descriptor(b"fence\n", 0)
    pair.connection.send(b"waits too\n")
    data, where = await pair.drain()
    assert (early + data)[filled:] == b"waits\nwaits too\n"
    assert where == []


async def test_a_full_socket_gets_no_descriptor(pair: Pair) -> None:
    """That is no error, and nothing of the frame comes later."""
    filled = pair.fill()
    pair.connection.send_descriptor(b"fence\n", 0)
    assert stalled(pair.connection) is None
    data, where = await pair.drain()
    assert (len(data), where) == (filled, [])
    pair.connection.send_descriptor(b"fence\n", 0)
    assert await pair.drain() == (b"fence\n", [0])
    assert pair.heard == []


async def test_the_rest_of_a_long_frame_follows(pair: Pair) -> None:
    """In order, and the descriptor came with its beginning."""
    pair.connection.send_descriptor(b"f" * 4_000_000, 0)
    assert stalled(pair.connection) is not None
    pair.connection.send(b"after\n")
    data, where = await pair.drain()
    assert data == b"f" * 4_000_000 + b"after\n"
    assert where == [0]


async def test_a_peer_that_has_gone_or_is_going_gets_none(pair: Pair) -> None:
    """What cannot be sent is found out by what must be."""
    pair.connection.close()
    pair.connection.send_descriptor(b"fence\n", 0)
    assert pair.read(100) == (b"", 0)
    other = Pair()
    other.theirs.close()
    other.connection.send_descriptor(b"fence\n", 0)
    assert other.heard == []
    other.connection.send(b"must\n")
    assert other.heard == [Closed(1)]


async def test_only_a_quiet_fence_is_passed(tmp_path: Path) -> None:
    """A burnt one, one that was closed, and a kernel that has gone: nothing."""
    daemon = Sidecar(Config(socket="/nonexistent"))
    daemon._hub = Hub(Rules(version="0", pid=1, direnv=None), 0.0)
    heard: list[Event] = []
    daemon._fences = Fences(heard.append)
    ours, theirs = socket.socketpair()
    theirs.settimeout(0)
    daemon._welcome(ours)
    path = tmp_path / "file"
    path.write_text("x")
    seen = snapshot.take([str(path)])
    armed = daemon._fences.arm(str(path), seen, Allowance(5, 1, 100))
    assert isinstance(armed, Armed)
    try:
        daemon._perform(Pass(1, b"first", 5))
        data, (descriptor,), _, _ = socket.recv_fds(theirs, 100, 4)
        os.close(descriptor)
        assert data == b"first"
        daemon._perform(Pass(2, b"nobody", 5))
        daemon._perform(Pass(1, b"unknown", 6))
        path.write_text("y")
        daemon._perform(Pass(1, b"burnt", 5))
        daemon._perform(Retire(5, clear=False))
        daemon._perform(Pass(1, b"closed", 5))
        with pytest.raises(BlockingIOError):
            theirs.recv(100)
    finally:
        daemon._fences.close()
        daemon._connections[1].cut()
        theirs.close()
    assert heard == [Burnt(5, 1)]


def test_a_peer_that_half_closes_is_gone(started: Start, peers: Connect) -> None:
    """The end of its input is its end."""
    daemon = started()
    peer, other = peers(daemon), peers(daemon)
    peer.socket.shutdown(socket.SHUT_WR)
    assert peer.next() is None
    assert other.status()["kernels"] == 1

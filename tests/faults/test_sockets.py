"""Sockets that cannot be trusted, and sockets that nobody listens at."""

from __future__ import annotations

import os
import shutil
import socket as sockets
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.peers import Said, listening
from tests.support.children import NOBODY
from tests.support.pairs import Pair
from tests.support.persons import Person
from tests.support.planted import exports
from tests.support.worlds import World

NEWER = pytest.mark.parametrize("version", ["2.37"])
IS_ROOT = os.getuid() == 0


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a folder as a sidecar's should be."""
    path = Path(tempfile.mkdtemp(prefix="ews-", dir="/tmp"))
    yield path
    shutil.rmtree(path)


def writable_by_all(path: Path) -> None:
    """Let everybody write there."""
    path.parent.chmod(0o777)


def writable_by_group(path: Path) -> None:
    """Let a group write there."""
    path.parent.chmod(0o720)


def folder_of_another(path: Path) -> None:
    """Give the folder to somebody else."""
    os.chown(path.parent, NOBODY, NOBODY)


def socket_of_another(path: Path) -> None:
    """Give the socket to somebody else."""
    os.chown(path, NOBODY, NOBODY)


UNSAFE = [writable_by_all, writable_by_group]
if IS_ROOT:
    UNSAFE += [folder_of_another, socket_of_another]


@NEWER
@pytest.mark.parametrize("spoil", UNSAFE, ids=lambda spoil: spoil.__name__)
def test_unsafe_socket_is_not_even_connected_to(
    world: World, spoil: Callable[[Path], None]
) -> None:
    """The kernel goes to direnv; what it says is direnv's."""
    world.envrc("w", exports("FOO"))

    def play(said: Said) -> None:
        raise AssertionError("an unsafe socket was connected to")

    with listening(play) as peer:
        spoil(peer.path)
        pair = Pair(world, socket=peer.path)
        try:
            pair.step("w", outcome="loaded", alone=True)
            pair.step(world.top, outcome="unloaded")
        finally:
            pair.close()
        assert peer.connections == 0


def stale(path: Path) -> None:
    """Leave a socket that nobody listens at."""
    with sockets.socket(sockets.AF_UNIX) as made:
        made.bind(str(path))


def plain_file(path: Path) -> None:
    """Have a file there."""
    path.write_bytes(b"x")


def a_folder(path: Path) -> None:
    """Have a folder there."""
    path.mkdir()


def nothing(path: Path) -> None:
    """Have nothing there."""


def no_folder(path: Path) -> None:
    """Have not even the folder."""
    path.parent.rmdir()
    path.parent.symlink_to("/nonexistent/envwatch")


def link_to_itself(path: Path) -> None:
    """Have a loop there."""
    path.symlink_to(path)


@NEWER
@pytest.mark.parametrize(
    "lay",
    [stale, plain_file, a_folder, nothing, no_folder, link_to_itself],
    ids=lambda lay: lay.__name__,
)
def test_nobody_listens(world: World, lay: Callable[[Path], None]) -> None:
    """The kernel goes to direnv, and looks again at the next question."""
    world.envrc("w", exports("FOO"))
    folder = Path(tempfile.mkdtemp(prefix="ews-", dir="/tmp"))
    path = folder / "sock"
    try:
        lay(path)
        pair = Pair(world, socket=path)
        try:
            pair.step("w", outcome="loaded", alone=True)
            pair.step(outcome="unchanged")
            pair.step(world.top, outcome="unloaded")
        finally:
            pair.close()
    finally:
        if folder.is_symlink():
            folder.unlink()
        else:
            shutil.rmtree(folder)


@NEWER
def test_sidecar_refuses_an_unsafe_folder(world: World, folder: Path) -> None:
    """One line with the remedy, its own exit code, and nothing is left there."""
    folder.chmod(0o777)
    person = Person(world, folder / "sock")
    person.run("serve").said(77, "chmod 700")
    assert list(folder.iterdir()) == []


@NEWER
def test_sidecar_takes_the_place_of_a_stale_socket(world: World, folder: Path) -> None:
    """It was killed; the next one binds again, and another one is turned away."""
    from tests.support.daemons import Daemon

    daemon = Daemon(world.direnv)
    try:
        daemon.start()
        daemon.kill()
        assert stat.S_ISSOCK(daemon.socket.stat().st_mode)
        daemon.start()
        second = Person(world, daemon.socket).run("serve")
        assert second.code not in (0, 70)
        assert len(second.err.splitlines()) == 1
        world.envrc("w", exports("FOO"))
        pair = Pair(world, socket=daemon.socket)
        try:
            assert pair.step("w", outcome="loaded").result.answered == "sidecar"
        finally:
            pair.close()
    finally:
        daemon.close()

"""`envwatch stop`: the sidecar is gone when the command ends."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import OLDER
from tests.support.daemons import END_S, Daemon
from tests.support.persons import Person

one_version = pytest.mark.parametrize("version", [OLDER], indirect=True)
WELCOME = (
    b'{"type":"welcome","protocol":%d,"version":"0","pid":%d,"direnv":null,'
    b'"capabilities":[]}\n'
)


@one_version
def test_it_ends(attended: Person, daemon: Daemon) -> None:
    """When the command has ended, so has the sidecar; its socket is not left."""
    process = daemon.process
    assert process is not None

    ended = attended.run("stop")

    assert ended.code == 0
    assert ended.out == f"the sidecar has ended (pid {process.pid})\n"
    assert process.wait(END_S) == 0
    daemon.process = None
    attended.run("stop").said(69, str(daemon.socket))


@one_version
def test_no_sidecar(person: Person) -> None:
    """Where none listens there is nothing to stop: exit code 69."""
    person.run("stop").said(69, str(person.socket))


@one_version
def test_stale_socket(attended: Person, daemon: Daemon) -> None:
    """A socket that a killed sidecar left is none: exit code 69."""
    daemon.kill()
    assert daemon.socket.exists()

    attended.run("stop").said(69, str(daemon.socket))


@one_version
def test_unsafe_socket(person: Person) -> None:
    """Nothing is sent to a socket that others could have put there: exit code 77."""
    person.socket.parent.chmod(0o777)

    person.run("stop").said(77, "can be written by others")


@pytest.fixture
def peer(person: Person) -> Iterator[Peer]:
    """Give somebody at the socket who is no sidecar."""
    made = Peer(person.socket)
    yield made
    made.close()


class Peer:
    """Answers each first, second, … frame of a connection as it was told to."""

    def __init__(self, path: Path) -> None:
        self.answers: list[bytes] = []
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()
        self._taken: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        """Close every connection."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listening.close()
        for connection in self._taken:
            connection.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._taken.append(connection)
            for answer in self.answers:
                if not connection.recv(65536):
                    break
                connection.sendall(answer)


@one_version
def test_sidecar_that_does_not_answer(person: Person, peer: Peer) -> None:
    """A sidecar that hangs is told apart from none: exit code 75."""
    peer.answers = [WELCOME % (1, os.getpid())]

    person.run("stop").said(75, "does not answer")


@one_version
def test_sidecar_that_stays(person: Person, peer: Peer) -> None:
    """A sidecar that says it ends, and does not, is named: exit code 75."""
    peer.answers = [WELCOME % (1, os.getpid()), b'{"type":"done","id":1}\n']

    person.run("stop").said(75, "has not ended", f"kill -9 {os.getpid()}")


@one_version
def test_sidecar_of_another_version(person: Person, peer: Peer) -> None:
    """One that speaks another protocol cannot be asked: exit code 69."""
    peer.answers = [WELCOME % (2, os.getpid())]

    person.run("stop").said(69, "protocol")


@one_version
def test_garbage(person: Person, peer: Peer) -> None:
    """Somebody at the socket who speaks no protocol at all: exit code 69."""
    peer.answers = [b"HTTP/1.1 400 Bad Request\r\n\r\n"]

    person.run("stop").said(69, "protocol")

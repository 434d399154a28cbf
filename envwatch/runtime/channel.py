"""Two descriptors that bytes go through: one socket, or stdin and stdout."""

from __future__ import annotations

import errno
import os
import select
import socket
from typing import Protocol

from envwatch.errors import Refused


class Channel(Protocol):
    """Non-blocking; `receive` and `send` raise BlockingIOError and OSError.

    `can_pass` tells whether descriptors can be sent too.
    """

    can_pass: bool

    @property
    def reading(self) -> int:
        """The descriptor to wait on for input."""
        ...

    @property
    def writing(self) -> int:
        """The descriptor to wait on for room."""
        ...

    def receive(self, size: int, /) -> bytes:
        """Give at most `size` bytes; none at the end."""
        ...

    def send(self, data: bytes | bytearray | memoryview, /) -> int:
        """Give how many bytes were taken."""
        ...

    def send_descriptor(self, data: bytes, descriptor: int, /) -> int:
        """Send bytes with a descriptor; gives how many bytes were taken."""
        ...

    def close(self) -> None:
        """Close both ways."""
        ...


class SocketChannel:
    """A connected stream socket; a Unix one can pass descriptors."""

    __slots__ = ("_socket", "can_pass", "reading", "receive", "send", "writing")

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)  # noqa: FBT003 - takes no keyword
        self._socket = connection
        self.reading = self.writing = connection.fileno()
        self.receive = connection.recv
        self.send = connection.send
        self.can_pass = connection.family == socket.AF_UNIX

    def send_descriptor(self, data: bytes, descriptor: int) -> int:
        """Send bytes with a descriptor."""
        return socket.send_fds(self._socket, [data], [descriptor])

    def close(self) -> None:
        """Close it."""
        self._socket.close()


class StdioChannel:
    """This process's stdin and stdout, taken from everybody else in it.

    Raises `Refused` when stdin is a file, which the loop cannot wait for, or when
    either of them is closed.
    """

    __slots__ = ("_blocking", "can_pass", "reading", "writing")

    def __init__(self) -> None:
        self.can_pass = False
        try:
            with select.epoll() as probe:
                probe.register(0, select.EPOLLIN)
        except OSError:
            raise Refused("--stdio needs a pipe or a socket as stdin") from None
        # What anybody prints must not get between frames.
        try:
            # First: where 1 is closed, whatever is opened before would become it.
            self.writing = os.dup(1)
        except OSError:
            raise Refused("--stdio needs a pipe or a socket as stdout") from None
        self.reading = os.dup(0)
        self._blocking = [
            (each, os.get_blocking(each)) for each in (self.reading, self.writing)
        ]
        null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        for each, _ in self._blocking:
            os.set_blocking(each, False)

    def receive(self, size: int) -> bytes:
        """Read from what was stdin."""
        return os.read(self.reading, size)

    def send(self, data: bytes | bytearray | memoryview) -> int:
        """Write to what was stdout."""
        return os.write(self.writing, data)

    def send_descriptor(self, _: bytes, __: int) -> int:
        """Stdout may be a pipe: raises OSError."""
        raise OSError(errno.ENOTSOCK, os.strerror(errno.ENOTSOCK))

    def close(self) -> None:
        """Give both back as they were; the mode is shared with other processes."""
        for each, was in self._blocking:
            os.set_blocking(each, was)
            os.close(each)

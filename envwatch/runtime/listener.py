"""The socket: its folder, its lock, and who may connect."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import stat
import struct
from collections.abc import Callable, MutableMapping
from pathlib import Path

import anyio

from envwatch.errors import AlreadyListening, Refused, UnsafeSocket
from kernel_client.sidecar import folder_problem

BACKLOG = 4096
PAUSE_S = 0.5
"""How long nobody is taken in after the system had no descriptor left."""

MAX_PATH_BYTES = 107
"""What `sockaddr_un` has room for, but for its NUL."""

_ROUND = 64
_FULL = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_FIRST_PASSED_FD = 3


class Listener:
    """A listening socket, and the lock that makes it the only one."""

    def __init__(
        self,
        listening: socket.socket,
        *,
        path: str | None = None,
        lock: int | None = None,
    ) -> None:
        listening.setblocking(False)  # noqa: FBT003 - takes no keyword
        self.socket = listening
        self._path = path
        self._lock = lock
        self._identity = None if path is None else _identity(path)

    @classmethod
    def at(cls, path: str) -> Listener:
        """Listen at a path, in a folder that is made when it is missing.

        Raises:
            AlreadyListening: another sidecar does.
            UnsafeSocket: others can write to the folder, or it is another user's.
            Refused: the path is too long, is that of something else than a socket,
                or the folder cannot be used.
        """
        if len(os.fsencode(path)) > MAX_PATH_BYTES:
            raise Refused(f"{path} is too long for a socket: set ENVWATCH_SOCKET")
        _make_folder(Path(path).parent)
        lock = _lock(f"{path}.lock")
        try:
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                _remove_stale(path)
                listening.bind(path)
                Path(path).chmod(0o600)
                listening.listen(BACKLOG)
                return cls(listening, path=path, lock=lock)
            except BaseException:
                listening.close()
                raise
        except Refused:
            os.close(lock)
            raise
        except OSError as error:
            os.close(lock)
            raise Refused(f"cannot listen at {path}: {error.strerror}") from None

    @classmethod
    def passed(cls, environ: MutableMapping[str, str]) -> Listener | None:
        """Take over the socket that systemd passed, if it passed one.

        Its variables are removed from the environment.
        """
        pid = environ.pop("LISTEN_PID", "")
        count = environ.pop("LISTEN_FDS", "")
        environ.pop("LISTEN_FDNAMES", None)
        environ.pop("LISTEN_PIDFDID", None)
        if pid != str(os.getpid()) or not count.isdigit() or int(count) < 1:
            return None
        try:
            listening = socket.socket(fileno=_FIRST_PASSED_FD)
            os.set_inheritable(_FIRST_PASSED_FD, False)  # noqa: FBT003 - takes no keyword
            if listening.family != socket.AF_UNIX:
                raise Refused("the socket that was passed is no Unix socket")
            if not listening.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                # systemd does so where the unit has Accept=yes.
                raise Refused("the socket that was passed does not listen")
        except OSError as error:
            message = f"the socket that was passed cannot be used: {error.strerror}"
            raise Refused(message) from None
        return cls(listening)

    async def accept(
        self,
        welcome: Callable[[socket.socket], None],
        log: Callable[..., None],
    ) -> None:
        """Take in peers of this user, for ever; others are turned away."""
        paused = False
        while True:
            await anyio.wait_readable(self.socket)
            try:
                for _ in range(_ROUND):
                    peer, _ = self.socket.accept()
                    paused = False
                    uid = _uid(peer)
                    if uid != os.getuid():
                        peer.close()
                        log("turned_away", uid=uid)
                        continue
                    welcome(peer)
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                continue
            except OSError as error:
                if error.errno not in _FULL:
                    raise
                if not paused:
                    paused = True
                    log("no_room", reason=os.strerror(error.errno or 0))
                await anyio.sleep(PAUSE_S)

    def close(self) -> None:
        """Stop listening; the path goes only if it is still this socket's."""
        self.socket.close()
        if self._path is not None and _identity(self._path) == self._identity:
            with contextlib.suppress(OSError):
                Path(self._path).unlink()
        self._path = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _make_folder(folder: Path) -> None:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        problem = folder_problem(str(folder))
    except OSError as error:
        raise Refused(f"{folder} cannot be used: {error.strerror}") from None
    if problem is not None:
        raise UnsafeSocket(problem)


def _remove_stale(path: str) -> None:
    """Make room for the socket; a file that a wrong setting names stays."""
    try:
        mode = Path(path).lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise Refused(f"{path} is there and is no socket: set ENVWATCH_SOCKET")
    Path(path).unlink()


def _lock(path: str) -> int:
    """Take the lock for the life of this process; the file stays behind."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        lock = os.open(path, flags, 0o600)
    except OSError as error:
        raise Refused(f"{path} cannot be opened: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        where = path.removesuffix(".lock")
        raise AlreadyListening(f"another sidecar listens at {where}") from None
    return lock


def _identity(path: str) -> tuple[int, int] | None:
    try:
        seen = Path(path).lstat()
    except OSError:
        return None
    return seen.st_dev, seen.st_ino


def _uid(peer: socket.socket) -> int:
    size = struct.calcsize("3i")
    said = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return int(struct.unpack("3i", said)[1])

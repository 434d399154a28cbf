"""The kernel's end of the pipe: find the sidecar, connect, talk, start one.

Every wait has a deadline, every failure is a `SidecarError`; the client then
goes to direnv itself. Frames are those of PROTOCOL.md.
"""

from __future__ import annotations

import os
import stat as mode_bits
import time

from kernel_client import messages, wire
from kernel_client.errors import ProtocolError, SidecarError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket as socket
    from collections.abc import Callable, Mapping
    from functools import partial

    from kernel_client.settings import Settings
    from kernel_client.tally import Tally
else:
    # What `functools` adds to it costs a start of `envwatch exec` a millisecond.
    from _functools import partial

CLIENT = "kernel_client/0.1.0"

SILENCE_S = 5.0
"""A sidecar that says nothing for so long while an answer is due is given up."""

_HELLO_S = 5.0
_CHUNK_BYTES = 64 * 1024
_ANCILLARY_BYTES = 256
_MAX_DESCRIPTORS = 64
_START_NAMES = (
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "LANG",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
)


def socket_path(environ: Mapping[str, str]) -> str:
    """Give where the sidecar of this user listens (PROTOCOL.md, Transport)."""
    named = environ.get("ENVWATCH_SOCKET")
    if named:
        return os.path.abspath(named)
    runtime = environ.get("XDG_RUNTIME_DIR")
    if runtime and os.path.isabs(runtime):
        return os.path.join(runtime, "envwatch", "envwatch.sock")
    temp = environ.get("TMPDIR")
    if not temp or not os.path.isabs(temp):
        temp = "/tmp"  # noqa: S108 - the folder below is checked for its owner
    return os.path.join(temp, f"envwatch-{os.getuid()}", "envwatch.sock")


def folder_problem(folder: str) -> str | None:
    """Tell in one line why a socket in this folder cannot be trusted, or None.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    seen = os.lstat(folder)
    if not mode_bits.S_ISDIR(seen.st_mode):
        return f"{folder} is not a folder"
    if seen.st_uid != os.getuid():
        return f"{folder} belongs to another user"
    if seen.st_mode & 0o022:
        return f"{folder} can be written by others: chmod 700 it"
    return None


class Link:
    """One connection, after its `welcome`. Not for use by two threads at once.

    `on_fence` takes each `fence` frame with its descriptor as they come; without
    it the sidecar is told that this kernel can take none. `fences` tells whether
    the sidecar can give any. A `tally` that is put here goes along with what is sent.
    """

    def __init__(
        self,
        connection: socket.socket,
        direnv: str | None,
        on_fence: Callable[[wire.Frame, int], None] | None = None,
    ) -> None:
        import select

        self._socket = connection
        self._socket.settimeout(0)
        self._decoder = wire.Decoder()
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)
        self._number = 0
        self.tally: Tally | None = None
        self._on_fence = on_fence
        self._descriptors: list[int] = []
        can = () if on_fence is None else (messages.FENCE,)
        self._said = messages.hello(
            pid=os.getpid(), client=CLIENT, cwd=_cwd(), capabilities=can
        )
        self.poll = self._poll.poll
        self.quiet_poll = partial(self.poll, 0)
        welcome = self._greet()
        self.fences = on_fence is not None and messages.FENCE in welcome["capabilities"]
        self.pid: int = welcome["pid"]
        self.version: str = welcome["version"]
        self.direnv: str | None = (welcome["direnv"] or {}).get("path")
        if direnv is not None and self.direnv != direnv:
            self.close()
            raise SidecarError("direnv", "the sidecar runs another direnv")

    def fileno(self) -> int:
        """Give the number of its descriptor."""
        return self._socket.fileno()

    def number(self) -> int:
        """Give an id that was not used on this connection."""
        self._number += 1
        return self._number

    def send(self, frame: wire.Frame) -> None:
        """Send a whole frame; raises SidecarError when it cannot be delivered."""
        import select

        if self.tally is not None:
            frame = self.tally.join(frame)
        data = memoryview(wire.encode(frame))
        deadline = time.monotonic() + SILENCE_S
        writable = None
        while data:
            try:
                data = data[self._socket.send(data) :]
            except BlockingIOError:
                if writable is None:
                    writable = select.poll()
                    writable.register(self._socket, select.POLLOUT)
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    raise SidecarError("silent", "the sidecar reads nothing") from None
                writable.poll(int(left_s * 1000) + 1)
            except OSError:
                raise SidecarError("closed", "the sidecar has gone") from None

    def receive(self, timeout_s: float) -> list[wire.Frame]:
        """Give the frames that have come, waiting up to `timeout_s` for some.

        Raises:
            SidecarError: it has gone, or broke the protocol.
        """
        if not self._poll.poll(max(0, int(timeout_s * 1000))):
            return []
        frames: list[wire.Frame] = []
        try:
            while True:
                data = self._read()
                if not data:
                    if frames:
                        return frames
                    raise SidecarError("closed", "the sidecar has gone")
                frames += self._checked(self._decoder.feed(data))
                if frames:
                    return frames
        except BlockingIOError:
            return frames
        except OSError:
            raise SidecarError("closed", "the sidecar has gone") from None
        except ProtocolError as error:
            raise SidecarError(
                "protocol", f"the sidecar broke the protocol: {error}"
            ) from None

    def _read(self) -> bytes:
        if self._on_fence is None:
            return self._socket.recv(_CHUNK_BYTES)
        import _socket as socket

        data, ancillary, _, _ = self._socket.recvmsg(
            _CHUNK_BYTES, _ANCILLARY_BYTES, socket.MSG_CMSG_CLOEXEC
        )
        for level, kind, passed in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                self._descriptors += memoryview(passed).cast("i")
        if len(self._descriptors) > _MAX_DESCRIPTORS:
            raise ProtocolError("shape", "descriptors without their frames")
        return data

    def _checked(self, frames: list[wire.Frame]) -> list[wire.Frame]:
        """Give the frames for whoever waits; fences go their own way."""
        others: list[wire.Frame] = []
        for frame in frames:
            messages.check(frame)
            if frame["type"] != messages.FENCE:
                others.append(frame)
                continue
            if self._on_fence is None or not self._descriptors:
                raise ProtocolError("shape", "a fence without a descriptor")
            if not (
                isinstance(frame.get("paths"), str)
                and isinstance(frame.get("rest"), list)
                and isinstance(frame.get("view"), str)
            ):
                raise ProtocolError("shape", "a fence of another shape")
            self._on_fence(frame, self._descriptors.pop(0))
        return others

    def request(self, frame: wire.Frame, timeout_s: float = SILENCE_S) -> wire.Frame:
        """Send a frame and give its `done`; other frames are dropped meanwhile.

        Raises:
            SidecarError: no answer came, or it was an `error`.
        """
        self.send(frame)
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            for answer in self.receive(deadline - time.monotonic()):
                if answer.get("id") != frame["id"]:
                    continue
                if answer["type"] == "done":
                    return answer
                if answer["type"] == "error":
                    raise SidecarError(answer["code"], answer["message"])
        raise SidecarError("silent", "the sidecar does not answer")

    def close(self) -> None:
        """Close this process's end."""
        self._socket.close()
        while self._descriptors:
            os.close(self._descriptors.pop())

    def __del__(self) -> None:
        # A client that was dropped without close() must not warn about a socket.
        self.close()

    def _greet(self) -> wire.Frame:
        self.send(self._said)
        deadline = time.monotonic() + _HELLO_S
        while time.monotonic() < deadline:
            for frame in self.receive(deadline - time.monotonic()):
                if (
                    frame["type"] == "welcome"
                    and frame["protocol"] == messages.PROTOCOL
                ):
                    return frame
                code = frame["code"] if frame["type"] == "error" else "protocol"
                said = frame.get("message") or "the sidecar speaks another protocol"
                self.close()
                raise SidecarError(code, said)
        self.close()
        raise SidecarError("silent", "the sidecar does not answer")


def connect(
    settings: Settings,
    environ: Mapping[str, str],
    direnv: str | None,
    on_fence: Callable[[wire.Frame, int], None] | None = None,
) -> Link:
    """Connect to the sidecar that the settings name.

    `direnv` is the direnv that the kernel would run; a sidecar with another one
    is refused (None: any will do).

    Raises:
        SidecarError: there is none, or none to be trusted.
    """
    # What `socket` adds to it costs a start of `envwatch exec` two milliseconds.
    import _socket as socket

    if settings.fd is not None:
        try:
            connection = socket.socket(fileno=_socket_copy(settings.fd))
        except (OSError, OverflowError):
            message = f"descriptor {settings.fd} of ENVWATCH_FD is not open"
            raise SidecarError("absent", message) from None
        return _linked(connection, direnv, on_fence)
    path = settings.socket or socket_path(environ)
    try:
        problem = folder_problem(os.path.dirname(path))
        if problem is None and os.lstat(path).st_uid != os.getuid():
            problem = f"{path} belongs to another user"
    except OSError:
        raise SidecarError("absent", f"no sidecar listens at {path}") from None
    if problem is not None:
        raise SidecarError("unsafe", problem)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(_HELLO_S)
        connection.connect(path)
    except OSError:
        connection.close()
        raise SidecarError("absent", f"no sidecar listens at {path}") from None
    return _linked(connection, direnv, on_fence)


def _socket_copy(descriptor: int) -> int:
    """Give a copy of a descriptor; raises OSError when it is no socket."""
    if not mode_bits.S_ISSOCK(os.fstat(descriptor).st_mode):
        raise OSError
    return os.dup(descriptor)


def _linked(
    connection: socket.socket,
    direnv: str | None,
    on_fence: Callable[[wire.Frame, int], None] | None,
) -> Link:
    try:
        return Link(connection, direnv, on_fence)
    except BaseException:
        connection.close()
        raise


def command(settings: Settings, environ: Mapping[str, str]) -> str | None:
    """Give the `envwatch` command that would start a sidecar, or None."""
    if settings.sidecar in ("off", "listening") or settings.fd is not None:
        return None
    if settings.sidecar != "auto":
        return settings.sidecar if os.access(settings.sidecar, os.X_OK) else None
    from kernel_client.wrapping import envwatch

    return envwatch(environ)


def start(program: str, settings: Settings, environ: Mapping[str, str]) -> None:
    """Start a sidecar, detached from this kernel, and wait for nothing.

    It gets none of the workspace's variables: only the few names that direnv and
    Python need, and `ENVWATCH_*`.

    Raises:
        SidecarError: it could not be started.
    """
    import subprocess

    given = {
        name: value
        for name, value in environ.items()
        if name in _START_NAMES or name.startswith(("ENVWATCH_", "LC_"))
    }
    given.pop("ENVWATCH_FD", None)
    if settings.socket:
        given["ENVWATCH_SOCKET"] = settings.socket
    if settings.direnv:
        given["ENVWATCH_DIRENV"] = settings.direnv
    try:
        # The shell ends at once, so that the sidecar is nobody's child: it leaves
        # no zombie in the kernel.
        subprocess.run(
            ["/bin/sh", "-c", '"$0" serve &', program],
            check=False,
            cwd="/",
            env=given,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise SidecarError(
            "absent", f"envwatch could not be started: {error.strerror}"
        ) from None


def _cwd() -> wire.Frame | None:
    try:
        path = os.getcwd()
        seen = os.stat(path)
    except OSError:
        return None
    return {"path": path, "dev": str(seen.st_dev), "ino": str(seen.st_ino)}

"""What can go wrong between a kernel, its sidecar and direnv.

    Error
    ├── ProtocolError      the other end broke PROTOCOL.md
    │   └── FrameTooLong   a frame passed the size limit
    ├── SidecarError       no sidecar that can be used, with the reason
    ├── SettingError       a setting that cannot be read
    ├── CommandError       no `envwatch` command to wrap a program with
    ├── DirenvError        direnv could not be started or gave no answer
    └── FenceError         no fence now: stats decide

None of these leaves `refresh()`: the client turns each into one line. `wrap_argv()` and
`wrap_bash()` raise `SettingError` and `CommandError`.
"""

from __future__ import annotations


class Error(Exception):
    """Base of everything that this package raises on purpose."""


class ProtocolError(Error):
    """The peer sent something that PROTOCOL.md does not allow.

    `code` is the word that an `error` frame carries.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class FrameTooLong(ProtocolError):  # noqa: N818 - the word of the wire
    """A frame passed the limit before its end was seen."""

    def __init__(self, limit: int) -> None:
        super().__init__("too_long", f"a frame is longer than {limit} bytes")
        self.limit = limit


class SidecarError(Error):
    """There is no sidecar that this kernel can use.

    `code` tells why: `absent`, `unsafe`, `protocol`, `filesystem`, `direnv`,
    `silent`, `closed`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class SettingError(Error):
    """A setting has a value that cannot be read.

    The message begins with its name, which is also `name`.
    """

    @property
    def name(self) -> str:
        """Give the variable, or the parameter, that cannot be used."""
        return str(self).partition(" ")[0]


class CommandError(Error):
    """There is no `envwatch` command beside this Python or on PATH."""


class DirenvError(Error):
    """direnv could not be started, or ended without an answer."""


class FenceError(Error):
    """No fence can be armed now; the message tells why in one line.

    `code` is `changed` (something moved meanwhile: try again), `instances`,
    `watches` (the user's limits) or `inotify`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

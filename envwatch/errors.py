"""What ends a command of envwatch, with the exit code that it ends with.

    EnvwatchError        70  a bug, when nothing more exact is known
    ├── ConfigError      64  a setting that cannot be used
    ├── BadFile          65  a file that is not what it should be
    ├── NoSidecar        69  nobody listens
    ├── Unavailable      69  something else that is needed is not there
    ├── NotWritten       74  a file that cannot be written
    ├── Temporary        75  works when tried again later
    │   └── AlreadyListening
    └── Refused          77  not allowed, or not safe
        └── UnsafeSocket

Exit codes are those of sysexits.h; 2 is click's own for a wrong command line.
Each message is one line and has no value of any environment variable in it.
"""

from __future__ import annotations

from typing import ClassVar


class EnvwatchError(Exception):
    """Base of everything that envwatch raises on purpose."""

    exit_code: ClassVar[int] = 70


class ConfigError(EnvwatchError):
    """A setting that cannot be used; the message says which and why."""

    exit_code = 64


class BadFile(EnvwatchError):  # noqa: N818 - named after what it is
    """A file cannot be read, or is not what it should be; it was left as it is."""

    exit_code = 65


class NoSidecar(EnvwatchError):  # noqa: N818 - named after what there is not
    """No sidecar listens where one was expected."""

    exit_code = 69


class Unavailable(EnvwatchError):  # noqa: N818 - what there is not, as sysexits names it
    """Something that is needed is not there; the message says what."""

    exit_code = 69


class NotWritten(EnvwatchError):  # noqa: N818 - named after what was not done
    """A file or folder cannot be written; nothing of it was."""

    exit_code = 74


class Temporary(EnvwatchError):  # noqa: N818 - a class of errors, as sysexits names it
    """It may work when it is tried again."""

    exit_code = 75


class AlreadyListening(Temporary):
    """Another sidecar has this socket, and keeps it."""


class Refused(EnvwatchError):  # noqa: N818 - a class of errors, as sysexits names it
    """It would not be safe, or is not allowed."""

    exit_code = 77


class UnsafeSocket(Refused):
    """Others could put themselves in the place of the sidecar."""

"""The client's settings, from code or from `ENVWATCH_*` variables."""

from __future__ import annotations

from kernel_client.environment import WITHHELD
from kernel_client.errors import SettingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

AUTO = "auto"
OFF = "off"
ALWAYS = "always"

FENCE_MODES = (AUTO, ALWAYS, OFF)
"""What `fence` can be, here and for the sidecar."""
LISTENING = "listening"
ON = "on"

SHELL = "/bin/bash"
CHECK_S = 5.0

_FOREVER_S = 1e9
_MAX_DIGITS = 6


class Settings:
    """How a client finds its sidecar and direnv, and how long it waits.

    sidecar
        `auto`: use the sidecar that listens, start one when the `envwatch`
        command is at hand; `listening`: start none; `off`: neither; a path:
        start with that command.
    socket
        Path of the socket, or None for the usual place.
    fd
        An inherited, already connected descriptor to use instead, or None.
    direnv
        Name or absolute path of direnv, or None for the one on PATH.
    wait_s
        How long a run is held for an answer, in seconds.
    kill_s
        How long an evaluation may run, in seconds.
    withheld
        Patterns (fnmatch) of names that no evaluation is to see.
    fence
        `auto`: a fence where there is much to watch; `always`: wherever one can
        be; `off`: never, stats alone.
    fence_recheck_s
        How long a quiet fence is believed before everything is compared by stat
        once more, in seconds.
    exec
        `on`; `off`: `envwatch exec` runs programs as if they were not wrapped.
    shell
        Absolute path of the bash that `wrap_bash` starts.
    check_s
        How long `direnv version` may take when direnv is checked, in seconds.
    """

    __slots__ = (
        "check_s",
        "direnv",
        "exec",
        "fd",
        "fence",
        "fence_recheck_s",
        "kill_s",
        "shell",
        "sidecar",
        "socket",
        "wait_s",
        "withheld",
    )

    def __init__(
        self,
        *,
        sidecar: str = AUTO,
        socket: str | None = None,
        fd: int | None = None,
        direnv: str | None = None,
        wait_s: float = 600.0,
        kill_s: float = 3600.0,
        withheld: Sequence[str] = WITHHELD,
        fence: str = AUTO,
        fence_recheck_s: float = 10.0,
        exec: str = ON,  # noqa: A002 - named after its command
        shell: str = SHELL,
        check_s: float = CHECK_S,
    ) -> None:
        self.sidecar = sidecar
        self.socket = socket
        self.fd = fd
        self.direnv = direnv
        self.wait_s = wait_s
        self.kill_s = kill_s
        self.withheld = tuple(withheld)
        self.fence = fence
        self.fence_recheck_s = fence_recheck_s
        self.exec = exec
        self.shell = shell
        self.check_s = check_s

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Settings:
        """Read the `ENVWATCH_*` variables that the README lists for a kernel.

        `ENVWATCH_WITHHELD` adds patterns, separated by commas, to the default.

        Raises:
            SettingError: one of them cannot be read; the message names it.
        """
        sidecar = environ.get("ENVWATCH_SIDECAR") or AUTO
        if sidecar not in (AUTO, LISTENING, OFF) and not sidecar.startswith("/"):
            raise SettingError(
                "ENVWATCH_SIDECAR must be auto, listening, off or an absolute path"
            )
        wrapped = environ.get("ENVWATCH_EXEC") or ON
        if wrapped not in (ON, OFF):
            raise SettingError("ENVWATCH_EXEC must be on or off")
        shell = environ.get("ENVWATCH_SHELL") or SHELL
        if not shell.startswith("/"):
            raise SettingError("ENVWATCH_SHELL must be an absolute path")
        fence = environ.get("ENVWATCH_FENCE") or AUTO
        if fence not in FENCE_MODES:
            raise SettingError("ENVWATCH_FENCE must be auto, always or off")
        more = environ.get("ENVWATCH_WITHHELD", "").split(",")
        number = environ.get("ENVWATCH_FD")
        if number and not (
            number.isascii() and number.isdigit() and len(number) <= _MAX_DIGITS
        ):
            raise SettingError("ENVWATCH_FD must be the number of a descriptor")
        return cls(
            sidecar=sidecar,
            socket=environ.get("ENVWATCH_SOCKET") or None,
            fd=int(number) if number else None,
            direnv=environ.get("ENVWATCH_DIRENV") or None,
            wait_s=_seconds(environ, "ENVWATCH_WAIT_S", 600.0),
            kill_s=_seconds(environ, "ENVWATCH_KILL_S", 3600.0),
            withheld=(*WITHHELD, *(name.strip() for name in more if name.strip())),
            fence=fence,
            fence_recheck_s=_seconds(environ, "ENVWATCH_FENCE_RECHECK_S", 10.0),
            exec=wrapped,
            shell=shell,
            check_s=_seconds(environ, "ENVWATCH_CHECK_S", CHECK_S),
        )


def usable(environ: Mapping[str, str], hear: Callable[[str], None]) -> Settings:
    """Read the settings; of what cannot be read the default is used, and that said."""
    given = {name: environ[name] for name in environ if name.startswith("ENVWATCH_")}
    while True:
        try:
            return Settings.of(given)
        except SettingError as error:
            hear(f"envwatch: {error}; the default is used")
            del given[error.name]


def _seconds(environ: Mapping[str, str], name: str, default: float) -> float:
    text = environ.get(name)
    if not text:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < _FOREVER_S:  # also refuses nan
        raise SettingError(f"{name} must be a number of seconds above 0")
    return seconds

"""`envwatch exec`: run one program in a workspace's environment.

    envwatch exec [--protect PREFIX]... [--clear PREFIX]... [--keep NAME]...
                  [--] DIR CMD [ARG]...

The program takes this process's place (execve): its pid, working folder, stdin,
signals and exit code are those that the caller sees. Its environment is the caller's
with DIR's workspace loaded, frozen at that moment; what another workspace had loaded
into the caller is taken back first. Without a root file it is the caller's own.
`frozen.py` tells what of it an `.envrc` cannot change.

Where direnv does not load, the program is not run, and one line says why:

    10   blocked: never allowed
    11   blocked: changed since it was allowed
    12   denied
    14   failed: the file ended with an error
    15   degraded: direnv lost variables, or nothing could be started with them
    16   timeout
    17   broken: direnv itself could not work
    69   there is a root file, but no direnv; or names here are not UTF-8
    126  CMD cannot be started
    127  CMD is not found

It uses the sidecar that listens, and starts none: a program that somebody starts must
leave no other one behind. (A path in ENVWATCH_SIDECAR is the person's word, so that
command is started.) ENVWATCH_FD is for one kernel alone and goes on to the program.

This stands before every program of somebody's, so it imports neither click nor
anything else of the command line.
"""

from __future__ import annotations

import os
import sys

from envwatch.frozen import frozen
from envwatch.order import USAGE, Order, UsageError, parsed
from envwatch.text import plain
from kernel_client import (
    environment as env,
    notice,
    outcome as outcomes,
    record as records,
    result,
)
from kernel_client.client import Client
from kernel_client.errors import SettingError
from kernel_client.settings import AUTO, LISTENING, OFF, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from kernel_client.result import Result

# What `signal` adds to it is names, and milliseconds of imports for them.
signal: Any = __import__("_signal")

EXIT_CODES = {
    outcomes.BLOCKED: 10,
    outcomes.DENIED: 12,
    outcomes.FAILED: 14,
    outcomes.DEGRADED: 15,
    outcomes.TIMEOUT: 16,
    outcomes.BROKEN: 17,
}
"""What `exec` ends with for each outcome that refuses."""

CHANGED = 11
_WRONG_LINE, _SETTING, _NO_DIRENV, _NOT_STARTED, _NOT_FOUND = 2, 64, 69, 126, 127

_SAID = {
    outcomes.BLOCKED: "is blocked: it was never allowed",
    outcomes.DENIED: "is denied",
    outcomes.FAILED: "failed",
    outcomes.DEGRADED: "loses variables",
    outcomes.TIMEOUT: "took too long",
    outcomes.BROKEN: "cannot be loaded",
}


def main(arguments: list[str]) -> int:
    """Run the program in this process's place; give an exit code where it is not run."""
    if arguments[:1] in (["-h"], ["--help"]):
        sys.stdout.write(USAGE)
        return 0
    try:
        order = parsed(arguments)
        return _run(order, _callers())
    except UsageError as error:
        _tell(f"envwatch: {error}; `envwatch exec --help` tells how")
        return _WRONG_LINE
    except SettingError as error:
        _tell(f"envwatch: {error}")
        return _SETTING


def _callers() -> dict[str, str]:
    """Give the caller's environment, without what this Python has put into it.

    In the C locale, which is what a client has that hands on but a few variables,
    Python sets LC_CTYPE for itself and for every program that it starts (PEP 538).
    """
    caller = dict(os.environ)
    # A nameless variable is nothing that could be handed on.
    caller.pop("", None)
    if "LC_CTYPE" in caller and not caller.get("LC_ALL"):
        try:
            with open("/proc/self/environ", "rb") as began:
                entries = began.read().split(b"\0")
        except OSError:
            return caller
        values = [each[9:] for each in entries if each.startswith(b"LC_CTYPE=")]
        caller.pop("LC_CTYPE")
        if values:
            caller["LC_CTYPE"] = os.fsdecode(values[0])
    return caller


def _run(order: Order, caller: dict[str, str]) -> int:
    inherited = records.inherited(caller)
    base = env.take_back(caller, None if inherited is None else inherited.put_back)
    settings = Settings.of(base)
    if settings.exec == OFF:
        return _become(order.argv, caller)
    folder = _folder(order.folder)
    if inherited is not None and not env.NAMES_ARE_UTF8:
        # What another workspace has loaded cannot be taken back as it was.
        _tell(plain(f"{notice.ENCODING}; {order.argv[0]} was not run"))
        return _NO_DIRENV
    if settings.sidecar == AUTO:
        settings.sidecar = LISTENING
    settings.fd = None
    # Nobody looks a second time, so nothing is to be kept under watch.
    settings.fence = OFF
    environ = dict(base)
    said = Said()
    done = _refreshed(Client(environ, output=said, settings=settings, folder=folder))
    refused = _refused(done, said, folder, order.argv[0], base)
    if refused is not None:
        return refused
    said.release()
    return _become(order.argv, frozen(environ, caller, base, inherited, order.rules))


def _folder(given: str) -> str:
    """Give the folder as a shell that stands in it would name it: without links."""
    try:
        folder = os.path.realpath(given, strict=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no path can be like this"
        raise UsageError(f"DIR {plain(given)} cannot be used: {reason}") from None
    if not os.path.isdir(folder):
        raise UsageError(f"DIR {plain(given)} is not a folder")
    return folder


class Said:
    """What is said while a workspace loads.

    Lines are shown as they come, but for those that explain an outcome (direnv's
    errors, envwatch's own): they are held, and either released or told in the one line
    of a refusal. direnv's `export` line is not for somebody who starts one program.
    """

    def __init__(self) -> None:
        self._held: list[str] = []

    def __call__(self, line: str) -> None:
        """Take one line."""
        if line.startswith("direnv: export "):
            return
        if line.startswith(("direnv: error ", "envwatch: ")) and (
            notice.STILL not in line
        ):
            self._held.append(line)
        else:
            _tell(line)

    def reason(self) -> str:
        """Give the last held line as the reason of a refusal, and release the others."""
        *others, last = [_bare(line) for line in self._held] or [""]
        # What the reason says already is not said twice.
        self._held = [
            line
            for line, bare in zip(self._held, others, strict=False)
            if bare not in last
        ]
        self.release()
        return last.partition(notice.STARTS_WITHOUT)[0]

    def release(self) -> None:
        """Show what was held."""
        for line in self._held:
            _tell(line)
        self._held = []

    def drop(self) -> None:
        """Forget what was held."""
        self._held = []


def _bare(line: str) -> str:
    return line.removeprefix("direnv: error ").removeprefix("envwatch: ")


def _refused(
    done: Result, said: Said, folder: str, command: str, base: Mapping[str, str]
) -> int | None:
    """Say why the program is not run and give the exit code; None: it is run."""
    if done.outcome == outcomes.LOADED:
        return None
    if done.outcome == outcomes.ABSENT and done.root_file is None:
        return None
    root = done.root_file or folder
    if done.outcome == result.OFF:
        found = _root(folder, base)
        if found is None:
            # Nothing that a direnv would load: the program needs none.
            said.drop()
            return None
        root, code = found, _NO_DIRENV
        what = f"cannot be loaded ({said.reason().partition(', so ')[0]})"
    else:
        outcome = done.outcome if done.outcome in EXIT_CODES else outcomes.BROKEN
        what, code = _SAID[outcome], EXIT_CODES[outcome]
        reason = said.reason()
        if outcome == outcomes.BLOCKED:
            from envwatch import state

            if state.was_allowed(root, base):
                what, code = "is blocked: it has changed since it was allowed", CHANGED
            what += "; allowing it is up to the person"
        elif outcome != outcomes.DENIED and reason:
            what += f" ({reason})"
    _tell(plain(f"envwatch: {root} {what}; {command} was not run"))
    return code


def _root(folder: str, base: Mapping[str, str]) -> str | None:
    """Give what a direnv might load here, where there is none that could be asked."""
    from kernel_client import roots

    nearest = roots.walk(folder).root
    dotenv = roots.walk(folder, dotenv=True).root
    for path in roots.toml_paths(roots.config_folder(base) or "/nonexistent"):
        try:
            with open(path, "rb") as toml:
                if b"load_dotenv" in toml.read():
                    return dotenv
        except OSError:
            continue
    return nearest


# ------------------------------------------------------------------ this process


class _Ended(BaseException):
    """A signal that ends this process; raised so that nothing is left behind."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def _refreshed(client: Client) -> Result:
    """Load the workspace; a signal meanwhile ends the evaluation, then us."""

    # What the caller has ignored, the program is to ignore as well.
    minded = [
        number
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
        if signal.getsignal(number) != signal.SIG_IGN
    ]

    is_ending = False

    def end(number: int, _: object) -> None:
        nonlocal is_ending
        if not is_ending:
            # A second one would leave the evaluation behind that this one ends.
            is_ending = True
            raise _Ended(number)

    try:
        for number in minded:
            signal.signal(number, end)
        done = client.refresh()
        client.close()
        for number in minded:
            signal.signal(number, signal.SIG_DFL)
    except _Ended as ended:
        client.close()
        signal.signal(ended.number, signal.SIG_DFL)
        os.kill(os.getpid(), ended.number)
        raise
    return done


def _become(argv: list[str], environ: dict[str, str]) -> int:
    """Put the program in this process's place; give an exit code where that fails."""
    # Python ignores these two, and what is ignored stays so in the program.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    command = argv[0]
    code, reason = _NOT_FOUND, "command not found"
    for path in _candidates(command, environ):
        try:
            os.execve(path, argv, environ)
        except (FileNotFoundError, NotADirectoryError):
            if os.path.exists(path):
                code, reason = _NOT_STARTED, "its interpreter is not there"
                break
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it cannot be passed on"
            code = _NOT_STARTED
            if not isinstance(error, PermissionError):
                break
    _tell(plain(f"envwatch: {command}: {reason}"))
    return code


def _candidates(command: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Give the paths that a command may mean, on the program's own PATH."""
    if "/" in command or not command:
        yield command
        return
    for folder in environ.get("PATH", os.defpath).split(":"):
        yield os.path.join(folder or ".", command)


def _tell(line: str) -> None:
    """Write a line to stderr, which may be closed or full."""
    if sys.stderr is None:
        # It was closed when we started, so its number may be that of a socket now.
        return
    try:
        os.write(2, line.encode(errors="surrogateescape") + b"\n")
    except OSError:
        return

"""`%load_ext kernel_client`: a refresh before each cell of an IPython shell.

Any IPython will do, in a terminal or under ipykernel. What direnv says is in the
output of the cell that was about to run. `%envwatch` tells, reloads, and turns the
refreshing off and on.

IPython calls `pre_run_cell` before everything that a person runs, also what a host
runs for them without history, and not for what front ends ask silently
(completions, widgets, variable explorers). Each such run is refreshed: an unchanged
workspace costs it microseconds, and a rule with exceptions would be wrong in one.
"""

from __future__ import annotations

import sys

import kernel_client
from kernel_client import notice, result as results

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from kernel_client.client import Client
    from kernel_client.result import Result

EVENT = "pre_run_cell"
MAGIC = "envwatch"
USAGE = "%envwatch status|reload|off|on"

NOT_RUN = "interrupted while direnv was evaluating; the cell was not run"


def load(shell: Any) -> None:
    """Refresh before each cell of this shell from now on; again changes nothing.

    In a terminal, and in a cell that loads the extension, the first refresh is
    made at once. A kernel that is only starting has no cell to show anything in:
    there the answer is asked for, and the first cell waits for it.
    """
    if shell in _hooks:
        return
    hook = Hook(shell, kernel_client.default_client())
    _hooks[shell] = hook
    shell.events.register(EVENT, hook.before_cell)
    shell.register_magic_function(hook.magic, magic_kind="line", magic_name=MAGIC)
    if not hasattr(shell, "kernel"):
        try:
            hook.refresh()
        except KeyboardInterrupt:
            # It may be a start-up file that loads us: there is a prompt to come.
            _say("envwatch: interrupted; the next run asks again")
    elif getattr(shell, "parent_header", None):
        hook.refresh()
    else:
        hook.client.prefetch()


def unload(shell: Any) -> None:
    """Take back what is loaded, and leave this shell alone from now on."""
    hook = _hooks.pop(shell, None)
    if hook is None:
        return
    hook.turn_off()
    shell.events.unregister(EVENT, hook.before_cell)
    shell.magics_manager.magics["line"].pop(MAGIC, None)


def hook_of(shell: Any) -> Hook | None:
    """Give the hook of a shell that has one."""
    return _hooks.get(shell)


class Hook:
    """What one shell does before a cell, and its magic."""

    def __init__(self, shell: Any, client: Client) -> None:
        self.client = client
        self.is_on = True
        self._shell = shell
        self._last: Result | None = None
        self._answered: str | None = None
        self._rejection: Rejection | None = None
        # Older IPythons unregister by identity, and a bound method is a new object
        # each time it is named.
        self.before_cell = self._before_cell

    @property
    def last(self) -> Result | None:
        """What the last refresh came to."""
        return self._last

    def refresh(self) -> None:
        """Refresh, and remember what it came to."""
        self._note(self._interruptible(self.client.refresh))

    def _interruptible(self, call: Callable[[], Result]) -> Result:
        """Call; an interrupt gets through even where a cell is to run async.

        ipykernel then has a SIGINT handler that waits for the event loop, which
        waits for us.
        """
        import signal

        handler = signal.getsignal(signal.SIGINT)
        if (
            handler is signal.default_int_handler
            or not callable(handler)
            or not _is_main_thread()
        ):
            return call()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return call()
        finally:
            signal.signal(signal.SIGINT, handler)

    def _before_cell(self, _info: object = None) -> None:
        """Do what `pre_run_cell` is registered for; nothing is raised into the cell.

        IPython would print an interrupt as an error of this callback, and run the
        cell. Whoever interrupts wants it not to run, so it is rejected.
        """
        if self._rejection is not None:
            # That cell could not even be parsed, and so was not run either.
            self._rejection.withdraw()
            self._rejection = None
        if not self.is_on:
            return
        try:
            self.refresh()
        except KeyboardInterrupt:
            self._rejection = Rejection(self._shell.ast_transformers)
        except Exception as error:  # noqa: BLE001 - the cell must run
            _say(notice.failed(f"it failed ({type(error).__name__})"))

    def magic(self, line: str = "") -> None:
        """`%envwatch status`: what this kernel holds; also `reload`, `off`, `on`.

        `reload` evaluates the workspace again, for every kernel that has it loaded.
        `off` takes back what is loaded and stops refreshing: what nobody refreshes
        could be the value of a file that is blocked by now. `on` refreshes at once.
        """
        word = line.strip() or "status"
        if word == "status":
            _tell(self._status())
        elif word == "reload":
            self._reload()
        elif word == "off":
            self.turn_off()
            _tell("envwatch: off; nothing is loaded here, and runs do not refresh")
        elif word == "on":
            self.is_on = True
            self.refresh()
            _tell("envwatch: on")
        else:
            from IPython.core.error import UsageError

            raise UsageError(USAGE)

    def turn_off(self) -> None:
        """Stop refreshing, and leave nothing loaded."""
        self.is_on = False
        self._last = self.client.unload()

    def _reload(self) -> None:
        if not self.is_on:
            _tell("envwatch: off; `%envwatch on` refreshes")
            return
        result = self._interruptible(self.client.reload)
        self._note(result)
        _tell(f"envwatch: {result.outcome}")

    def _status(self) -> str:
        last = self._last
        root = None if last is None else last.root_file
        held = self.client.outcome
        pid = self.client.sidecar_pid
        rows = (
            ("envwatch", "on" if self.is_on else "off"),
            ("root file", root or "none"),
            ("held", held or "nothing"),
            ("last answer", self._answered or "none was needed"),
            ("sidecar", "none" if pid is None else f"attached, pid {pid}"),
        )
        return "\n".join(f"{name + ':':<13}{value}" for name, value in rows)

    def _note(self, result: Result) -> None:
        self._last = result
        if result.answered not in (results.STATS, results.NOBODY):
            self._answered = result.answered


class Rejection:
    """Has IPython reject one cell: an AST transformer may, `pre_run_cell` may not."""

    def __init__(self, transformers: list[Any]) -> None:
        self._transformers = transformers
        transformers.append(self)

    def visit(self, _node: object) -> None:
        """Reject the cell; the next one runs."""
        self.withdraw()
        raise _interrupted()

    def withdraw(self) -> None:
        """Let every cell run."""
        if self in self._transformers:
            self._transformers.remove(self)


def _interrupted() -> Exception:
    from IPython.core.error import InputRejected

    class Interrupted(InputRejected):
        def _render_traceback_(self) -> list[str]:
            return [f"envwatch: {self}"]

    return Interrupted(NOT_RUN)


def _is_main_thread() -> bool:
    import threading

    return threading.current_thread() is threading.main_thread()


def _tell(text: str) -> None:
    """Write to the cell's output."""
    sys.stdout.write(text + "\n")


def _say(line: str) -> None:
    """Write a line to the cell's stderr, if there is one."""
    try:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    except Exception:  # noqa: BLE001 - somebody's own stream must not fail the cell
        return


_hooks: dict[Any, Hook] = {}

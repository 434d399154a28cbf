"""What a refresh shows: each line once, wherever it is to go."""

from __future__ import annotations

import sys

from kernel_client import notice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Shown:
    """Takes the lines of one refresh after the other, and shows them.

    `lines` are those of the refresh that is under way, as they were shown.
    `output` is called with each; None writes to `sys.stderr` as it is then.
    """

    def __init__(self, output: Callable[[str], None] | None) -> None:
        self.output = output
        self.lines: list[str] = []
        self._muted: list[str] | None = None
        self._before = ""

    def begin(self) -> None:
        """Begin with the lines of another refresh."""
        self.lines = []

    def hear(self, line: str) -> None:
        """Show a line of direnv's or of ours; never raises."""
        line = notice.shown(line, colour=self.output is None and _is_terminal())
        if self._muted is not None:
            self._muted.append(line)
            return
        self.lines.append(line)
        try:
            if self.output is not None:
                self.output(line)
            elif sys.stderr is not None:
                sys.stderr.write(line + "\n")
                sys.stderr.flush()
        except Exception:  # noqa: BLE001 - an output that fails must not fail the run
            return

    def hear_once(self, line: str) -> None:
        """Show a line that would be the same at every run only the first time."""
        if line != self._before:
            self._before = line
            self.hear(line)

    def mute(self) -> list[str]:
        """Show nothing until `unmute`; gives the list that what is heard goes into."""
        self._muted = []
        return self._muted

    def unmute(self) -> None:
        """Show lines again."""
        self._muted = None


def _is_terminal() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except Exception:  # noqa: BLE001 - somebody's own stream
        return False

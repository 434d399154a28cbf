"""Lines of a run that repeats another one are heard once.

A file is evaluated twice when something moved under it, or when the sidecar's
answer could not be used. What the second run says again is not news.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Echo:
    """Passes lines on to `hear`, and remembers them in `heard`.

    After `again`, lines that repeat the remembered ones in the same order are
    swallowed, until one differs.
    """

    __slots__ = ("_expected", "_hear", "heard")

    def __init__(self, hear: Callable[[str], None]) -> None:
        self._hear = hear
        self._expected: list[str] = []
        self.heard: list[str] = []

    def __call__(self, line: str) -> None:
        """Take a line."""
        if self._expected and self._expected[-1] == line:
            self._expected.pop()
            return
        self._expected.clear()
        self.heard.append(line)
        self._hear(line)

    def again(self) -> None:
        """Say that what comes now is another run of the same."""
        self._expected = self.heard[::-1]

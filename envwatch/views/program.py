"""What our Textual programs have in common: the terminal's own colours, quiet ends."""

from __future__ import annotations

from typing import TypeVar

from textual.app import App
from textual.widget import Widget

from envwatch.views.theme import TERMINAL

Shown = TypeVar("Shown", bound=Widget)


class Program(App[int]):
    """A program in the terminal's own two colours.

    What goes wrong in it is in `error`, for whoever has run it. Textual would print
    every local variable, and so what is in an environment.
    """

    ENABLE_COMMAND_PALETTE = False

    def __init__(self) -> None:
        # With the theme below: the terminal's own colours from the first line on.
        super().__init__(ansi_color=True)
        self.register_theme(TERMINAL)
        self.theme = TERMINAL.name

    def place(self, where: str, kind: type[Shown]) -> Shown | None:
        """Give the widget at a place; None while the view ends and is taken apart.

        What comes from threads and timers may come then, too.
        """
        return next(iter(self.query(where).results(kind)), None)

    @property
    def error(self) -> Exception | None:
        """What has ended it, where that was a mistake of ours."""
        return self._exception

    def _fatal_error(self) -> None:
        self._close_messages_no_wait()

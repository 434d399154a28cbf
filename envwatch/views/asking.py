"""The question over another view: a screen of its own, which ends with what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from envwatch.errors import EnvwatchError
from envwatch.inquiry import Inquiry
from envwatch.text import plain
from envwatch.views.question import QuestionFirst, QuestionView
from kernel_client.errors import DirenvError

Inquire = Callable[[], Inquiry]
"""Finds the direnv to ask; raises `EnvwatchError` or `DirenvError` without one."""


class Asking(QuestionFirst, ModalScreen[str]):
    """Asks about one root file; its result is a line that says what came of it."""

    CSS = """
    Asking { align: center middle; }
    #asking { width: 100%; height: auto; max-height: 100%; background: ansi_default; }
    #asking > Static { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave")]

    def __init__(self, root: str, inquire: Inquire) -> None:
        super().__init__()
        self._root = root
        self._inquire = inquire
        self._is_allowed = False

    def compose(self) -> ComposeResult:
        """Have a place for the question; it comes when direnv is found."""
        with Vertical(id="asking"):
            yield Static("looking at the file ... (esc leaves)", markup=False)

    def on_mount(self) -> None:
        """Look for direnv, which may take its time."""
        self.run_worker(self._open(), group="asking")

    async def _open(self) -> None:
        try:
            inquiry = await asyncio.to_thread(self._inquire)
        except (EnvwatchError, DirenvError) as error:
            self._end(plain(str(error)))
            return
        view = QuestionView(inquiry)
        await self.query_one("#asking").mount(view)
        # A root file has no links in its folder (PROTOCOL.md, `export`).
        view.open(self._root.rpartition("/")[0] or "/")

    def on_question_view_looked(self, message: QuestionView.Looked) -> None:
        """Leave where nothing is asked."""
        found = message.found
        if found is None:
            self._end(plain(message.reason))
        elif self.query_one(QuestionView).is_asking:
            self.query_one("#asking > Static").display = False
        elif self._is_allowed:
            self._end(
                plain(f"{self._root} is allowed; kernels load it at their next run")
            )
        elif found.subject is not None and found.subject.exhibit.refusal is not None:
            refusal = found.subject.exhibit.refusal
            self._end(plain(f"{self._root} cannot be shown: {refusal}"))
        else:
            self._end(plain(f"{self._root} is {found.workspace.state}"))

    def on_question_view_answered(self, message: QuestionView.Answered) -> None:
        """Remember that it was allowed; the view looks once more before it ends."""
        self._is_allowed = message.reason is None

    def on_question_view_put_away(self, _: QuestionView.PutAway) -> None:
        """Leave it blocked."""
        self._end(plain(f"{self._root} stays blocked"))

    def _end(self, text: str) -> None:
        # To wait for the end in a handler of what ends would be to wait for ever.
        _ = self.dismiss(text)

    def action_leave(self) -> None:
        """Leave while it is still looked for."""
        self._end("")

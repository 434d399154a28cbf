"""A workspace that is made up, a clock that stands, and a program of ten lines."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import Input, TextArea

from envwatch.core.exhibit import exhibit
from envwatch.core.question import AllowQuestion, Subject
from envwatch.inquiry import Found, Inquiry, NotAllowed
from envwatch.state import State, Workspace
from envwatch.views.question import QuestionFirst, QuestionView
from kernel_client.errors import DirenvError

ROOT = "/w/.envrc"


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self, event: events.Event | None) -> float:
        return self.now


class MadeUp(Inquiry):
    """A workspace whose file is what the test says."""

    def __init__(self, content: bytes = b"export A=1\n") -> None:
        super().__init__("/direnv", {})
        self.content = content
        self.state = State.NEW
        self.allowed: list[bytes] = []
        self.before_allowing: Callable[[], None] = lambda: None
        self.is_gone = False

    def look(self, folder: str) -> Found:
        """Say what the test has put there."""
        if self.is_gone:
            raise DirenvError("direnv could not be started: it is gone")
        workspace = Workspace(folder=folder, root=ROOT, state=self.state)
        subject = Subject(
            root=ROOT,
            state=str(self.state),
            fingerprint=repr(self.content),
            exhibit=exhibit(self.content),
            content=self.content,
            origin="the whole file",
            names=("other.env",),
        )
        return Found(workspace, subject if subject.is_asked else None)

    def glance(self, folder: str) -> tuple[tuple[()], tuple[()]]:
        """Differ as often as the content does."""
        return self.content, self.state  # type: ignore[return-value]

    def allow(self, subject: Subject) -> None:
        """Allow as the real one does: what was shown, or nothing."""
        self.before_allowing()
        if subject.content != self.content:
            raise NotAllowed(f"{ROOT} has changed since it was shown")
        self.allowed.append(subject.content)
        self.state = State.ALLOWED


class Line(QuestionFirst, Input):
    """A composer of one line."""


class Lines(QuestionFirst, TextArea):
    """A composer of several lines."""


class Chat(App[None]):
    """The program that the question is embedded in."""

    def __init__(
        self, inquiry: Inquiry, clock: Clock, composer: type, folder: str = "/w"
    ) -> None:
        super().__init__()
        self.folder = folder
        self.view = QuestionView(inquiry, clock=clock)
        self.composer: Line | Lines = composer(id="composer")
        self.said: list[object] = []

    def compose(self) -> ComposeResult:
        """The question above the composer."""
        yield self.view
        yield self.composer

    def on_mount(self) -> None:
        """Ask as the view opens."""
        self.composer.focus()
        self.view.open(self.folder)

    def on_question_view_answered(self, said: QuestionView.Answered) -> None:
        """Keep what came of an answer."""
        self.said.append(said)

    def on_question_view_put_away(self, said: QuestionView.PutAway) -> None:
        """Keep that it was put away."""
        self.said.append(said)

    def on_question_view_looked(self, said: QuestionView.Looked) -> None:
        """Keep what was found."""
        self.said.append(said)

    @property
    def draft(self) -> str:
        """What is in the composer."""
        text: str = getattr(self.composer, "value", "") or getattr(
            self.composer, "text", ""
        )
        return text


@pytest.fixture
def clock() -> Clock:
    """Give a clock that stands."""
    return Clock()


async def settled(pilot: Pilot[None]) -> None:
    """Wait until the program has done what was asked of it, and painted it."""
    for _ in range(3):
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()


__all__ = ["AllowQuestion", "Chat", "Clock", "Line", "Lines", "MadeUp", "settled"]

"""The question whether a blocked file may load, as a widget for any Textual program.

    class Chat(App[None]):
        def compose(self):
            yield QuestionView(Inquiry(direnv, base, version=version))
            yield Composer()

        def on_mount(self):
            self.query_one(QuestionView).open("/home/me/project")

    class Composer(QuestionFirst, Input): ...

`QuestionView` looks at the folder when it is opened, shows itself when the file is
blocked, allows on `y`, and looks again. `QuestionFirst`, named before `Input`,
`TextArea` or `App`, hands every key to the question before anybody else gets it; a
program without a composer puts it before its `App`. Rules: `envwatch.core.question`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.dom import DOMNode
from textual.errors import NoWidget
from textual.message import Message
from textual.widgets import Static

from envwatch.core.exhibit import Line, folded
from envwatch.core.question import Action, AllowQuestion, Subject
from envwatch.inquiry import Found, Inquiry, NotAllowed
from envwatch.views.painting import head, page, plain
from kernel_client.errors import DirenvError

Clock = Callable[[events.Event | None], float]
"""Gives when a key was typed, or (None) what time it is, in seconds."""

LOOK_EVERY_S = 0.5
"""While a question stands: so long a change of the file may go unnoticed on the
screen. The answer to what stood there then is void anyway."""


def clock(event: events.Event | None) -> float:
    """Tell the time: of a key when it was read, not when somebody got round to it."""
    return time.monotonic() if event is None else event.time


class QuestionView(Vertical):
    """Shows the question of one folder; hidden while nothing is asked."""

    DEFAULT_CSS = """
    QuestionView { display: none; height: auto; border: round $warning; padding: 0 1; }
    QuestionView.-asking { display: block; }
    QuestionView > Static { height: auto; }
    QuestionView > VerticalScroll { height: auto; max-height: 50vh; }
    QuestionView > VerticalScroll > Static { height: auto; }
    """

    class Looked(Message):
        """It has looked at the folder; `found` is None where that was not possible."""

        def __init__(self, found: Found | None, reason: str = "") -> None:
            self.found = found
            self.reason = reason
            super().__init__()

    class Answered(Message):
        """`y` was pressed; `reason`: why nothing was allowed by it, or None."""

        def __init__(self, subject: Subject, reason: str | None) -> None:
            self.subject = subject
            self.reason = reason
            super().__init__()

    class PutAway(Message):
        """`n` or escape was pressed; nothing is asked until `open`."""

        def __init__(self, subject: Subject) -> None:
            self.subject = subject
            super().__init__()

    def __init__(
        self,
        inquiry: Inquiry,
        *,
        question: AllowQuestion | None = None,
        clock: Clock = clock,
        id: str | None = None,  # noqa: A002 - Textual's name for it
    ) -> None:
        super().__init__(id=id)
        self.question = question or AllowQuestion()
        self.folder: str | None = None
        self._inquiry = inquiry
        self._clock = clock
        self._glance: object = None
        self._offered: events.Event | None = None
        self._lines: tuple[Line, ...] = ()
        self._seen = 0
        self._note = ""
        self._turn = asyncio.Lock()
        self._head = Static()
        self._page = Static()
        self._body = _Body(self._page)
        self._foot = Static()

    def compose(self) -> ComposeResult:
        """Put the parts together."""
        yield self._head
        yield self._body
        yield self._foot

    def on_mount(self) -> None:
        """Notice when the file changes while its question stands."""
        self.set_interval(LOOK_EVERY_S, self._notice)

    def open(self, folder: str | None) -> None:
        """Ask about a folder (absolute, without links) as a view just opened; None: none.

        Call it when the view opens and when its folder changes. Nothing is put away
        any more.
        """
        self.question.opened()
        self._note = ""
        self.follow(folder)

    def follow(self, folder: str | None) -> None:
        """Ask about a folder as `open` does, but what was put away stays away."""
        self.folder = folder
        if folder is None:
            self._take(None)
        else:
            self.check()

    def check(self) -> None:
        """Look at the folder again; what was put away stays away."""
        if self.folder is not None:
            self.run_worker(self._look(self.folder), group="question")

    @property
    def is_asking(self) -> bool:
        """Whether a question stands."""
        return self.question.subject is not None

    def takes(self, event: events.Key | events.Paste, *, is_empty: bool) -> bool:
        """Offer a key or a paste to the question; gives whether nobody else gets it.

        `is_empty`: the composer has no draft (or there is no composer).
        """
        if event is self._offered:
            # The composer has passed it on, and it has come up to the program.
            return False
        self._offered = event
        subject, now = self.question.subject, self._clock(event)
        if isinstance(event, events.Paste):
            self.question.pasted(now)
            return False
        action = self.question.key(_name(event), now, is_empty=is_empty)
        if subject is None:
            return False
        if action is Action.PASS:
            return is_empty and self._scrolls(event.key)
        if action is Action.AWAY:
            self._paint()
            self.post_message(self.PutAway(subject))
        elif action is Action.ALLOW:
            self._paint_foot()
            self.run_worker(self._allow(subject), group="answer")
        return True

    def read(self) -> None:
        """Say which lines are on the screen now; the body calls it as it moves."""
        subject = self.question.subject
        if subject is None or not self.is_attached:
            return
        try:
            place = self.screen.find_widget(self._page)
        except NoWidget:
            return
        seen = place.visible_region
        if not seen.height or seen.width < place.region.width:
            return
        above = seen.y - place.region.y
        # A jump over lines that nobody has seen counts for nothing.
        if above <= self._seen:
            self._seen = max(self._seen, above + seen.height)
        in_full = self._seen >= len(self._lines)
        self.question.shown(subject, self._clock(None), in_full=in_full)
        self._paint_foot()

    def fold(self) -> None:
        """Fold the lines to the width that there is; the body calls it."""
        subject = self.question.subject
        width = self._body.scrollable_content_region.width
        if subject is None or width <= 0:
            return
        self._seen = 0
        self._lines = tuple(
            part for line in subject.exhibit.lines for part in folded(line, width)
        )
        self._page.update(page(self._lines))
        self.call_after_refresh(self.read)

    # -------------------------------------------------------------- looking

    async def _look(self, folder: str) -> None:
        async with self._turn:
            if folder != self.folder:
                return
            found, reason = None, ""
            try:
                self._glance = await asyncio.to_thread(self._inquiry.glance, folder)
                found = await asyncio.to_thread(self._inquiry.look, folder)
            except DirenvError as error:
                reason = str(error)
            if folder == self.folder:
                self._take(None if found is None else found.subject)
                self.post_message(self.Looked(found, reason))

    async def _notice(self) -> None:
        folder = self.folder
        if folder is None or not self.is_asking or self._turn.locked():
            return
        seen = await asyncio.to_thread(self._inquiry.glance, folder)
        if seen != self._glance:
            self.check()

    async def _allow(self, subject: Subject) -> None:
        reason = None
        async with self._turn:
            try:
                await asyncio.to_thread(self._inquiry.allow, subject)
            except NotAllowed as error:
                reason = str(error)
        self._note = "" if reason is None else plain(reason)
        self.post_message(self.Answered(subject, reason))
        if self.folder is not None:
            await self._look(self.folder)

    # -------------------------------------------------------------- painting

    def _take(self, subject: Subject | None) -> None:
        if self.question.found(subject):
            self._paint()

    def _paint(self) -> None:
        subject = self.question.subject
        self.set_class(subject is not None, "-asking")
        if subject is None:
            self._lines = ()
            self._page.update("")
            return
        self._head.update(head(subject, self._note))
        self._body.scroll_home(animate=False)
        self._paint_foot()
        self.fold()
        # The width is known once it is on the screen.
        self.call_after_refresh(self.fold)

    def _paint_foot(self) -> None:
        if self.question.is_ready:
            text = "y allows this file · n or esc puts the question away"
        elif self.question.is_answered:
            text = "allowing it ..."
        else:
            text = "PgDn shows the rest, then y allows · n or esc puts it away"
        self._foot.update(Content(text))

    def _scrolls(self, key: str) -> bool:
        if key in ("pagedown", "down"):
            step = self._body.scrollable_content_region.height - 1
            self._body.scroll_relative(
                y=step if key == "pagedown" else 1, animate=False
            )
        elif key in ("pageup", "up"):
            step = self._body.scrollable_content_region.height - 1
            self._body.scroll_relative(
                y=-step if key == "pageup" else -1, animate=False
            )
        else:
            return False
        return True


class QuestionFirst:
    """Named before `Input`, `TextArea` or `App`: the question gets each key first.

    A class that has an `on_key` of its own gets keys before the question does: let
    it stand between this one and Textual's.
    """

    # Any: some of Textual's own are coroutines, some are not.
    def _on_key(self, event: events.Key) -> Any:
        self._offer(event)

    def _on_paste(self, event: events.Paste) -> Any:
        self._offer(event)

    def _offer(self, event: events.Key | events.Paste) -> None:
        # No base of Textual's: its style sheets follow the first one that they find.
        assert isinstance(self, DOMNode)  # noqa: S101 - the program's own class line
        draft = getattr(self, "value", None) or getattr(self, "text", None)
        for view in self.screen.query(QuestionView):
            if view.takes(event, is_empty=not draft):
                event.stop()
                event.prevent_default()
                return


class _Body(VerticalScroll, can_focus=False):
    """The lines; tells the question what of them is on the screen."""

    def on_resize(self) -> None:
        self._view.fold()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.call_after_refresh(self._view.read)

    @property
    def _view(self) -> QuestionView:
        view = self.parent
        assert isinstance(view, QuestionView)  # noqa: S101 - nobody else makes one
        return view


def _name(event: events.Key) -> str:
    """Give what `AllowQuestion.key` takes: a character, or a name."""
    is_chord = "+" in event.key and event.key != "+"
    if event.character is not None and event.is_printable and not is_chord:
        return event.character
    return event.key if len(event.key) > 1 else f"<{event.key}>"

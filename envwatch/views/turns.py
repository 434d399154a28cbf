"""The turns of a console: what was run, what it printed, and what direnv said.

Whatever a kernel prints stands two columns in, also where a line is folded. So the
marks in the first column are ours alone, and no output can look like a word of
direnv, of envwatch or of the person.
"""

from __future__ import annotations

from collections.abc import Iterable

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from envwatch.core.console import Asked, Heard, Printed, Said, Shown
from envwatch.core.output import Output
from envwatch.views.painting import printed

FLUSH_S = 0.1
"""So often what comes is painted; a program may print faster than anybody reads."""

MAX_TURNS = 200
INPUT, DIRENV, NOTE = ">", "direnv:", "envwatch:"


class Block(Horizontal):
    """Lines with a mark of ours before them, or (an empty mark) two columns in."""

    DEFAULT_CSS = """
    Block { height: auto; }
    Block > .mark { width: auto; height: auto; padding-right: 1; text-style: bold; }
    Block > .lines { width: 1fr; height: auto; }
    """

    def __init__(self, mark: str) -> None:
        super().__init__()
        self.mark = mark
        self.output = Output()
        self._lines = Static(classes="lines", markup=False)

    def compose(self) -> ComposeResult:
        """Put the mark before the lines."""
        yield Static(Content(self.mark or " "), classes="mark", markup=False)
        yield self._lines

    def on_mount(self) -> None:
        """Show what there is already."""
        self.paint()

    def paint(self) -> None:
        """Show what has come."""
        self._lines.update(printed(self.output.lines))


class Turn(Vertical):
    """One input, and what came of it as it comes."""

    DEFAULT_CSS = "Turn { height: auto; margin-bottom: 1; }"

    class Came(Message):
        """Something has come; many things may come until it is painted."""

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self._blocks: list[Block] = []
        self._fresh: list[Block] = []
        self._changed: set[Block] = set()
        self._is_due = False
        if text:
            block = self._block(INPUT)
            for line in text.strip("\n").rstrip().split("\n"):
                block.output.add_whole(line)

    def compose(self) -> ComposeResult:
        """Show what there is already."""
        self._fresh.clear()
        yield from self._blocks

    def hear(self, heard: Heard) -> None:
        """Take what a kernel tells; it is painted a moment later."""
        match heard:
            case Printed(text):
                self._block("").output.add(text)
            case Asked(prompt):
                self._block("").output.add(prompt)
            case Shown(text):
                self._block("").output.add_whole(text)
            case Said(line):
                mark = NOTE if line.startswith(NOTE) else DIRENV
                self._block(mark).output.add_whole(line.removeprefix(mark).strip())
        self._come()

    def note(self, *lines: str) -> None:
        """Say something of our own."""
        for line in lines:
            self._block(NOTE).output.add_whole(line)
        self._come()

    def tell(self, lines: Iterable[str]) -> None:
        """Show lines as a kernel's output is shown."""
        for line in lines:
            self._block("").output.add_whole(line)
        self._come()

    def tell_on(self, text: str) -> None:
        """End the line that a run has asked for, with what was typed."""
        self._block("").output.add(f"{text}\n")
        self._come()

    def _come(self) -> None:
        if not self._is_due:
            self._is_due = True
            self.post_message(self.Came())

    def on_turn_came(self) -> None:
        """Paint it together with what comes in the next moment."""
        self.set_timer(FLUSH_S, self._flush)

    async def _flush(self) -> None:
        self._is_due = False
        changed, self._changed = self._changed, set()
        fresh, self._fresh = self._fresh, []
        if fresh:
            await self.mount(*fresh)
        for block in changed:
            block.paint()

    def _block(self, mark: str) -> Block:
        """Give the block that goes on, or a new one where the mark is another."""
        if not self._blocks or self._blocks[-1].mark != mark:
            self._blocks.append(Block(mark))
            self._fresh.append(self._blocks[-1])
        self._changed.add(self._blocks[-1])
        return self._blocks[-1]


class Turns(VerticalScroll, can_focus=False):
    """All turns, the newest last; its end stays in sight until somebody scrolls."""

    DEFAULT_CSS = "Turns { scrollbar-size-vertical: 1; }"

    def begin(self, text: str = "") -> Turn:
        """Add a turn, and forget the oldest of very many."""
        turn = Turn(text)
        # Neither is waited for: what comes next comes after it.
        _ = self.mount(turn)
        for old in list(self.query(Turn))[:-MAX_TURNS]:
            _ = old.remove()
        self.anchor()
        return turn

"""`envwatch ask [DIR] [--watch]`: shows a blocked file, and asks whether it may load.

In a terminal only; elsewhere it prints the state and asks nothing. The exit code is
the state that the workspace is in at the end, as with `envwatch status`: 0 when it
is allowed (also when it was just now), 10 or 11 when it stays blocked (put away, or
not asked), 12 denied, 3 none, 13 unreadable. 69: no direnv, or the workspace is
gone. 130: Ctrl-C, 143: SIGTERM; nothing is allowed then.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from envwatch import state
from envwatch.commands import arguments
from envwatch.commands.programs import direnv_of
from envwatch.commands.status import EXIT_CODES, SAID
from envwatch.commands.terminal import PASTE, Terminal
from envwatch.core.exhibit import Exhibit, Kind, Line, folded, spelled
from envwatch.core.question import BLOCKED, Action, AllowQuestion, Subject
from envwatch.errors import Unavailable
from envwatch.inquiry import Found, Inquiry, NotAllowed
from envwatch.state import State, Workspace
from envwatch.text import plain
from kernel_client import direnv as program
from kernel_client.errors import DirenvError
from kernel_client.settings import Settings

LOOK_EVERY_S = 0.25
HINT = "y allows exactly this · n or esc puts it away"

_COLOURS = {Kind.ADDED: "32", Kind.REMOVED: "31", Kind.PLACE: "36", Kind.SAME: "0"}


@click.command("ask")
@arguments.folder
@click.option("--watch", is_flag=True, help="Stay, and ask when something is blocked.")
def command(folder: str, *, watch: bool) -> int:
    """Show the blocked file of DIR's workspace, and ask whether to allow it.

    What is shown is what changed since it was allowed, or the whole file. `y` allows
    exactly that; `n` and esc put the question away. The exit code is the state, as
    that of `envwatch status`.
    """
    base = state.base(os.environ)
    direnv = direnv_of(base)
    version = program.version(direnv, base, limit_s=Settings.of(base).check_s)
    inquiry = Inquiry(direnv, base, version=version)
    if not Terminal.is_there():
        found = _looked(inquiry, folder)
        _say(told(found))
        return EXIT_CODES[found.workspace.state]
    with Terminal() as terminal:
        return Conversation(inquiry, folder, terminal, base, stays=watch).run()


class Conversation:
    """One person, one folder, one terminal."""

    def __init__(
        self,
        inquiry: Inquiry,
        folder: str,
        terminal: Terminal,
        environ: Mapping[str, str],
        *,
        stays: bool,
    ) -> None:
        self._inquiry = inquiry
        self._folder = folder
        self._terminal = terminal
        self._stays = stays
        self._has_colour = environ.get("TERM", "dumb") != "dumb" and not environ.get(
            "NO_COLOR"
        )
        self._question = AllowQuestion()
        self._glance: object = None
        self._said: Workspace | None = None

    def run(self) -> int:
        """Ask until there is nothing to ask; give the exit code."""
        now = self._look()
        while self._stays or self._question.subject is not None:
            try:
                key = self._terminal.read(LOOK_EVERY_S)
            except EOFError:
                break
            if self._terminal.was_away():
                # The shell has had the screen: what was typed was not typed about it.
                self._question.found(None)
                now = self._look()
            elif key is not None:
                now = self._typed(key) or now
            elif self._inquiry.glance(self._folder) != self._glance:
                now = self._look()
        return EXIT_CODES[now]

    def _look(self) -> State:
        self._glance = self._inquiry.glance(self._folder)
        found = _looked(self._inquiry, self._folder)
        if found.workspace.state not in BLOCKED:
            # Blocked another time is another question.
            self._question.opened()
        is_new = self._question.found(found.subject)
        subject = self._question.subject
        if subject is None:
            if found.workspace != self._said:
                _say(told(found))
        elif is_new:
            self._show(subject, found.workspace)
        self._said = found.workspace
        return found.workspace.state

    def _typed(self, key: str) -> State | None:
        """Do what a key means; give the state where it may be another now."""
        subject, now = self._question.subject, time.monotonic()
        if key == PASTE:
            self._question.pasted(now)
            return None
        action = self._question.key(key, now, is_empty=True)
        if subject is None or action in (Action.PASS, Action.HOLD):
            return None
        if action is Action.AWAY:
            _say(["put away: it stays blocked"])
            return None
        try:
            self._inquiry.allow(subject)
        except NotAllowed as error:
            _say([f"not allowed: {plain(str(error))}"])
        else:
            _say([f"allowed: {plain(subject.root)}; the next run loads it"])
        return self._look()

    def _show(self, subject: Subject, workspace: Workspace) -> None:
        width = self._terminal.columns
        _say(["", f"{plain(subject.root)} is {SAID[workspace.state]}"])
        _say([*map(plain, workspace.notes), subject.origin])
        for part in _names(subject, width):
            click.echo(part)
        for line in painted(subject.exhibit, width, has_colour=self._has_colour):
            click.echo(line, color=True)
        _say([HINT])
        # What was typed before it was there was not typed about it.
        self._terminal.forget()
        self._question.shown(subject, time.monotonic(), in_full=True)


def told(found: Found) -> Iterator[str]:
    """Say what state a workspace is in, where nothing is asked."""
    workspace, subject = found
    root = plain(workspace.root or workspace.folder)
    yield f"{root}: {SAID[workspace.state]}"
    yield from map(plain, workspace.notes)
    if subject is not None and subject.exhibit.refusal is not None:
        yield f"it is not asked about: {subject.exhibit.refusal}"
        yield f"read it, and then allow it by hand: direnv allow {root}"


def painted(shown: Exhibit, width: int, *, has_colour: bool) -> Iterator[str]:
    """Write the lines for a terminal; only our own escape sequences are in them."""
    for line in shown.lines:
        for part in folded(line, width):
            yield _coloured(part) if has_colour else part.text


def _coloured(line: Line) -> str:
    colour = _COLOURS[line.kind]
    text = "".join(
        f"\x1b[7m{piece.text}\x1b[27m" if piece.is_escape else piece.text
        for piece in line.pieces
    )
    return f"\x1b[{colour}m{line.kind.value}{text}\x1b[0m"


def _names(subject: Subject, width: int) -> Iterator[str]:
    if subject.names:
        for part in folded(Line(Kind.SAME, spelled(subject.named)), width):
            yield part.text


def _looked(inquiry: Inquiry, folder: str) -> Found:
    try:
        return inquiry.look(folder)
    except DirenvError:
        if Path(folder).is_dir():
            raise
        raise Unavailable(f"{plain(folder)} is gone") from None


def _say(lines: Iterator[str] | list[str]) -> None:
    for line in lines:
        click.echo(line)
    sys.stdout.flush()

"""What `envwatch console` decides without a terminal and without a kernel.

What a composed text means, which earlier one the arrow keys bring back, and what
the view and the kernel tell each other.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

MAX_HISTORY = 1000
_SIGN = "/"


# ------------------------------------------------------------------ what is composed


class Name(StrEnum):
    """The commands of the composer."""

    CD = "cd"
    STATUS = "status"
    RELOAD = "reload"
    HELP = "help"
    QUIT = "quit"


HELP = {
    "/cd DIR": "go to another folder, with the kernel; without DIR to the home folder",
    "/status": "what `envwatch status` says of the folder",
    "/reload": "have every kernel load this workspace again, this one at once",
    "/quit": "end the kernel and leave; ctrl+d does the same",
    "enter": "runs what is composed, or goes on with what is not complete",
    "ctrl+j": "a new line (shift+enter too, where the terminal tells it apart)",
    "up, down": "earlier input, from the first and the last line",
    "ctrl+c": "interrupts the run; clears the composer when nothing runs",
    "PgUp, PgDn": "scroll the turns, or the question while one stands",
}
"""Commands and keys, as `/help` lists them."""


@dataclass(frozen=True)
class Code:
    """Something for the kernel to run."""

    text: str


@dataclass(frozen=True)
class Command:
    """Something for the console to do; `argument` is "" where there is none."""

    name: Name
    argument: str = ""


@dataclass(frozen=True)
class Mistake:
    """Neither; `reason` is a line for the person."""

    reason: str


def composed(text: str) -> Code | Command | Mistake | None:
    """Tell what a composed text means; None: nothing.

    No Python begins with a `/`, so each text that does is meant for the console.
    """
    stripped = text.strip()
    if not stripped:
        return None
    if not stripped.startswith(_SIGN):
        return Code(text)
    if "\n" in stripped:
        return Mistake("a command has one line; Python does not begin with /")
    word, _, rest = stripped[len(_SIGN) :].partition(" ")
    argument = rest.strip()
    try:
        name = Name(word)
    except ValueError:
        return Mistake(f"there is no command /{word}; /help lists them")
    if argument and name is not Name.CD:
        return Mistake(f"/{name} takes nothing after it")
    return Command(name, argument or ("~" if name is Name.CD else ""))


class Doing(StrEnum):
    """What the kernel is busy with, as the view says it."""

    NOTHING = "idle"
    STARTING = "starting"
    RUNNING = "running"
    MOVING = "moving"
    ASKING = "asking you"


class History:
    """What was composed before; the draft that was left for it is kept."""

    def __init__(self, limit: int = MAX_HISTORY) -> None:
        self._limit = limit
        self._texts: list[str] = []
        self._at = 0
        self._draft = ""

    def add(self, text: str) -> None:
        """Keep a text that was sent, the same one only once in a row."""
        if self._texts[-1:] != [text]:
            self._texts.append(text)
            del self._texts[: -self._limit]
        self._at = len(self._texts)
        self._draft = ""

    def older(self, current: str) -> str | None:
        """Give what was composed before this; None: there is nothing older."""
        if self._at == 0:
            return None
        if self._at == len(self._texts):
            self._draft = current
        self._at -= 1
        return self._texts[self._at]

    def newer(self) -> str | None:
        """Give what came after this, the draft at last; None: it is the newest."""
        if self._at == len(self._texts):
            return None
        self._at += 1
        return self._draft if self._at == len(self._texts) else self._texts[self._at]


# ------------------------------------------------------------------ what a kernel tells


@dataclass(frozen=True)
class Printed:
    """A piece of a run's output."""

    text: str


@dataclass(frozen=True)
class Shown:
    """Something that stands on lines of its own: a result, a display, an error."""

    text: str


@dataclass(frozen=True)
class Said:
    """A line that direnv, or the hook, said in a run."""

    line: str


@dataclass(frozen=True)
class Asked:
    """A run waits for a line of the person's (`input()`, `getpass()`)."""

    prompt: str
    is_secret: bool = False


Heard = Printed | Shown | Said | Asked
Hear = Callable[[Heard], object]


@dataclass(frozen=True)
class Report:
    """What the kernel tells between runs.

    `folder`: where it is, None where that has been deleted; `is_on`: its hook
    refreshes before each run; `outcome` of the last refresh, None where there was
    none since the last report; `is_told`: the run showed it; `error`: why it did
    not go to another folder.
    """

    folder: str | None
    is_on: bool = False
    outcome: str | None = None
    is_told: bool = False
    error: str | None = None

    @property
    def is_blocked(self) -> bool:
        """Whether the run was told that its file is blocked."""
        return self.is_told and self.outcome == "blocked"


def reported(text: str) -> Report | None:
    """Read a report of `kernel_client.console`; None: it is none."""
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    return Report(
        folder=_text(found.get("folder")),
        is_on=found.get("is_on") is True,
        outcome=_text(found.get("outcome")),
        is_told=found.get("is_told") is True,
        error=_text(found.get("error")),
    )


class Talk(Protocol):
    """A kernel, as the view talks to it."""

    @property
    def is_running(self) -> bool:
        """Whether there is a kernel that can run something."""
        raise NotImplementedError

    async def start(self, folder: str) -> Report | None:
        """Start one; raises `EnvwatchError` where it does not come up."""

    async def run(self, code: str, hear: Hear) -> bool:
        """Run code to its end; gives whether the kernel has survived it."""
        raise NotImplementedError

    async def report(self) -> Report | None:
        """Ask where it is, and what its last refresh came to."""

    async def move(self, folder: str) -> Report | None:
        """Have it go to another folder."""

    async def indent(self, code: str) -> str | None:
        """Give what the next line begins with; None: the code is complete."""

    def answer(self, text: str) -> None:
        """Give the line that a run has asked for."""

    async def interrupt(self) -> None:
        """Interrupt what it runs."""

    async def has_died(self) -> bool:
        """Tell whether it has ended by itself, once."""
        raise NotImplementedError


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None

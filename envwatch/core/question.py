"""The question whether a blocked file may load: which key means what, and when.

No I/O and no clock: keys, the state of the composer and times go in, actions come
out. A view (a terminal, a Textual widget) paints the subject, says so, hands over
each key before anybody else sees it, and does what comes back.

- Only a blocked file asks; a denied one never does.
- While the composer is empty, `y` allows, `n` and `escape` put the question away,
  and every other letter is held back: the first letter of a prompt that is typed
  without reading never answers. Enter never answers.
- A draft keeps typing, `y` and `n` too. A paste is a draft, and so is any printable
  character that is no letter: it opens the draft that the next keys go on with.
- `y` counts only once the whole subject was shown.
- A key within `QUIET_S` of the question's appearance, or of any other key, never
  answers: neither what was on its way when the question came up, nor a key that
  repeats, nor a word that has a `y` in it.
- What was put away stays away until the view is opened again.
- After `y` the view allows, looks again and says what it has found. When the file
  has changed meanwhile, that is another subject, and it has to be shown and
  answered like the first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from envwatch.core.exhibit import Exhibit

QUIET_S = 0.3
"""So long a key that is typed without reading may still be on its way."""

BLOCKED = ("blocked: new", "blocked: changed")
"""The states that ask."""


class Action(StrEnum):
    """What a view does with a key."""

    PASS = "pass"  # noqa: S105 - no secret
    """It is nothing to the question: the key goes on to whom it was meant for."""
    HOLD = "hold"
    """Nobody gets it."""
    ALLOW = "allow"
    """Allow the subject, look again, and say what was found (`found`)."""
    AWAY = "away"
    """Take the question off the screen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a question is about: one content of one root file.

    `fingerprint` stands for path and content, as direnv's allow store names it;
    `content` are the very bytes that `exhibit` shows; `origin` says what they are
    compared with, or why with nothing; `names` are files that the text names.
    """

    root: str
    state: str
    fingerprint: str
    exhibit: Exhibit
    content: bytes = field(default=b"", repr=False)
    origin: str = ""
    names: tuple[str, ...] = ()

    @property
    def named(self) -> str:
        """What there is to say of the names, or nothing; not escaped."""
        names = ", ".join(self.names)
        return f"it names (direnv does not check them): {names}" if names else ""

    @property
    def is_asked(self) -> bool:
        """Whether there is something to ask, and all of it can be shown."""
        return self.state in BLOCKED and self.exhibit.refusal is None


class AllowQuestion:
    """One question at a time, for one view."""

    def __init__(self, *, quiet_s: float = QUIET_S) -> None:
        self._quiet_s = quiet_s
        self._away: set[str] = set()
        self._subject: Subject | None = None
        self._is_painted = False
        self._is_read = False
        self._is_answered = False
        self._quiet_until = 0.0
        self._draft_until = 0.0

    @property
    def subject(self) -> Subject | None:
        """What is asked about now; None: nothing is asked."""
        return self._subject

    @property
    def is_ready(self) -> bool:
        """Whether all was shown, so that `y` can answer."""
        return self._subject is not None and self._is_read and not self._is_answered

    @property
    def is_answered(self) -> bool:
        """Whether `y` has answered, and what came of it is not known yet."""
        return self._is_answered

    def opened(self) -> None:
        """Note that the view was opened again: nothing is put away any more."""
        self._away.clear()

    def found(self, subject: Subject | None) -> bool:
        """Take what the workspace is like now; None: nothing that could be asked.

        Gives whether the view has to paint anew, or to clear what it has painted.
        """
        if subject is not None and (not subject.is_asked or subject.root in self._away):
            subject = None
        before = self._subject
        if subject == before and not self._is_answered:
            return False
        self._subject = subject
        self._is_painted = self._is_read = self._is_answered = False
        return True

    def shown(self, subject: Subject, now: float, *, in_full: bool) -> None:
        """Note that a subject is on the screen; `in_full`: each line of it was.

        The first time is the question's appearance. Said of a subject that is
        asked about no longer, it counts for nothing.
        """
        if subject != self._subject:
            return
        if not self._is_painted:
            self._is_painted = True
            self._quiet(now)
        self._is_read = self._is_read or in_full

    def key(self, key: str, now: float, *, is_empty: bool) -> Action:
        """Say what a key means; `is_empty`: the composer has no draft.

        `key` is the character, or a name of several letters (`escape`, `enter`)
        where it has none; `now` is when it was typed.
        """
        subject = self._subject
        if subject is None:
            return Action.PASS
        is_quiet = now < self._quiet_until
        self._quiet(now)
        if not is_empty or now < self._draft_until:
            return Action.PASS
        if key in ("y", "n", "escape"):
            if is_quiet or not self._is_painted or self._is_answered:
                return Action.HOLD
            return self._answer(subject, key)
        if len(key) == 1:
            if key.isalpha():
                return Action.HOLD
            self._draft(now)
        return Action.PASS

    def pasted(self, now: float) -> Action:
        """Say what a paste means: a draft, always."""
        if self._subject is not None:
            self._quiet(now)
            self._draft(now)
        return Action.PASS

    def _answer(self, subject: Subject, key: str) -> Action:
        if key != "y":
            self._away.add(subject.root)
            self._subject = None
            return Action.AWAY
        if not self._is_read:
            return Action.HOLD
        self._is_answered = True
        return Action.ALLOW

    def _quiet(self, now: float) -> None:
        self._quiet_until = max(self._quiet_until, now + self._quiet_s)

    def _draft(self, now: float) -> None:
        # The composer may get this key later than we get the next one: until then
        # it is empty only by its own word.
        self._draft_until = max(self._draft_until, now + self._quiet_s)

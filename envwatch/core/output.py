r"""A run's output, made safe to show: nothing of it can paint anywhere else.

Lines end at `\n`. A CR starts its own line again, as progress bars do it. Of
escape sequences only those for bold, underlined and the terminal's own sixteen
colours of letters have their meaning; other colours are left out, and everything
else that is not plainly visible is written as an escape, as in
`envwatch.core.exhibit`. Of much output the end is kept.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

from envwatch.core.exhibit import escaped

MAX_LINES = 1000
MAX_LETTERS = 4000
"""Of one line; the rest is counted."""

_SGR = re.compile(r"\x1b\[([0-9;:]{0,64})m")
_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_ANY: dict[int, dict[str, str | bool]] = {38: {"colour": ""}, 48: {}, 58: {}}
"""Codes that a colour of some other palette follows, and what is left of it."""
_PARTS = {5: 1, 2: 3}


class Style(NamedTuple):
    """How letters look; `colour` is one of the terminal's own, or ""."""

    colour: str = ""
    is_bold: bool = False
    is_underlined: bool = False


class Span(NamedTuple):
    """A part of a line; `is_escape`: our way to write what cannot be shown."""

    text: str
    style: Style = Style()
    is_escape: bool = False


Line = tuple[Span, ...]

_MEANT: dict[int, dict[str, str | bool]] = {
    1: {"is_bold": True},
    22: {"is_bold": False},
    4: {"is_underlined": True},
    24: {"is_underlined": False},
    39: {"colour": ""},
    **{30 + at: {"colour": name} for at, name in enumerate(_COLOURS)},
    **{90 + at: {"colour": f"bright_{name}"} for at, name in enumerate(_COLOURS)},
}
"""What the codes of a sequence change; all others change nothing."""


class Output:
    """The output of one run, as it comes."""

    def __init__(
        self, *, max_lines: int = MAX_LINES, max_letters: int = MAX_LETTERS
    ) -> None:
        self._max_lines = max_lines
        self._max_letters = max_letters
        self._done: deque[_Raw] = deque(maxlen=max_lines)
        self._count = 0
        self._open = ""
        self._cut = 0
        self._style = Style()

    def add(self, text: str) -> None:
        """Take a piece; it may end within a line, and within a sequence."""
        first, *more = text.split("\n")
        self._extend(first)
        if more:
            self._end()
            for part in self._kept(more[:-1]):
                self._extend(part)
                self._end()
            self._extend(more[-1])

    def add_whole(self, text: str) -> None:
        """Take what stands on lines of its own."""
        if self._open:
            self._end()
        self._style = Style()
        self.add(text)
        self._end()
        self._style = Style()

    @property
    def lines(self) -> list[Line]:
        """All that is kept, the line that is not at its end too."""
        last = [_Raw(self._open, self._style, self._cut)] if self._open else []
        return [*self._left_out(), *(each.line for each in (*self._done, *last))]

    def _left_out(self) -> Iterator[Line]:
        missing = self._count - len(self._done)
        if missing:
            word = "line" if missing == 1 else "lines"
            yield (Span(f"({missing} {word} before this left out)", is_escape=True),)

    def _kept(self, parts: list[str]) -> list[str]:
        """Pass over whole lines that nobody will see: a program may print fast."""
        passed = parts[: -self._max_lines]
        self._count += len(passed)
        self._style = _after("\n".join(passed), self._style)
        return parts[len(passed) :]

    def _extend(self, text: str) -> None:
        whole = self._open + text
        # A CR at the very end may be half of a line's end.
        again = whole.rfind("\r", 0, len(whole) - 1)
        if again >= 0:
            # What it starts again keeps the colours that were set before it.
            self._style = _after(whole[:again], self._style)
            whole, self._cut = whole[again + 1 :], 0
        self._cut += max(0, len(whole) - self._max_letters)
        self._open = whole[: self._max_letters]

    def _end(self) -> None:
        self._done.append(_Raw(self._open, self._style, self._cut))
        self._style = _after(self._open, self._style)
        self._count += 1
        self._open, self._cut = "", 0


class _Raw:
    """A line as it came; it is made safe when somebody looks at it."""

    def __init__(self, text: str, style: Style, cut: int) -> None:
        self._text = text
        self._style = style
        self._cut = cut

    @cached_property
    def line(self) -> Line:
        spans = _spans(self._text.removesuffix("\r"), self._style)
        if self._cut:
            spans.append(Span(f"... ({self._cut} more letters)", is_escape=True))
        return tuple(spans)


def safe(text: str) -> Line:
    """Give one line of text, everything unseen in it escaped, colours too."""
    return tuple(_plain(text, Style()))


def _spans(text: str, style: Style) -> list[Span]:
    spans: list[Span] = []
    at = 0
    for found in _SGR.finditer(text):
        spans += _plain(text[at : found.start()], style)
        style = _changed(style, found[1])
        at = found.end()
    return [*spans, *_plain(text[at:], style)]


def _after(text: str, style: Style) -> Style:
    """Give the style that is left after a text."""
    if "\x1b" in text:
        for codes in _SGR.findall(text):
            style = _changed(style, codes)
    return style


def _plain(text: str, style: Style) -> Iterator[Span]:
    if text.isascii() and text.isprintable():
        if text:
            yield Span(text, style)
        return
    try:
        raw = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raw = text.encode("utf-8", "surrogatepass")
    for piece in escaped(raw):
        yield Span(piece.text, style, is_escape=piece.is_escape)


def _changed(style: Style, codes: str) -> Style:
    numbers = iter(int(code or 0) for code in codes.replace(":", ";").split(";"))
    for number in numbers:
        if number == 0:
            style = Style()
        changes: Any = _MEANT.get(number) or _ANY.get(number, {})
        style = style._replace(**changes)
        if number in _ANY:
            # What follows is the colour, not more codes.
            for _ in range(_PARTS.get(next(numbers, 0), 0)):
                next(numbers, None)
    return style
